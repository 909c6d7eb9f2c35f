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

from tests.ports import silent_port
from tests.programs import require_linux
from tests.waiting import PATIENCE
from toolchat.service.settings.service_settings import Settings

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SECRET = re.compile(r"KEY|TOKEN|PASSWORD|SECRET|CREDENTIAL|APP_ID", re.I)


def _instructions() -> list[tuple[str, str]]:
    lines = [line for line in DOCKERFILE.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


def _final_stage() -> list[tuple[str, str]]:
    instructions = _instructions()
    last = max(index for index, (word, _) in enumerate(instructions) if word == "FROM")
    return instructions[last:]


def _the(word: str) -> str:
    (value,) = [rest for found, rest in _final_stage() if found == word]
    return value


def _health_command() -> list[str]:
    command: list[str] = json.loads(_the("HEALTHCHECK").partition("CMD ")[2])
    return command


def _service(name: str = "toolchat") -> dict[str, Any]:
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"][name]
    assert isinstance(service, dict)
    return service


def _environment() -> dict[str, str]:
    return dict(re.findall(r'(\w+)="?([^"\s]+)', _the("ENV")))


def test_hadolint_finds_nothing() -> None:
    require_linux()  # so does its package
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, timeout=PATIENCE)

    assert (done.returncode, done.stdout) == (0, "")


def test_the_service_runs_as_a_numeric_user_other_than_root() -> None:
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", _the("USER"))
    assert _service()["user"] == _the("USER")


def test_the_base_image_is_pinned_by_digest_and_a_mirror_can_take_its_place() -> None:
    images = [rest.partition(" AS ") for word, rest in _instructions() if word == "FROM"]
    (default,) = [rest for word, rest in _instructions() if word == "ARG" and rest.startswith("PYTHON_IMAGE=")]
    pinned, *others = [image for image, *_ in images]

    assert re.fullmatch(r"python:3\.\d+-slim-[a-z]+@sha256:[0-9a-f]{64}", pinned)
    assert set(others) == {"${PYTHON_IMAGE}"}
    assert default == f"PYTHON_IMAGE={images[0][2]}"


def test_no_secret_is_built_in() -> None:
    built_in = [rest for word, rest in _instructions() if word in {"ENV", "ARG", "LABEL"}]

    assert [text for text in built_in if SECRET.search(text)] == []
    assert [name for name in _service().get("environment", {}) if SECRET.search(name)] == []


def test_the_image_gets_the_service_and_its_lock_and_nothing_else() -> None:
    copied = [rest.split()[:-1] for word, rest in _instructions() if word in {"COPY", "ADD"} and "--from" not in rest]
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]

    assert copied == [["requirements.lock"], ["toolchat/"], ["app/"]]
    assert ignored[0] == "*"
    assert {line for line in ignored if line[0] == "!"} == {"!app/", "!toolchat/", "!requirements.lock"}
    assert "**/.env" in ignored


def test_packages_are_installed_by_hash_and_built_nowhere() -> None:
    (install,) = [rest for word, rest in _instructions() if word == "RUN" and "install" in rest]

    assert "--no-deps --require-hashes" in install
    assert "--only-binary=:all:" in install


def test_the_final_stage_runs_nothing_and_fetches_nothing() -> None:
    assert [rest for word, rest in _final_stage() if word in {"RUN", "ADD"}] == []


def test_the_service_is_started_without_a_shell_and_stopped_by_sigterm() -> None:
    assert json.loads(_the("CMD")) == ["python", "-m", "app"]
    assert _the("STOPSIGNAL") == "SIGTERM"


def test_the_service_listens_on_all_addresses_of_the_container_despite_env() -> None:
    assert _environment()["SERVER_HOST"] == "0.0.0.0"
    fixed = {name: value for name, value in _service()["environment"].items() if name.startswith("SERVER_")}
    assert fixed == {"SERVER_HOST": "0.0.0.0", "SERVER_PORT": _the("EXPOSE")}


def test_compose_needs_neither_keys_nor_a_model_on_its_loopback_port() -> None:
    allowed = {"ALLOW_ANONYMOUS": "true", "CHAT_PROVIDER": "auto_or_offline"}
    assert {name: _service()["environment"][name] for name in allowed} == {
        name: f"${{{name}:-{value}}}" for name, value in allowed.items()
    }
    assert _service()["ports"] == ["${SERVER_HOST:-127.0.0.1}:${SERVER_PORT:-8083}:8083"]


def test_python_writes_nothing_and_holds_no_line_back() -> None:
    assert (_environment()["PYTHONDONTWRITEBYTECODE"], _environment()["PYTHONUNBUFFERED"]) == ("1", "1")


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
    program, *arguments = _health_command()
    assert program == "python"
    proxy = "http://127.0.0.1:9"
    check = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        env=os.environ | {"SERVER_PORT": str(port), "HTTP_PROXY": proxy, "http_proxy": proxy},
        stderr=asyncio.subprocess.DEVNULL,
    )
    return await asyncio.wait_for(check.wait(), PATIENCE)


def test_compose_uses_the_images_health_check_with_a_short_start_interval() -> None:
    assert set(_service()["healthcheck"]) == {"start_period", "start_interval"}


def test_only_a_bounded_tmp_and_the_volume_of_the_state_can_be_written() -> None:
    (tmp,) = _service()["tmpfs"]

    assert _service()["read_only"] is True
    assert re.match(r"/tmp:.*\bsize=\d+m", tmp)
    assert _environment()["HOME"] == "/tmp"
    assert [each.partition(":")[2] for each in _service()["volumes"]] == [_the("VOLUME")]
    assert _environment()["STATE_URL"] == f"sqlite:///{_the('VOLUME')}/toolchat.db"


def test_every_capability_is_dropped_and_none_can_be_gained() -> None:
    service = _service()

    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "devices", "pid", "ipc", "network_mode", "userns_mode"} & set(service)


def test_memory_processes_cpu_and_logs_are_bounded() -> None:
    service = _service()

    assert {"mem_limit", "memswap_limit", "pids_limit", "cpus"} <= set(service)
    assert {"max-size", "max-file"} == set(service["logging"]["options"])


def test_running_answers_may_end_before_the_service_is_killed() -> None:
    grace = re.fullmatch(r"(\d+)s", _service()["stop_grace_period"])

    assert grace
    assert int(grace[1]) > Settings.model_fields["shutdown_timeout"].default


def test_an_init_process_reaps_children_and_the_service_comes_back_after_a_crash() -> None:
    assert _service()["init"] is True
    assert _service()["restart"] == "unless-stopped"


def test_the_service_starts_without_an_env_file() -> None:
    assert _service()["env_file"] == [{"path": ".env", "required": False}]


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md", "docs/operations.md"])
def test_an_older_docker_fails_with_the_required_version(page: str) -> None:
    # For the optional `env_file` and for `start_interval`, which older ones refuse.
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [named for named in ("Docker Compose 2.24", "Docker Engine 25") if named not in text] == []


def test_shared_state_is_started_on_request_only_with_the_same_restrictions() -> None:
    # The store is reached by no other host, runs as nobody special, and is bounded in everything.
    valkey, service = _service("valkey"), _service()

    assert valkey["profiles"] == ["shared"]
    assert valkey["volumes"] == ["valkey:/data"]
    assert not {"ports", "privileged", "cap_add", "network_mode"} & set(valkey)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", valkey["user"])
    for rule in ("read_only", "cap_drop", "security_opt", "restart", "logging"):
        assert valkey[rule] == service[rule], rule
    assert {"mem_limit", "memswap_limit", "pids_limit", "cpus"} <= set(valkey)
    assert "--maxmemory" in valkey["command"]
