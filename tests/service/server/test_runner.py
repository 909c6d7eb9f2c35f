"""The addresses on which the service listens, and signals: whichever asks for the end gets an end in order."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from tests.command_line import LOG, environment, started, url_of
from tests.players.redis_server import RedisServer
from tests.service.server.paced_model import PacedModel, text
from tests.service.server.raw_client import RawClient
from tests.service.server.test_draining import not_ready_any_more
from tests.serving import client_of
from tests.waiting import PATIENCE


@pytest.mark.parametrize("asked", [signal.SIGQUIT, signal.SIGTERM])
async def test_a_signal_that_asks_for_the_end_lets_running_answers_finish(
    asked: signal.Signals, tmp_path: Path
) -> None:
    async with PacedModel(text(["begun", "finished"])) as model:
        model.gate.clear()
        with started(cwd=tmp_path, OPENAI_BASE_URL=model.base_url) as (process, url):
            async with RawClient(url) as client:
                await client.ask("/time/chat")
                await client.read_until(b"begun")
                process.send_signal(asked)
                await not_ready_any_more(url)
                model.gate.set()
                await client.read_until(b"event: done")
            await asyncio.to_thread(process.wait, PATIENCE)
    assert process.returncode == 0


async def test_a_signal_that_reloads_the_keys_interrupts_no_stream(tmp_path: Path) -> None:
    async with PacedModel(text(["begun", "finished"])) as model:
        model.gate.clear()
        with started(cwd=tmp_path, OPENAI_BASE_URL=model.base_url) as (process, url):
            async with RawClient(url) as client:
                await client.ask("/time/chat")
                await client.read_until(b"begun")
                process.send_signal(signal.SIGHUP)
                model.gate.set()
                await client.read_until(b"event: done")
            assert process.poll() is None


async def test_a_second_interrupt_cancels_what_runs_without_a_traceback(tmp_path: Path) -> None:
    async with PacedModel(text(["begun"], ends=False)) as model:
        # Nothing else ends the answer before the test gives up.
        limits = dict.fromkeys(("SHUTDOWN_TIMEOUT", "MODEL_TIMEOUT"), "600")
        variables = {"OPENAI_BASE_URL": model.base_url, "LOG_LEVEL": "ERROR", **limits}
        with started(cwd=tmp_path, **variables) as (process, url):
            async with RawClient(url) as client, asyncio.timeout(PATIENCE):
                await client.ask("/time/chat")
                await client.read_until(b"begun")
                while process.poll() is None:
                    process.send_signal(signal.SIGINT)
                    await asyncio.sleep(0.05)
        assert process.returncode == 130
    assert not [line for line in LOG if "Traceback" in line or '"exception"' in line]


START = """
import sys
from app.__main__ import main

AWAITED = sys.argv[1]


class Announcing:
    @staticmethod
    def find_spec(name, *_):
        if name == AWAITED:
            print(name, flush=True)

sys.meta_path.insert(0, Announcing)
sys.argv[1:] = ["serve"]
sys.exit(main())
"""
"""Starts the service, and prints the name of one of its modules when it is about to be imported."""


@contextmanager
def starting(module: str, cwd: Path, **more: str) -> Iterator[subprocess.Popen[str]]:
    """A service that is about to import one of its modules."""
    command, variables = [sys.executable, "-c", START, module], environment({"SERVER_PORT": "0", **more})
    with subprocess.Popen(
        command, cwd=cwd, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{module}\n"
        yield process


@pytest.mark.parametrize(
    "module", ["toolchat.service.composition.configuration", "toolchat.service.main", "toolchat.service.server.runner"]
)
def test_sigterm_during_the_start_stops_the_service_with_a_message(module: str, tmp_path: Path) -> None:
    with starting(module, tmp_path) as process:
        process.send_signal(signal.SIGTERM)
        _, reported = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "stopped" in reported or "toolchat on" in reported


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_hangups_from_the_first_moment_of_the_start_do_not_end_the_service(workers: str, tmp_path: Path) -> None:
    module = "toolchat.service.composition.configuration"
    async with RedisServer() as redis:
        with starting(module, tmp_path, SERVER_WORKERS=workers, REDIS_URL=redis.url) as process:
            assert process.stderr is not None
            process.send_signal(signal.SIGHUP)
            async with client_of(url_of(process.stderr)) as client:
                while not await is_live(client):
                    assert process.poll() is None
                    for each in (psutil.Process(process.pid), *psutil.Process(process.pid).children()):
                        each.send_signal(signal.SIGHUP)
            process.terminate()
            _, reported = process.communicate(timeout=PATIENCE)
    assert (process.returncode, "was sent" in reported) == (0, False), reported  # as gunicorn says of a killed worker


async def is_live(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/health/live", timeout=0.2)).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_all_addresses_are_those_of_both_protocols(workers: str, tmp_path: Path) -> None:
    variables = {"SERVER_HOST": "::", "ALLOW_ANONYMOUS": "true", "CHAT_PROVIDER": "offline"}
    async with RedisServer() as redis:
        with started(cwd=tmp_path, **variables, SERVER_WORKERS=workers, REDIS_URL=redis.url) as (_, url):
            for host in ("127.0.0.1", "[::1]"):
                async with client_of(f"http://{host}:{httpx.URL(url).port}") as client:
                    assert (await client.get("/time/chat?query=hi")).status_code == 200
