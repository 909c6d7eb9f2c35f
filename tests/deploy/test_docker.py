"""The image and the compose file keep the rules for containers (CIS Docker Benchmark, sections 4 and 5)."""

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.dockerfile import ROOT, the
from tests.ports import silent_port
from tests.programs import require_linux
from tests.waiting import PATIENCE


def _service(name: str = "toolchat") -> dict[str, Any]:
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"][name]
    assert isinstance(service, dict)
    return service


def test_hadolint_finds_nothing() -> None:
    require_linux()  # so does its package
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, timeout=PATIENCE)

    assert (done.returncode, done.stdout) == (0, "")


def test_the_service_runs_as_a_numeric_user_other_than_root() -> None:
    assert re.fullmatch(r"[1-9]\d*:0", the("USER"))  # group 0 is what every user has that a platform chooses
    assert _service()["user"] == the("USER")


@pytest.mark.parametrize(("status", "code"), [("200 OK", 0), ("503 Service Unavailable", 1)])
async def test_the_health_check_requests_the_liveness_route(status: str, code: int) -> None:
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        assert await _run_health_check(server.sockets[0].getsockname()[1]) == code
    assert asked == [b"GET /health/live HTTP/1.1\r\n"]


async def test_the_health_check_fails_without_a_listening_service() -> None:
    with silent_port() as port:
        assert await _run_health_check(port) != 0


async def _run_health_check(port: int) -> int:
    program, *arguments = json.loads(the("HEALTHCHECK").partition("CMD ")[2])
    assert program == "python"
    proxy = "http://127.0.0.1:9"
    check = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        env=os.environ | {"SERVER_PORT": str(port), "HTTP_PROXY": proxy, "http_proxy": proxy},
        stderr=asyncio.subprocess.DEVNULL,
    )
    return await asyncio.wait_for(check.wait(), PATIENCE)


@pytest.mark.parametrize("name", ["toolchat", "valkey"])
def test_no_capability_can_be_gained_and_everything_is_bounded(name: str) -> None:
    service = _service(name)

    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "devices", "pid", "ipc", "network_mode", "userns_mode"} & set(service)
    assert {"mem_limit", "memswap_limit", "pids_limit", "cpus"} <= set(service)
    assert {"max-size", "max-file"} == set(service["logging"]["options"])
