"""A unit with ``Type=notify`` learns when the service is ready and when it stops."""

import configparser
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.command_line import ROOT, started
from tests.players.redis_server import RedisServer
from tests.programs import require, require_linux
from tests.serving import client_of
from tests.waiting import PATIENCE
from toolchat.service.settings.service_settings import Settings

UNIT = ROOT / "deploy/systemd/toolchat.service"


@pytest.fixture
def systemd(tmp_path: Path) -> Generator[socket.socket, None, None]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(PATIENCE)
        yield receiver


async def reported(systemd: socket.socket, folder: Path, **variables: str) -> list[str]:
    """All states of a service that is started and stopped."""
    with started(cwd=folder, **variables) as (process, url):
        states = [systemd.recv(1000).decode()]
        async with client_of(url) as client:
            assert (await client.get("/health/ready")).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    systemd.setblocking(False)
    while True:
        try:
            states.append(systemd.recv(1000).decode())
        except BlockingIOError:
            return states


async def test_a_process_reports_that_it_is_ready(systemd: socket.socket, tmp_path: Path) -> None:
    assert await reported(systemd, tmp_path, NOTIFY_SOCKET=systemd.getsockname()) == ["READY=1"]


async def test_several_workers_report_once(systemd: socket.socket, tmp_path: Path) -> None:
    async with RedisServer() as redis:
        variables = {"PYTHONHASHSEED": "0", "SERVER_WORKERS": "2", "REDIS_URL": redis.url}
        states = await reported(systemd, tmp_path, NOTIFY_SOCKET=systemd.getsockname(), **variables)
    assert [state.split("\n")[0] for state in states] == ["READY=1"]


async def test_an_abstract_socket_is_notified(tmp_path: Path) -> None:
    require_linux()
    name = f"toolchat-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind("\0" + name)
        systemd.settimeout(PATIENCE)
        assert await reported(systemd, tmp_path, NOTIFY_SOCKET="@" + name) == ["READY=1"]


async def test_the_service_runs_although_systemd_cannot_be_notified(tmp_path: Path) -> None:
    with started(cwd=tmp_path, NOTIFY_SOCKET=str(tmp_path / "nothing")) as (_, url):
        async with client_of(url) as client:
            assert (await client.get("/health/ready")).status_code == 200


def test_the_unit_waits_for_that_and_for_running_answers() -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign] # systemd's keys are case-sensitive
    unit.read(UNIT)

    assert (unit["Service"]["Type"], unit["Service"]["RestartPreventExitStatus"]) == ("notify", "2")
    assert unit["Service"]["ExecStart"].endswith("/.venv/bin/toolchat serve")
    assert int(unit["Service"]["TimeoutStopSec"]) >= Settings.model_fields["shutdown_timeout"].default + 10


def test_systemd_itself_accepts_the_unit_and_its_sandbox(tmp_path: Path) -> None:
    analyze = require("systemd-analyze")
    here = tmp_path / UNIT.name
    here.write_text(UNIT.read_text().replace("/opt/toolchat/.venv/bin/toolchat", sys.executable))
    verified = subprocess.run(
        [analyze, "verify", "--man=no", here], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    security = [analyze, "security", "--offline=yes", str(here)]
    exposure = subprocess.run(security, capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
    assert float(re.findall(r"exposure level for toolchat.service: ([\d.]+)", exposure)[0]) < 2
