"""Running the command line as a user does."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO

from tests.waiting import PATIENCE

ROOT = Path(__file__).parent.parent
LOG: list[str] = []
"""What the services that were started wrote; some outlive a test, so each test shows and clears it in the end."""


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **variables}


def run(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run to the end; what is told on stderr is also shown when the test fails."""
    command = [sys.executable, "-m", "app", *arguments]
    done = subprocess.run(
        command, cwd=cwd, env=environment(variables), capture_output=True, text=True, timeout=PATIENCE
    )
    sys.stderr.write(done.stderr)
    return done


@contextmanager
def started(*arguments: str, cwd: Path, **variables: str) -> Generator[tuple[subprocess.Popen[str], str], None, None]:
    """Start the service on a free port; gives the process and its base URL, read from what it prints.

    What it writes goes to ``LOG``.
    """
    command = [sys.executable, "-m", "app", *arguments]
    with subprocess.Popen(
        command, cwd=cwd, env=environment({"SERVER_PORT": "0", **variables}), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        relay = Thread(target=_relay, args=(process.stderr,))
        try:
            url = _url(process.stderr)
            relay.start()
            yield process, url
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
            if relay.ident:
                relay.join()


def copy_of_the_app(folder: Path, tools: Mapping[str, str]) -> None:
    """Copy the application and add tool folders, as a user adds them: the source of each by its name."""
    shutil.copytree(ROOT / "app", folder / "app")  # its bytecode as well: to compile it takes longer than a test
    for name, source in tools.items():
        (folder / "app" / "tools" / name).mkdir()
        (folder / "app" / "tools" / name / "__init__.py").write_text(source, encoding="utf-8")


def with_tools(folder: Path, tools: Mapping[str, str]) -> dict[str, str]:
    """Add tool folders for commands alone, which is faster than a copy; gives the variables to run them with."""
    for name, source in tools.items():
        (folder / "tools" / name).mkdir(parents=True)
        (folder / "tools" / name / "__init__.py").write_text(source, encoding="utf-8")
    start = f"import app.tools\n\napp.tools.__path__.append({str(folder / 'tools')!r})\n"
    (folder / "sitecustomize.py").write_text(start, encoding="utf-8")  # Python runs it before anything else
    return {"PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}


def _url(log: IO[str]) -> str:
    for line in log:
        LOG.append(line)
        if found := re.search(r"toolchat on (http://\S+)", line):
            return found[1]
    raise AssertionError("the service ended before it listened")


def _relay(log: IO[str]) -> None:
    for line in log:
        LOG.append(line)
