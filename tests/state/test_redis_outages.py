"""The shared store when Redis is slow, gone, full or something else."""

import asyncio
import logging
import time
import traceback
from collections.abc import Awaitable, Callable

import pytest

from tests.players.redis_server import RedisServer
from tests.state.conftest import OpenStore
from tests.state.outages import AWAY, BACK, answering, every_operation, reasons, recovered, refused, reported
from tests.waiting import PATIENCE, until
from toolchat.errors import StoreUnavailable
from toolchat.state.locks import Locks
from toolchat.state.redis import RedisStateStore
from toolchat.state.redis_connection import _CLUSTER, _SENTINEL


async def test_a_frozen_server_costs_half_a_second_once(server: RedisServer, open_store: OpenStore) -> None:
    # Every operation is answered, the later ones without waiting, and all work again after the thaw.
    store = await open_store(deadline=0.5)
    operations = every_operation(store)
    await asyncio.gather(*(operation() for operation in operations), return_exceptions=True)
    server.freeze()
    await refused(operations)
    assert not store.available
    async with asyncio.timeout(PATIENCE):  # half a second for each would be more
        for _ in range(150):
            await refused(operations)
    assert store.failures >= 151 * len(operations)  # and the tries to release the lock that may have been granted
    server.thaw()
    await recovered(store)


async def test_a_server_that_freezes_is_noticed_without_any_operation(
    server: RedisServer, open_store: OpenStore
) -> None:
    store = await open_store(deadline=0.5)
    server.freeze()

    async def is_away() -> bool:
        return not store.available

    await until(is_away)
    assert store.failures == 0
    server.thaw()


async def test_a_process_that_is_short_of_cpu_does_not_take_the_server_for_dead(open_store: OpenStore) -> None:
    store = await open_store(deadline=0.2)
    is_over = asyncio.Event()

    async def use_all_cpu() -> None:
        while not is_over.is_set():
            until_then = time.monotonic() + 0.1
            while time.monotonic() < until_then:
                pass
            await asyncio.sleep(0)

    busy = asyncio.create_task(use_all_cpu())
    await asyncio.gather(*(store.put(f"memory:{number}", b"a", ttl=60) for number in range(8)))
    is_over.set()
    await busy
    assert (store.available, store.failures) == (True, 0)


async def test_a_crash_of_the_server_is_noticed_once_and_its_return_is_detected(
    server: RedisServer, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    # Gone twice within a minute: one warning, which says where it was looked for, and one line that it is back.
    caplog.set_level(logging.INFO, "toolchat")
    store = await open_store()
    for _ in range(2):
        await server.kill()
        await refused(every_operation(store))
        await server.start()
        await recovered(store)
    assert [record.getMessage() for record in caplog.records] == [AWAY, BACK]
    assert vars(caplog.records[0])["server"] == f"127.0.0.1:{server.port}"


async def test_a_server_that_starts_later_is_used(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    # The start succeeds without it, and says so in ``available``.
    await server.kill()
    store = RedisStateStore(server.url)
    await store.start()
    try:
        assert not store.available
        assert reasons(caplog) == ["connection refused"]
        await refused(every_operation(store))
        await server.start()
        await recovered(store)
    finally:
        await store.aclose()


@pytest.mark.parametrize(
    ("spoil", "heal", "reason"),
    [
        (["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"], "OOM"),
        (["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"], "READONLY"),
        (["CONFIG", "SET", "requirepass", "x"], ["CONFIG", "SET", "requirepass", ""], "NOAUTH"),
    ],
    ids=["full", "read-only", "password"],
)
async def test_a_server_that_refuses_writes_is_unavailable_until_it_accepts_them(
    server: RedisServer,
    open_store: OpenStore,
    caplog: pytest.LogCaptureFixture,
    spoil: list[str],
    heal: list[str],
    reason: str,
) -> None:
    # The log says why, once; a probe that only reads would call it available every second.
    store = await open_store()
    lock = await store.try_lock("memory:a", ttl=30)
    await server.run(*spoil)
    if reason == "NOAUTH":
        await server.run_as("x", "CLIENT", "KILL", "TYPE", "normal")
    operations: list[Callable[[], Awaitable[object]]] = [
        lambda: store.put("memory:a", b"x", ttl=30),
        lambda: store.put("memory:a", b"x", ttl=30, lock=lock),
        lambda: store.try_lock("memory:b", ttl=30),
    ]
    for operation in operations:
        await refused([operation])
    until_probed = time.monotonic() + 0.3
    while time.monotonic() < until_probed:
        assert not store.available
        await asyncio.sleep(0.01)
    assert reported(caplog, reason)
    await server.run_as("x" if reason == "NOAUTH" else "", *heal)
    await recovered(store)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"-LOADING Redis is loading the dataset in memory\r\n", "LOADING"),
        (b"-MOVED 3999 127.0.0.1:1\r\n", _CLUSTER),
        (b"-ERR unknown command 'EVALSHA', with args beginning with:\r\n", _SENTINEL),
        (b"-MISCONF Redis is configured to save RDB snapshots\r\n", "MISCONF"),
        (b"-WRONGPASS invalid username-password pair or user is disabled.\r\n", "WRONGPASS"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "InvalidResponse"),
        (b"$many\r\n", "ValueError"),
        (b"*0\r\n", "AttributeError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_server_that_answers_otherwise_is_unavailable(
    caplog: pytest.LogCaptureFixture, line: bytes, reason: str
) -> None:
    # Whether it refuses or speaks no Redis at all: the same error, and the log says which in one word.
    async with answering(line) as url:
        store = RedisStateStore(url.replace("//", "//:canary-5c1d@"))
        await store.start()
        try:
            assert not store.available
            await refused(every_operation(store))
            assert reported(caplog, reason)
        finally:
            await store.aclose()
    assert "canary-5c1d" not in caplog.text


async def test_a_value_of_a_foreign_type_affects_its_own_key_only(
    server: RedisServer, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    store = await open_store()
    await server.run("LPUSH", "toolchat:memory:a", "x")
    for _ in range(3):
        await refused([lambda: store.get("memory:a")])
        assert await store.get("memory:b") is None
    assert reasons(caplog) == ["WRONGTYPE"]
    await store.put("memory:a", b"x", ttl=30)
    assert await store.get("memory:a") == b"x"


async def test_a_wrong_password_is_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    # Neither the one that is right nor the one that is wrong, at any level of the log.
    caplog.set_level(logging.DEBUG)
    async with RedisServer("canary-right") as server:
        for password in ("canary-wrong", "canary-right"):
            store = RedisStateStore(server.url.replace("canary-right", password))
            await store.start()
            assert store.available == (password == "canary-right")
            await server.kill()
            with pytest.raises(StoreUnavailable) as unavailable:
                await store.put("memory:a", b"x", ttl=30)
            assert "canary" not in "".join(traceback.format_exception(unavailable.value)) + repr(store)
            await store.aclose()
            await server.start()
    assert reported(caplog, "WRONGPASS", "ConnectionError")
    assert "canary" not in caplog.text


async def test_options_in_the_url_do_not_undo_the_bounds(server: RedisServer) -> None:
    # Bytes stay bytes, and a frozen server still costs half a second, not five minutes.
    store = RedisStateStore(f"{server.url}?decode_responses=true&socket_timeout=300&retry_on_timeout=true")
    await store.start()
    await store.put("memory:a", b"\xff", ttl=30)
    assert await store.get("memory:a") == b"\xff"
    server.freeze()
    async with asyncio.timeout(PATIENCE):
        await refused([lambda: store.get("memory:a")])
    server.thaw()
    await store.aclose()


@pytest.mark.slow
async def test_waiting_for_a_connection_does_not_make_the_store_unavailable(caplog: pytest.LogCaptureFixture) -> None:
    # More than a slow server can do in time: some operations are refused, the next one is not.
    async with answering(b"*3\r\n:1\r\n:0\r\n$1\r\n0\r\n", after=0.8) as url:
        store = RedisStateStore(url, deadline=4)
        try:
            for number in (64, 450):
                puts = [store.put("memory:a", b"x", ttl=30) for _ in range(number)]
                results = await asyncio.gather(*puts, return_exceptions=True)
            assert results[0] is None
            assert isinstance(results[-1], StoreUnavailable)
            assert store.available, store.cause
            await store.put("memory:a", b"x", ttl=30)
            assert reasons(caplog) == []
        finally:  # what is left open would keep the event loop from closing, and hide what failed
            await store.aclose()


async def test_an_operation_is_attempted_once() -> None:
    # A command may have been carried out although its answer was lost; only the caller knows whether it may again.
    greeted: list[object] = []
    async with answering(b"", greeted=greeted) as url:
        store = RedisStateStore(url)
        await refused([lambda: store.put("memory:a", b"x", ttl=30)])
        await store.aclose()
    assert len(greeted) == 1


async def test_a_release_during_an_outage_raises_nothing(server: RedisServer, open_store: OpenStore) -> None:
    store = await open_store()
    locks = Locks(store)
    async with locks.hold("memory:a"):
        await server.kill()
    assert len(locks) == 0
    with pytest.raises(StoreUnavailable):
        async with locks.hold("memory:a"):
            raise AssertionError("nobody holds a lock without a server")
    assert len(locks) == 0


async def test_a_lock_that_a_stalled_server_granted_too_late_is_released(
    server: RedisServer, open_store: OpenStore
) -> None:
    # It would run out in a minute; the holder of another one is not disturbed.
    store, other = await open_store(deadline=0.3), await open_store()
    assert await other.try_lock("memory:b", ttl=50)
    assert await store.try_lock("memory:c", ttl=50)  # from now on the server knows the script
    server.freeze()
    with pytest.raises(StoreUnavailable):
        await store.try_lock("memory:a", ttl=50)
    server.thaw()
    await until(lambda: other.try_lock("memory:a", ttl=50))
    assert await other.try_lock("memory:b", ttl=50) is None


async def test_a_release_is_retried_after_the_server_stalled(server: RedisServer, open_store: OpenStore) -> None:
    store, other = await open_store(deadline=0.3), await open_store()
    lock = await store.try_lock("memory:a", ttl=50)
    assert lock is not None
    server.freeze()
    await refused([lambda: store.get("memory:a")])
    await refused([lambda: store.unlock(lock)])
    server.thaw()
    await until(lambda: other.try_lock("memory:a", ttl=50))
