"""The log, and whoever does not read it."""

import fcntl
import logging
import os
import select
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic_core import from_json

from tests.command_line import application, environment
from tests.ports import reserved
from tests.serving import client_of
from tests.waiting import PATIENCE, until
from toolchat.service.observability.logs import LogHandler

_PAGE = 4096
"""The least that Linux lets a pipe hold."""


def test_dropped_log_lines_are_counted_and_reported_once_lines_are_written_again() -> None:
    reading, writing = small_pipe()
    with os.fdopen(reading, "rb", buffering=0) as reader, os.fdopen(writing, "w") as stream:
        handler = LogHandler(stream, most=10)
        for number in range(500):
            handler.emit(logging.makeLogRecord({"msg": str(number)}))
        lines: list[dict[str, Any]] = []
        while sum(each["message"].isdecimal() for each in lines) < 500 - handler.lost:
            lines.append(from_json(reader.readline()))
        while sum(each.get("lost", 0) for each in lines) < handler.lost:
            handler.emit(logging.makeLogRecord({"msg": "again"}))  # lost too, while lines written just now still count
            while select.select([reader], [], [], 0.1)[0]:
                lines.append(from_json(reader.readline()))
    assert sum(each.get("lost", 0) for each in lines) == handler.lost > 0


def test_a_line_that_cannot_be_formatted_counts_as_lost_and_the_next_ones_are_written() -> None:
    reading, writing = small_pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "w") as stream:
        handler = LogHandler(stream)
        for arguments in (("one",), (2,), (3,)):
            handler.emit(logging.makeLogRecord({"msg": "%d", "args": arguments}))
        assert [from_json(reader.readline())["message"] for _ in range(3)] == ["log lines were lost", "2", "3"]
        assert handler.lost == 1


async def test_a_log_that_nobody_reads_stops_no_answer(tmp_path: Path) -> None:
    reading, writing = small_pipe()
    with os.fdopen(reading, "rb") as reader, serving_with(writing, tmp_path) as (process, url):
        os.close(writing)
        async with client_of(url) as client:
            await answers(url)
            for _ in range(40):
                assert (await client.get("/time/chat")).status_code == 200
            assert (await client.get("/health/live")).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        assert len(reader.read()) <= _PAGE + 400


async def test_a_log_on_a_full_disk_stops_nothing(tmp_path: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    with serving_with(full, tmp_path) as (process, url):
        os.close(full)
        await answers(url)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("lines", [0, 3])
def test_warnings_of_python_are_json_and_written_before_the_process_ends(lines: int, tmp_path: Path) -> None:
    logged = "".join(f"warnings.warn('line {number}')\n" for number in range(lines))
    imported = "import warnings\nfrom toolchat.service.observability.logs import configure_logging\n"
    script = f"{imported}configure_logging('INFO')\n{logged}"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment({}), cwd=tmp_path, capture_output=True, timeout=PATIENCE)
    written = [from_json(line)["message"] for line in done.stderr.splitlines()]
    assert [each.partition("Warning: ")[2].split("\n")[0] for each in written] == [f"line {n}" for n in range(lines)]


def small_pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PAGE)
    return reading, writing


@contextmanager
def serving_with(log: int, folder: Path) -> Generator[tuple[subprocess.Popen[bytes], str], None, None]:
    """Start the service with a log that cannot be used; gives its process and its base URL."""
    with reserved() as holder:
        port = holder.getsockname()[1]
        variables = environment({"SERVER_PORT": str(port)})
        process = subprocess.Popen(application(), cwd=folder, env=variables, stderr=log)
        try:
            yield process, f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait(PATIENCE)


async def answers(url: str) -> None:
    async with client_of(url) as client:

        async def is_alive() -> bool:
            try:
                return (await client.get("/health/live")).status_code == 200
            except httpx.HTTPError:
                return False

        await until(is_alive)
