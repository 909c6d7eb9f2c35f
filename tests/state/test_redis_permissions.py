"""The permissions that Redis has to grant, as the documentation names them."""

import shlex
from pathlib import Path

import pytest

from tests.players.redis_server import RedisServer
from tests.waiting import PATIENCE
from toolchat.state.redis import RedisStateStore
from toolchat.state.redis_connection import _MEANINGS

DOCUMENT = Path(__file__).parents[2] / "docs" / "state.md"
[COMMAND] = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("redis-cli ACL SETUSER service ")]
RIGHTS = [each for each in shlex.split(COMMAND) if each.startswith("+")]


async def cause(server: RedisServer, rights: list[str]) -> str:
    """Why a user with these rights cannot use the store; empty if it can."""
    await server.run("SCRIPT", "FLUSH")
    await server.run("ACL", "SETUSER", "service", "reset", "on", ">secret", "~toolchat:*", *rights)
    store = RedisStateStore(f"redis://service:secret@127.0.0.1:{server.port}", deadline=PATIENCE)
    await store.start()
    try:
        assert store.available == (not store.cause)
        return store.cause.partition(": 127")[0]
    finally:
        await store.aclose()


async def test_the_documented_permissions_suffice_and_the_probe_finds_each_that_is_missing(server: RedisServer) -> None:
    assert await cause(server, RIGHTS) == ""
    found = {each: await cause(server, [right for right in RIGHTS if right != each]) for each in RIGHTS}
    assert found == dict.fromkeys(RIGHTS, _MEANINGS["NOPERM"])


@pytest.mark.parametrize("further", [["+scan", "+zrange"]])
async def test_an_export_needs_two_more(further: list[str], server: RedisServer) -> None:
    await cause(server, RIGHTS + further)
    store = RedisStateStore(f"redis://service:secret@127.0.0.1:{server.port}", deadline=PATIENCE)
    await store.put("memory:a", b"x", ttl=30)
    assert [each.key async for each in store.records()] == ["memory:a"]
    await store.aclose()
