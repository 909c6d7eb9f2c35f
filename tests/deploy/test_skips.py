"""A skipped test is a failure where every program is said to be there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]

OPTIONS = [
    *("-p", "tests.skips", "-p", "no:cacheprovider", "--continue-on-collection-errors"),
    *("-p", "xdist.plugin", "-n", "1"),
]

TESTS = """
import pytest

@pytest.mark.skip(reason="marked: no browser")
def test_marked(): ...

def test_while_running():
    pytest.skip("running: no browser")

@pytest.mark.xfail(reason="expected to fail")
def test_expected_failure():
    raise AssertionError

def test_that_passes(): ...
"""
SKIPPED_MODULE = """
import pytest

pytest.skip("module: no browser", allow_module_level=True)
"""


def _outcomes(folder: Path, no_skip: str) -> tuple[dict[str, int], str]:
    (folder / "test_one_by_one.py").write_text(TESTS)
    (folder / "test_whole_module.py").write_text(SKIPPED_MODULE)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TOOLCHAT_NO_SKIP": no_skip, "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, "--rootdir", folder, folder],
        cwd=folder,
        env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    summary = done.stdout.splitlines()[-1]
    return {word: int(count) for count, word in re.findall(r"(\d+) ([a-z]+)", summary)}, done.stdout


@pytest.mark.parametrize(
    ("no_skip", "expected"),
    [
        ("", {"passed": 1, "skipped": 3, "xfailed": 1}),
        ("1", {"passed": 1, "failed": 1, "xfailed": 1, "errors": 2}),
    ],
)
def test_a_skip_fails_only_where_none_is_allowed_and_its_reason_is_shown(
    tmp_path: Path, no_skip: str, expected: dict[str, int]
) -> None:
    outcomes, output = _outcomes(tmp_path, no_skip)

    assert outcomes == expected, output
    assert set(re.findall(r"(\w+): no browser", output)) == {"marked", "running", "module"}
