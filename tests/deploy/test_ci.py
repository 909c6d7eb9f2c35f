"""The check that runs before a change is taken: what it runs, repeats and refuses."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.command_line import ROOT
from tests.waiting import PATIENCE


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone on a machine that has every program, where make writes down how it is called and plays the guard."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    (tmp_path / "guard").write_text("bench-guard: within 1.3 times that\n")
    for name in set(re.findall(r"missing\+=\(([\w-]+)", (ROOT / ".ci/run").read_text())) | {"sleep"}:
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(RECORDING_MAKE.replace("NAME", name))
        program.chmod(0o755)
    return tmp_path


RECORDING_MAKE = """#!/bin/sh
[ NAME = make ] || [ NAME = sleep ] || exit 0
echo "NAME $* $TOOLCHAT_NO_SKIP" >> calls
[ "$1" != bench-guard ] || cat guard
[ ! -e "$1-fails-once" ] || ! rm "$1-fails-once" || exit 1
[ ! -e "$1-fails" ]
"""


def _check(clone: Path, *targets: str) -> tuple[int, list[str], str]:
    """Run the check; gives its exit code, what it called, and what it said."""
    variables = {"PATH": f"{clone / 'bin'}:{os.environ['PATH']}", "TOOLCHAT_NO_SKIP": ""}
    done = subprocess.run(
        [clone / ".ci/run", *targets], env=os.environ | variables, capture_output=True, text=True, timeout=PATIENCE
    )
    return done.returncode, [line.strip() for line in (clone / "calls").read_text().splitlines()], done.stdout


CHECKED = ["make test COVERAGE=1 1", "make test-pages 1", "make test-clients", "make lab-fast", "make bench-guard"]


def test_the_check_runs_every_test_the_clients_the_lab_and_the_guard_and_allows_no_skip(clone: Path) -> None:
    code, calls, said = _check(clone)
    assert (code, calls) == (0, CHECKED)
    assert "within 1.3 times" in said


def test_the_check_runs_the_given_targets_instead(clone: Path) -> None:
    assert _check(clone, "test-newest")[:2] == (0, ["make test-newest"])


GUARD_AGAIN = [*CHECKED, "sleep 60", "make bench-guard"]


@pytest.mark.parametrize("failed", [True, False])
def test_a_guard_that_failed_or_could_not_measure_is_repeated_once_and_later(failed: bool, clone: Path) -> None:
    if failed:
        (clone / "bench-guard-fails-once").touch()
    else:
        (clone / "guard").write_text("bench-guard: NOT MEASURED, since others took the cores\n")
    assert _check(clone)[:2] == (0, GUARD_AGAIN)


@pytest.mark.parametrize(
    ("failing", "calls"),
    [
        *((call.split()[1], CHECKED[:number]) for number, call in enumerate(CHECKED[:-1], 1)),
        ("bench-guard", GUARD_AGAIN),
    ],
)
def test_the_check_fails_when_tests_clients_the_lab_or_the_guard_fail(
    failing: str, calls: list[str], clone: Path
) -> None:
    (clone / f"{failing}-fails").touch()
    code, called, said = _check(clone)
    assert (code, called) == (1, calls)
    assert "ci: FAILED with exit code 1" in said
    assert ("within 1.3 times" in said) == (failing == "bench-guard")
