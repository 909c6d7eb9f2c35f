"""Keys name principals; the key file is read again while the service runs."""

import asyncio
import signal
from functools import partial
from pathlib import Path

import httpx
import psutil
import pytest

from tests.command_line import ROOT, run, started
from tests.players.redis_server import RedisServer
from tests.serving import client_of, service
from tests.waiting import until
from toolchat.errors import ConfigurationError
from toolchat.service.access.keys import digest_of, new_key, read_key_file, read_keys
from toolchat.service.access.principals import Principal


def entry(key: str, name: str = "alice", more: str = "") -> str:
    return f'[[keys]]\nname = "{name}"\nsha256 = "{digest_of(key)}"\n{more}\n'


def test_a_new_key_is_long_random_and_known_by_its_digest() -> None:
    one, other = new_key(), new_key()
    assert one != other
    assert len(one) >= 43
    assert read_keys(f" alice = {digest_of(one)} , bob={digest_of(other)},").find(other) == Principal("bob")


@pytest.mark.parametrize("text", ["alice", "alice=abc", "=" + "a" * 64, "a b=" + "a" * 64, "alice=" + "A" * 64])
def test_a_malformed_pair_is_reported_without_its_value(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^API_KEYS: entry 1 ") as told:
        read_keys(text)
    assert "a" * 64 not in str(told.value).lower()


def test_a_key_file_grants_each_key_its_rights(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    limits = "requests_per_minute = 60\nconcurrent = 2\ntokens_per_day = 1000\nexpires = 2999-01-01T00:00:00Z"
    file.write_text(
        entry("k1", more=f'tools = ["getCity*"]\nroles = ["ask", "manager"]\n{limits}') + entry("k2", "bob")
    )
    book = read_key_file(file)
    alice = book.find("k1")
    assert alice is not None
    assert (alice.requests_per_minute, alice.concurrent, alice.tokens_per_day) == (60, 2, 1000)
    assert [alice.may_use(name) for name in ("getCityTimeMethod", "setAlarm")] == [True, False]
    assert alice.roles == {"ask", "manager"}
    assert book.find("k2") == Principal("bob")
    assert book.find("k3") is None


def test_a_key_is_not_known_any_more_when_its_time_is_over(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(entry("old", more="expires = 2020-01-01T00:00:00Z") + entry("new"))
    book = read_key_file(file)
    assert book.find("old") is None
    assert book.find("new") is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[keys]", "is not valid TOML"),
        ('[[keys]]\nname = "a"', "keys[0].sha256: Field required"),
        (entry("k", "a b"), "keys[0].name"),
        (entry("k", more="requests_per_minute = 0"), "keys[0].requests_per_minute"),
        (entry("k", more='roles = ["an admin"]'), "keys[0].roles[0]"),
        (entry("k", more="expires = 2030-01-01"), "keys[0].expires"),
        (entry("k", more="tool = []"), "keys[0].tool"),
        ("key = 1", "key"),
        (entry("k") + entry("k", "bob"), "bob has the same key as alice"),
        (entry("k") + entry("l", more='tools = ["a"]'), "the entries of alice grant different rights"),
    ],
)
def test_an_invalid_file_is_reported_with_the_place_and_no_digest(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"^API_KEYS_FILE: ") as told:
        read_key_file(file)
    assert said in str(told.value)
    assert digest_of("k") not in str(told.value)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_key_file(tmp_path / "none.toml")


def test_the_command_line_makes_a_key_and_the_entry_that_knows_it(tmp_path: Path) -> None:
    made = run("keys", "new", "alice", cwd=tmp_path)
    file = tmp_path / "keys.toml"
    file.write_text(made.stdout)
    key = made.stderr.removeprefix("key, shown only once: ").strip()
    assert (made.returncode, read_key_file(file).find(key)) == (0, Principal("alice"))
    refused = run("keys", "new", "no name", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "must be 1-64 characters of" in refused.stderr


def test_the_file_that_the_page_about_security_shows_can_be_used(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    file = tmp_path / "keys.toml"
    file.write_text(page.partition("```toml\n")[2].partition("```")[0])
    assert len(read_key_file(file)) == 1


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


async def test_a_worker_that_replaces_another_begins_with_the_keys_that_are_valid_now(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    write(file, "old")
    variables = {"API_KEYS_FILE": str(file), "CHAT_PROVIDER": "offline"}
    async with RedisServer() as redis:
        with started("--workers", "2", cwd=tmp_path, **variables, REDIS_URL=redis.url) as (process, url):
            write(file, "new")
            first = psutil.Process(process.pid).children()
            for each in first:
                each.kill()
            await until(lambda: not set(first) & set(psutil.Process(process.pid).children()))

            async def is_answered(key: str, expected: int) -> bool:
                try:
                    async with client_of(url) as client:
                        return await status(client, key) == expected
                except httpx.TransportError:  # the socket of workers that fail repeatedly is closed for a moment
                    return False

            for key, expected in (("new", 200), ("old", 401)):
                await until(partial(is_answered, key, expected))


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_hangup_has_the_file_read_again_and_ends_nothing(workers: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    write(file, "old")
    variables = {"API_KEYS_FILE": str(file), "SERVER_WORKERS": workers, "CHAT_PROVIDER": "offline"}
    async with RedisServer() as redis:
        with started(cwd=tmp_path, REDIS_URL=redis.url, **variables) as (process, url):
            async with client_of(url) as client:
                assert await status(client, "old") == 200
                children = psutil.Process(process.pid).children
                await until(lambda: len(children()) >= (int(workers) if workers != "1" else 0))
                before = children()
                write(file, "new")
                process.send_signal(signal.SIGHUP)

                async def is_taken() -> bool:
                    return await status(client, "new") == 200

                await until(is_taken)
            assert process.poll() is None
            assert children() == before
