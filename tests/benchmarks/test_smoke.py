"""The benchmark's command line."""

import subprocess
import sys
from pathlib import Path

from tests.command_line import environment
from tests.waiting import PATIENCE


def bench(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment(variables), capture_output=True, text=True, timeout=PATIENCE * 2
    )


def test_a_few_questions_to_toolchat_and_the_limit_are_answered_rightly(tmp_path: Path) -> None:
    # The smoke run starts both, asks in every phase, and fails when an answer is wrong or a call is missing.
    done = bench("--smoke", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for phase in ("time-32", "weather-32", "time-1", "weather-1", "burst", "streams"):
        assert done.stdout.count(f" {phase} ") == 2
