"""The key file is read again while the service runs; no request is dropped, and no fault locks anybody out."""

import asyncio
import signal
from pathlib import Path

import httpx
import psutil
import pytest

from app.access.keys import digest_of
from tests.command_line import started
from tests.players.redis_server import RedisServer
from tests.serving import client_of, service
from tests.sessions.replicas import needs_redis
from tests.waiting import until

PATH = "/time/chat-tool-function"


def write(file: Path, *keys: str, more: str = "") -> None:
    """Put a new file in the place of the old one, as configuration tools do."""
    entries = [f'[[keys]]\nname = "{key}"\nsha256 = "{digest_of(key)}"\n{more}\n' for key in keys]
    written = file.with_suffix(".new")
    written.write_text("".join(entries))
    written.replace(file)


async def status(client: httpx.AsyncClient, key: str) -> int:
    return (await client.get(PATH, headers={"X-API-Key": key})).status_code


@pytest.mark.slow
async def test_a_changed_file_counts_without_a_restart_and_no_request_fails_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    write(file, "stays", "goes")
    async with service(API_KEYS_FILE=str(file)) as client:
        assert [await status(client, key) for key in ("stays", "goes", "comes")] == [200, 200, 401]
        running = asyncio.create_task(_asked_until_cancelled(client))
        write(file, "stays", "comes")

        async def is_taken() -> bool:
            return await status(client, "comes") == 200

        await until(is_taken)
        assert await status(client, "goes") == 401
        running.cancel()
        assert set(await running) == {200}


async def _asked_until_cancelled(client: httpx.AsyncClient) -> list[int]:
    statuses = []
    try:
        while True:
            statuses.append(await status(client, "stays"))
    except asyncio.CancelledError:
        return statuses


@pytest.mark.slow
async def test_a_broken_file_keeps_the_old_keys_and_logs_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys.toml"
    write(file, "old")
    async with service(API_KEYS_FILE=str(file)) as client:
        for broken in ("[[keys]", '[[keys]]\nname = "a"\nsha256 = "short"\n'):
            file.write_text(broken)
            await until(lambda: _has_said(caplog))
            assert await status(client, "old") == 200
            caplog.clear()
        write(file, "new")

        async def is_taken() -> bool:
            return await status(client, "new") == 200

        await until(is_taken)
        assert await status(client, "old") == 401


async def _has_said(caplog: pytest.LogCaptureFixture) -> bool:
    said = [record.getMessage() for record in caplog.records]
    return "the key file cannot be used; the keys from before stay" in said


@needs_redis
async def test_a_worker_that_replaces_another_begins_with_the_keys_that_are_valid_now(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    write(file, "old")
    async with RedisServer() as redis:
        with started("--workers", "2", cwd=tmp_path, API_KEYS_FILE=str(file), REDIS_URL=redis.url) as (process, url):
            write(file, "new")
            first = psutil.Process(process.pid).children()
            for each in first:
                each.kill()
            await until(lambda: not set(first) & set(psutil.Process(process.pid).children()))
            for key, expected in (("new", 200), ("old", 401)):
                async with client_of(url) as client:
                    assert await status(client, key) == expected


@needs_redis
@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_hangup_has_the_file_read_again_and_ends_nothing(workers: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    write(file, "old")
    variables = {"API_KEYS_FILE": str(file), "SERVER_WORKERS": workers}
    async with RedisServer() as redis:
        with started(cwd=tmp_path, REDIS_URL=redis.url, **variables) as (process, url):
            before = psutil.Process(process.pid).children()
            async with client_of(url) as client:
                assert await status(client, "old") == 200
                write(file, "new")
                process.send_signal(signal.SIGHUP)

                async def is_taken() -> bool:
                    return await status(client, "new") == 200

                await until(is_taken)
            assert process.poll() is None
            assert psutil.Process(process.pid).children() == before
