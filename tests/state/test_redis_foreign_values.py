"""What another program wrote under the names of the store in Redis."""

from functools import partial

import pytest

from tests.players.redis_server import RedisServer
from tests.state.conftest import OpenStore
from tests.state.outages import refused
from toolchat.state.base import LockLost, Write


@pytest.mark.parametrize("token", ["nonsense", "", "9" * 400])
async def test_an_overwritten_lock_is_taken_and_fences_its_holder(
    token: str, server: RedisServer, open_store: OpenStore
) -> None:
    store = await open_store()
    lock = await store.try_lock("memory:a", ttl=30)
    assert lock is not None
    await server.run("SET", "toolchat:lock:memory:a", token)  # without an expiry
    with pytest.raises(LockLost):
        await store.put("memory:a", b"x", ttl=30, lock=lock)
    assert not await store.renew(lock, ttl=30)
    assert await store.try_lock("memory:a", ttl=30)
    assert store.available


async def test_a_log_and_a_list_of_foreign_types_affect_their_own_key_only(
    server: RedisServer, open_store: OpenStore
) -> None:
    store = await open_store()
    for key in ("log:memory:a", "list:memory"):
        await server.run("SET", f"toolchat:{key}", "nonsense")
    for write in (Write("memory:a", b"x", 30, line=b"x", place=1), Write("memory:b", b"x", 30, lists=("memory",))):
        await refused([partial(store.commit, [write])])
    await refused([lambda: store.listed("memory", limit=1), lambda: store.read_log("memory:a")])
    assert store.available
    assert await store.delete("memory:a")
    await store.commit([Write("memory:a", b"x", 30, line=b"x")])
    assert await store.read_log("memory:a") == [b"x"]
