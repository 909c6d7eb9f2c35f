"""The shared store: several processes at one Redis, and the addresses of Redis."""

import asyncio
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.players.redis_server import RedisServer
from tests.programs import REDIS, require
from tests.state.conftest import OpenStore
from tests.state.outages import AWAY, every_operation, recovered, refused
from tests.waiting import PATIENCE, until
from toolchat.errors import SessionBusy, StoreUnavailable
from toolchat.state.base import Lock, LockLost, Write
from toolchat.state.locks import Locks
from toolchat.state.redis import RedisStateStore
from toolchat.state.redis_connection import _CLUSTER

ROOT = Path(__file__).parent.parent.parent


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


async def test_prefixes_keep_services_apart(server: RedisServer, open_store: OpenStore) -> None:
    ours, theirs = await open_store(), RedisStateStore(server.url, prefix="other:", deadline=PATIENCE)
    await ours.put("memory:a", b"x", ttl=30)
    assert await ours.try_lock("memory:a", ttl=30)
    assert await theirs.get("memory:a") is None
    assert await theirs.try_lock("memory:a", ttl=30)
    await theirs.aclose()


async def test_a_cluster_is_named(tmp_path: Path) -> None:
    async with RedisServer(options=["--cluster-enabled", "yes", "--dir", str(tmp_path)]) as server:
        await server.run("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        store = RedisStateStore(server.url, deadline=PATIENCE)

        async def is_named() -> bool:
            with suppress(StoreUnavailable):
                await store.put("memory:a", b"x", ttl=30)
            return _CLUSTER in store.cause

        await until(is_named)
        await store.aclose()


async def test_a_thousand_operations_at_once_share_a_bounded_pool(server: RedisServer, open_store: OpenStore) -> None:
    store = await open_store()
    await asyncio.gather(*(store.put(f"memory:{number}", b"x", ttl=30) for number in range(1000)))
    assert (store.available, store.failures) == (True, 0)
    assert 1 < await server.connections() <= 65


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


async def take_and_release(store: RedisStateStore, key: str) -> None:
    async with Locks(store).hold(key):
        pass


async def test_cancelled_operations_leave_connections_and_locks(server: RedisServer, open_store: OpenStore) -> None:
    # Two hundred clients leave at different moments; afterwards all connections can be used, and all locks taken.
    store = await open_store()
    for round_ in range(4):
        tasks = [asyncio.ensure_future(store.try_lock(f"memory:{number}", ttl=30)) for number in range(200)]
        for _ in range(round_ * 3):
            await asyncio.sleep(0)
        for number, task in enumerate(tasks):
            task.cancel()
            if number % 20 == 0:
                await asyncio.sleep(0.0005 * round_)
        found = await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(store.unlock(each) for each in found if isinstance(each, Lock)))
    await asyncio.gather(*(take_and_release(store, f"memory:{number}") for number in range(200)))
    assert store.available
    for _ in range(5):
        await asyncio.gather(*(store.put(f"memory:{number}", b"%d" % number, ttl=30) for number in range(100)))
    assert [await store.get(f"memory:{number}") for number in range(100)] == [b"%d" % number for number in range(100)]
    assert store.failures == 0
    assert await server.connections() <= 65


async def test_two_processes_never_hold_one_lock_at_once(open_store: OpenStore) -> None:
    # Fifty requests of one session at two processes: one at a time, in order within each; none is lost silently.
    inside = 0
    visitors: list[tuple[int, int]] = []

    async def visit(locks: Locks, process: int, number: int) -> None:
        nonlocal inside
        async with locks.hold("memory:a"):
            inside += 1
            assert inside == 1
            visitors.append((process, number))
            await asyncio.sleep(0.002)
            inside -= 1

    both = [Locks(await open_store()), Locks(await open_store())]
    visits = [visit(both[number % 2], number % 2, number) for number in range(50)]
    results = await asyncio.gather(*visits, return_exceptions=True)
    assert all(result is None or isinstance(result, SessionBusy) for result in results)
    assert len(visitors) == results.count(None) >= 25
    for process in (0, 1):
        order = [number for where, number in visitors if where == process]
        assert order == sorted(order)
    assert [len(locks) for locks in both] == [0, 0]


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


async def test_closing_closes_every_connection(server: RedisServer) -> None:
    # Operations that still run come to their end first; later ones are refused.
    store = RedisStateStore(server.url, deadline=PATIENCE)
    await store.start()
    running = [asyncio.ensure_future(store.put(f"memory:{number}", b"x", ttl=30)) for number in range(100)]
    await asyncio.sleep(0)
    await store.aclose()
    results = await asyncio.gather(*running, return_exceptions=True)
    assert results[0] is None

    async def has_no_clients() -> bool:
        return await server.connections() == 0

    await until(has_no_clients)
    await refused(every_operation(store))


def test_a_program_that_used_the_store_ends_without_a_warning(tmp_path: Path) -> None:
    # Also when the server was away all the time.
    require(*REDIS)
    program = """
import asyncio
from toolchat.state.redis import RedisStateStore
from tests.players.redis_server import RedisServer

async def use(url):
    store = RedisStateStore(url, deadline=60)
    await store.start()
    if store.available:
        await asyncio.gather(*(store.put(str(n), b"x", ttl=30) for n in range(20)))
    await store.aclose()

async def main():
    asyncio.get_running_loop().slow_callback_duration = 60  # a busy machine is nothing to warn of
    async with RedisServer() as server:
        await use(server.url)
        await server.kill()
        await use(server.url)

asyncio.run(main())
"""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr in ("", f"{AWAY}\n")


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        (["--save", "", "--appendonly", "no"], "a restart loses everything"),
        (["--save", "3600 1", "--appendonly", "no"], "a crash loses all changes since the last one"),
        (["--appendonly", "yes"], ""),
        (["--rename-command", "CONFIG", ""], ""),  # as managed servers do
    ],
)
async def test_a_server_that_loses_data_in_a_crash_is_warned_about(
    options: list[str], warning: str, tmp_path: Path
) -> None:
    async with RedisServer(options=[*options, "--dir", str(tmp_path)]) as server:
        store = RedisStateStore(server.url, deadline=PATIENCE)
        warned = await store.durability_warning()
        await store.put("a:b", b"c", ttl=1)
        await store.aclose()
    assert warned.partition("so ")[2].partition(":")[0] == warning


@pytest.mark.parametrize(
    "url",
    [
        "http://h",
        "redis://:12/canary@h",
        "redis://h:canary:x",
        "redis://h?canary=1",
        "redis://h?protocol=9",
        "rediss://h?ssl_cert_reqs=canary",
    ],
)
def test_an_unusable_url_is_refused_at_once_without_being_repeated(url: str) -> None:
    with pytest.raises(ValueError, match=r"^the URL of Redis cannot be used$"):
        RedisStateStore(url)


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
        await store.commit([Write(f"short:{number}", b"x", 0.001, lists=("all",))])
    assert len(await store.client.zrange("toolchat:list:all", 0, -1)) < 100
    assert [key for key, *_ in await store.listed("all", limit=9)][-1] == "long"
