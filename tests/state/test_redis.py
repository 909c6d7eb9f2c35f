"""The store in Redis: what only Redis does, why it cannot be used, and the permissions that it has to grant."""

import asyncio
import re
import shlex
import time
import traceback
from functools import partial
from pathlib import Path

import pytest

from tests.players.redis_server import RedisServer
from tests.ports import silent_port
from tests.state.conftest import OpenStore
from tests.state.outages import AWAY, answering, every_operation, reasons, recovered, refused, reported
from tests.waiting import PATIENCE, until
from toolchat.errors import StoreUnavailable
from toolchat.state.base import LockLost, Write
from toolchat.state.locks import Locks
from toolchat.state.redis import _CLUSTER, _MEANINGS, _SENTINEL, RedisStateStore


async def test_a_lock_taken_after_a_flush_fences_the_one_before(server: RedisServer, open_store: OpenStore) -> None:
    # The server has forgotten all tokens, and still the next one is greater.
    one, two = await open_store(), await open_store()
    async with Locks(one).hold("memory:a") as lock:
        await server.run("FLUSHALL")
        later = await two.try_lock("memory:a", ttl=30)
        assert later
        assert later.token != lock.token
        with pytest.raises(LockLost):
            await one.put("memory:a", b"late", ttl=30, lock=lock)
    assert await two.renew(later, ttl=30)
    assert await one.get("memory:a") is None


async def test_a_flushed_lock_is_held_again_when_it_is_renewed(server: RedisServer, open_store: OpenStore) -> None:
    store = await open_store()
    lock = await store.try_lock("memory:a", ttl=30)
    assert lock
    await server.run("FLUSHALL")
    assert await store.renew(lock, ttl=30)
    assert await store.try_lock("memory:a", ttl=30) is None


async def test_scripts_that_the_server_forgot_are_sent_again(server: RedisServer, open_store: OpenStore) -> None:
    store = await open_store()
    for _ in range(2):
        await server.run("SCRIPT", "FLUSH")
        lock = await store.try_lock("memory:a", ttl=30)
        assert lock
        await store.put("memory:a", b"x", ttl=30, lock=lock)
        await store.unlock(lock)
    assert (await store.get("memory:a"), store.failures) == (b"x", 0)


async def test_a_value_of_a_foreign_type_does_not_block_its_lock(server: RedisServer, open_store: OpenStore) -> None:
    # Else nobody could delete it.
    store = await open_store()
    await server.run("LPUSH", "toolchat:memory:a", "x")
    lock = await store.try_lock("memory:a", ttl=30)
    assert lock is not None
    assert (lock.value or b"").startswith(b"WRONGTYPE")
    assert await store.delete("memory:a", lock=lock)
    assert store.available


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_reply_that_nobody_waited_for_is_given_to_no_later_command(
    is_cancelled: bool, server: RedisServer
) -> None:
    store = RedisStateStore(server.url, deadline=0.2)
    await store.start()
    await store.put("memory:a", b"a", ttl=30)
    await store.put("memory:b", b"b", ttl=30)
    server.freeze()
    late = asyncio.ensure_future(store.get("memory:a"))
    await asyncio.sleep(0)  # sends the command
    if is_cancelled:
        late.cancel()
    await asyncio.gather(late, return_exceptions=True)
    server.thaw()
    await recovered(store)
    assert [await store.get("memory:b") for _ in range(3)] == [b"b"] * 3
    await store.aclose()


async def test_a_lock_outlives_an_outage(server: RedisServer, open_store: OpenStore) -> None:
    # Renewals that cannot reach the server are tried again; without a rival nothing is lost, even beyond its time.
    store = await open_store(deadline=0.5)

    async def is_fresh() -> bool:
        left = await server.run("PTTL", "toolchat:lock:memory:a")
        return isinstance(left, int) and left > 1300

    async def is_older() -> bool:
        return not await is_fresh()

    async def missed_two_renewals() -> bool:
        return store.failures >= 2

    async with Locks(store, ttl=1.5).hold("memory:a") as lock:
        server.freeze()
        await until(missed_two_renewals)
        server.thaw()
        await recovered(store)
        await until(is_older)
        await until(is_fresh)
        await store.put("memory:a", b"x", ttl=30, lock=lock)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://me:canary@[::1]:1/3", "[::1]:1, database 3"),
        ("redis://:canary@localhost:1", "localhost:1"),
        ("unix://me:canary@/nowhere/redis.sock?db=1", "/nowhere/redis.sock, database 1"),
    ],
)
async def test_the_warning_has_the_address_of_the_server_and_no_password(
    url: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = RedisStateStore(url)
    await store.start()
    await store.aclose()
    (record,) = caplog.records
    assert (record.getMessage(), vars(record)["server"]) == (AWAY, told)
    assert "canary" not in str(vars(record))


async def test_what_has_expired_does_not_fill_a_list(server: RedisServer, open_store: OpenStore) -> None:
    store = await open_store()
    await store.commit([Write("long", b"x", 30, lists=("all",))])
    for number in range(300):
        await store.commit([Write(f"short:{number}", b"x", 30, lists=("all",))])
        await store.client.unlink(f"toolchat:short:{number}")  # as if it had expired
    assert len(await store.client.zrange("toolchat:list:all", 0, -1)) < 100
    assert [key for key, *_ in await store.listed("all", limit=9)][-1] == "long"


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


async def test_the_cause_tells_apart_what_is_wrong_and_shows_no_password(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with silent_port() as port:
        async with RedisServer("canary") as server:
            await server.run("ACL", "SETUSER", "reader", "on", ">canary", "~*", "+get")
            url, nobody = f"127.0.0.1:{server.port}", f"127.0.0.1:{port}"
            causes = {
                f"redis://:canary-wrong@{url}": f"WRONGPASS: {url}",
                f"redis://{url}": f"NOAUTH: {url}",
                f"redis://reader:canary@{url}": f"{_MEANINGS['NOPERM']}: {url}",
                f"redis://:canary@{url}/99": f"ERR: {url}, database 99",
                f"rediss://:canary@{url}": f"no answer in time: {url} by TLS",
                f"redis://:canary@{nobody}": f"connection refused: {nobody}",
                "redis://:canary@redis.invalid": "name not found (…): redis.invalid:6379",
            }
            told = {address: await cause_of(address) for address in causes}
    assert told == causes
    assert "canary" not in caplog.text


async def cause_of(url: str) -> str:
    store = RedisStateStore(url, deadline=0.5 if url.startswith("rediss:") else PATIENCE)
    with pytest.raises(StoreUnavailable) as raised:
        await store.put("memory:a", b"x", ttl=30)
    await store.aclose()
    assert "canary" not in "".join(traceback.format_exception(raised.value)) + repr(store)
    return re.sub(r"\(.*\)", "(…)", str(raised.value.log_fields["cause"]))


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
