"""Vulnerabilities, licences and the list of parts: ``make audit``."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.audit import ALLOWED, LOCK, licences
from tests.waiting import PATIENCE

FOUND = """{"dependencies": [{"name": "a", "version": "1", "vulns": [%s]}]}"""
KNOWN = """{"id": "PYSEC-1"}"""


def test_every_package_that_is_shipped_has_a_licence_that_allows_it() -> None:
    found = licences()
    assert len(found) > 20
    assert {name: told for name, told in found.items() if not ALLOWED.search(told)} == {}


@pytest.mark.parametrize(
    ("answer", "arguments", "code", "line"),
    [
        (FOUND % "", [], 0, "1 packages asked about, 0 known"),
        (FOUND % KNOWN, [], 1, "a 1: PYSEC-1"),
        (FOUND % KNOWN, ["--offline"], 1, "a 1: PYSEC-1"),
        ("", [], 1, "NOT CHECKED"),
        ("", ["--offline"], 0, "NOT CHECKED"),
    ],
)
def test_an_unreachable_service_fails_the_audit_unless_a_flag_allows_it(
    answer: str, arguments: list[str], code: int, line: str, tmp_path: Path
) -> None:
    (tmp_path / "tests/deploy").mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("audit.py"), tmp_path / "tests/deploy")
    shutil.copy(LOCK, tmp_path)
    tool = tmp_path / ".venv-audit/bin/python"
    tool.parent.mkdir(parents=True)
    tool.write_text(f"#!/bin/sh\n[ $2 = cyclonedx_py ] || echo '{answer}'\n")
    tool.chmod(0o755)
    command = [sys.executable, "-m", "tests.deploy.audit", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)

    assert (done.returncode, line in done.stdout) == (code, True), done.stderr
