"""Runs the command line as a user does."""

import os
import re
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread
from typing import IO

from tests.forked import ROOT as ROOT, Forked, Streams, application as application
from tests.waiting import PATIENCE

Process = Forked | subprocess.Popen[bytes]

LOG: list[str] = []
"""Log lines of the started services; some outlive a test, so each test prints and clears them at its end."""


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **variables}


def run(*arguments: str, cwd: Path, entering: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; pytest also shows its stderr if the test fails."""
    with TemporaryFile() as entered, TemporaryFile() as printed, TemporaryFile() as errors:
        entered.write(entering.encode())
        entered.seek(0)
        streams = (entered.fileno(), printed.fileno(), errors.fileno())
        code = _process(arguments, cwd, variables, streams).wait(PATIENCE)
        done = subprocess.CompletedProcess(arguments, code, _text(printed), _text(errors))
    sys.stderr.write(done.stderr)
    return done


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


@contextmanager
def started(*arguments: str, cwd: Path, **variables: str) -> Generator[tuple[Process, str], None, None]:
    """Start the service on a free port; yields the process and its base URL, read from its log.

    Its log goes to ``LOG``.
    """
    with _pipe() as (log, written), open(os.devnull, "r+b") as nothing:  # noqa: PTH123
        streams = (nothing.fileno(), nothing.fileno(), written.fileno())
        process = _process(arguments, cwd, {"SERVER_PORT": "0", **variables}, streams)
        written.close()
        relay = Thread(target=_relay, args=(log,))
        try:
            url = url_of(log)
            relay.start()
            yield process, url
        finally:
            process.terminate()
            process.wait(PATIENCE)
            if relay.ident:
                relay.join()


def _process(arguments: Sequence[str], cwd: Path, variables: Mapping[str, str], streams: Streams) -> Process:
    """Run a command in a fork; with ``PYTHON...`` variables, which a fork ignores, in a new interpreter."""
    env = environment(variables)
    if not any(name.startswith("PYTHON") for name in variables):
        return Forked(arguments, cwd, env, streams)
    stdin, stdout, stderr = streams
    command = [sys.executable, "-m", "app", *arguments]
    return subprocess.Popen(command, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr)


@contextmanager
def _pipe() -> Generator[tuple[IO[str], IO[str]], None, None]:
    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as read, open(writing, "w", encoding="utf-8") as written:  # noqa: PTH123
        yield read, written


def with_tools(folder: Path, tools: Mapping[str, str]) -> dict[str, str]:
    """Write tool folders from names and sources; returns the variables that add them to the application."""
    for name, source in tools.items():
        (folder / "tools" / name).mkdir(parents=True)
        (folder / "tools" / name / "__init__.py").write_text(source, encoding="utf-8")
    return {"TOOLS_PATH": str(folder / "tools")}


def url_of(log: IO[str]) -> str:
    """Base URL of a service, read from its log."""
    for line in log:
        LOG.append(line)
        if found := re.search(r"toolchat on (http://\S+)", line):
            return found[1]
    raise AssertionError("the service ended before it listened")


def _relay(log: IO[str]) -> None:
    for line in log:
        LOG.append(line)
