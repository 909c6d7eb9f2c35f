"""Running the command line as a user does."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **variables}


def run(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment(variables), capture_output=True, text=True, timeout=60)


@contextmanager
def started(*arguments: str, cwd: Path, **variables: str) -> Generator[tuple[subprocess.Popen[str], str], None, None]:
    """Start the service on a free port; gives the process and its base URL, read from what it prints."""
    command = [sys.executable, "-m", "app", *arguments]
    with subprocess.Popen(
        command, cwd=cwd, env=environment({"SERVER_PORT": "0", **variables}), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            url = ""
            while not url:
                line = process.stderr.readline()
                assert line, "the service ended before it listened"
                url = "".join(re.findall(r"toolchat on (http://\S+)", line))
            yield process, url
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
