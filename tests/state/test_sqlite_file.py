# ruff: noqa: ASYNC220, ASYNC240 - nothing else runs in the loop while a file is looked at
"""The store in a file: crashes, other processes, and a file or disk that cannot be used."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from tests.state.conftest import content
from tests.waiting import PATIENCE, until
from toolchat.errors import ConfigurationError, StoreUnavailable
from toolchat.state.sqlite import SqliteStateStore
from toolchat.state.sqlite_file import checkpoint

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
WRITER = """
import asyncio, sys
from toolchat.state.sqlite import SqliteStateStore

async def main(path, name):
    store = SqliteStateStore(path, deadline=30)
    await store.start()
    number = 0
    while True:
        if lock := await store.try_lock("memory:shared", ttl=30):
            total = int(lock.value or 0) + 1
            await store.put("memory:shared", str(total).encode(), ttl=3600, lock=lock, unlock=True)
            await store.put(f"memory:{name}-{number}", bytes(3000), ttl=3600)
            print(total, flush=True)
            number += 1
        await asyncio.sleep(0)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(name="store")
def file_store(store_in_file: SqliteStateStore) -> SqliteStateStore:
    return store_in_file


async def test_values_locks_and_fences_outlive_the_process(path: Path, store: SqliteStateStore) -> None:
    await store.put("memory:a", b"1", ttl=30)
    lock = await store.try_lock("memory:a", ttl=30)
    assert lock
    later = SqliteStateStore(path)
    assert await later.get("memory:a") == b"1"
    assert await later.try_lock("memory:a", ttl=30) is None
    await later.put("memory:a", b"2", ttl=30, lock=lock, unlock=True)
    next_lock = await later.try_lock("memory:a", ttl=30)
    assert next_lock
    assert next_lock.token != lock.token
    await later.aclose()


@pytest.mark.slow
async def test_processes_that_are_killed_lose_and_double_nothing(path: Path) -> None:
    # Two processes count on one value by turns; each tells a count only when it is stored.
    told = list[int]()
    for killed in range(3):
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, path, f"{killed}{each}"], env=ENVIRONMENT, stdout=subprocess.PIPE
            )
            for each in "ab"
        ]
        for writer in writers:
            assert writer.stdout
            told.extend(int(writer.stdout.readline()) for _ in range(50))
            writer.kill()
        for writer in writers:
            assert writer.stdout
            # A line that the kill cut was not told.
            told.extend(int(line) for line in writer.stdout.read().split(b"\n")[:-1])
            writer.wait()
            writer.stdout.close()
        with closing(sqlite3.connect(path)) as database:
            database.execute(
                "DELETE FROM entries WHERE CAST(key AS TEXT) LIKE 'lock:%'"
            )  # instead of waiting until they expire
            database.commit()
    assert len(told) == len(set(told))
    stored = int(await content(path, "memory:shared") or 0)
    assert max(told) <= stored
    assert stored - len(told) <= 6  # what each of them had stored and could not tell any more


async def test_processes_that_update_one_value_at_once_lose_nothing(path: Path, store: SqliteStateStore) -> None:
    other = SqliteStateStore(path)
    await other.start()

    def increased(values: Sequence[bytes | None], _: float) -> list[bytes]:
        time.sleep(0.001)  # and between reading and writing the other one wants to write
        return [b"%d" % (int(values[0] or 0) + 1)]

    await asyncio.gather(*(each.update(["quota:a"], increased, ttl=30) for _ in range(30) for each in (store, other)))
    assert await store.get("quota:a") == b"60"
    await other.aclose()


async def test_while_another_process_writes_operations_wait_and_the_loop_goes_on(
    path: Path, store: SqliteStateStore
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(store.put("memory:a", b"1", ttl=30))
        turns = 0
        while not waiting.done():
            await asyncio.sleep(0)
            turns += 1
            if turns == 1000:
                other.execute("COMMIT")
        await waiting
        assert turns >= 1000
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable):
            await store.put("memory:a", b"2", ttl=30)
        assert (store.available, store.failures, store.cause) == (False, 1, f"database is locked: {path}")
        assert await store.get("memory:a") == b"1"
        other.execute("COMMIT")
    await store.put("memory:a", b"3", ttl=30)
    assert (store.available, store.cause) == (True, "")


@asynccontextmanager
async def stuck(store: SqliteStateStore) -> AsyncGenerator[None, None]:
    """A disk on which a write does not end within the block."""
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    await store.get("memory:slow")  # opens the file
    assert store._thread
    writing = asyncio.create_task(store._thread.run(wait))
    await asyncio.to_thread(begun.wait, PATIENCE)
    try:
        yield
    finally:
        go_on.set()
        await writing


async def test_a_slow_disk_stops_neither_the_loop_nor_reads_and_what_waits_is_written_together(
    path: Path, store: SqliteStateStore
) -> None:
    await store.put("memory:a", b"1", ttl=30)
    before = Path(f"{path}-wal").stat().st_size
    async with stuck(store):
        waiting = [asyncio.create_task(store.put(f"memory:{number}", b"2", ttl=30)) for number in range(50)]
        assert await store.get("memory:a") == b"1"
        assert not any(each.done() for each in waiting)
    await asyncio.gather(*waiting)
    assert await content(path, "memory:49") == b"2"
    assert Path(f"{path}-wal").stat().st_size - before < 50 * 4096  # each commit alone writes more than a page


async def test_a_lock_that_is_granted_too_late_is_released(store: SqliteStateStore) -> None:
    async with stuck(store):
        attempt = asyncio.create_task(store.try_lock("memory:a", ttl=30))
        await asyncio.sleep(0)
        attempt.cancel()
    await until(lambda: store.try_lock("memory:a", ttl=30))


async def test_a_disk_that_does_not_answer_is_not_waited_for(path: Path) -> None:
    store = SqliteStateStore(path, deadline=0.01)
    async with stuck(store):

        async def is_refused() -> bool:
            waiting = asyncio.create_task(store.put("memory:a", b"1", ttl=30))
            await asyncio.wait([waiting], timeout=0.02)
            return waiting.done() and isinstance(waiting.exception(), StoreUnavailable)

        await until(is_refused)
        assert not store.available
    await store.put("memory:a", b"2", ttl=30)
    assert store.available
    await store.aclose()


async def test_a_log_that_is_never_out_of_use_does_not_grow(path: Path, store: SqliteStateStore) -> None:
    # Each checkpoint finds a reader that needs a part of the log, until one waits for it.
    await store.put("memory:a", bytes(9_000_000), ttl=30)
    await store.put("memory:a", b"1" * 9_000_000, ttl=30)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entries")
        await store.put("memory:a", b"", ttl=30)
        checkpointing = asyncio.create_task(asyncio.to_thread(checkpoint, str(path)))
        await asyncio.wait([checkpointing], timeout=0.05)
        assert not checkpointing.done()
    await checkpointing
    log = Path(f"{path}-wal")
    before = log.stat().st_size
    await store.put("memory:a", b"1", ttl=30)
    assert log.stat().st_size == before


async def test_the_log_is_moved_into_the_file_while_the_store_is_used(path: Path, store: SqliteStateStore) -> None:
    log = Path(f"{path}-wal")
    await store.put("memory:a", bytes(1_000_000), ttl=30)

    async def is_used_from_its_beginning() -> bool:
        # Written at the end while the log is not moved yet, else over its beginning.
        before = log.read_bytes()
        await store.put("memory:a", b"", ttl=30)
        return len(before) == len(after := log.read_bytes()) and before != after

    await until(is_used_from_its_beginning)
    assert path.stat().st_size > 1_000_000


async def test_nobody_else_can_read_the_files(path: Path, store: SqliteStateStore) -> None:
    await store.put("memory:a", b"1", ttl=30)
    assert {each.name: each.stat().st_mode & 0o077 for each in (path.parent, *path.parent.iterdir())} == {
        "data": 0, "state.db": 0, "state.db-wal": 0, "state.db-shm": 0
    }  # fmt: skip


async def test_a_file_of_a_later_version_stops_the_start(path: Path, store: SqliteStateStore) -> None:
    await store.aclose()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(ConfigurationError, match=r"the file .*state\.db was written by a later version \(format 99"):
        await SqliteStateStore(path).start()


@pytest.mark.parametrize("where", [0, 5000])
async def test_a_damaged_file_is_kept_under_another_name(
    where: int, path: Path, store: SqliteStateStore, caplog: pytest.LogCaptureFixture
) -> None:
    # Neither a foreign beginning nor an overwritten page loses what can still be rescued by hand.
    for number in range(10):
        await store.put(f"memory:{number}", bytes(3000), ttl=30)
    await store.aclose()
    content_before = bytearray(path.read_bytes())
    content_before[where : where + 4000] = b"damaged " * 500
    path.write_bytes(content_before)
    assert await content(path, "memory:1") is None
    [aside] = path.parent.glob("state.db.damaged-*[0-9]")
    assert aside.read_bytes() == content_before
    assert "the file of the state store is damaged" in caplog.text


@pytest.mark.parametrize("place", ["occupied/state.db", "a-directory"])
async def test_a_file_that_cannot_be_opened_stops_the_start(place: str, tmp_path: Path) -> None:
    (tmp_path / "occupied").touch()
    (tmp_path / "a-directory").mkdir()
    with pytest.raises(ConfigurationError, match=r"the file .* cannot be opened"):
        await SqliteStateStore(tmp_path / place).start()


async def test_a_file_that_is_removed_ends_the_store(
    path: Path, store: SqliteStateStore, caplog: pytest.LogCaptureFixture
) -> None:
    # What is acknowledged after that would be gone with the process.
    await store.put("memory:a", b"1", ttl=30)
    path.unlink()
    await until(lambda: not store.available)
    for operation in (store.get("memory:a"), store.put("memory:a", b"2", ttl=30), store.try_lock("memory:a", ttl=1)):
        with pytest.raises(StoreUnavailable):
            await operation
    assert "removed or replaced" in caplog.text
    assert not path.exists()


FULL_DISK = """
import asyncio, resource, signal, sys
from toolchat.errors import StoreUnavailable
from toolchat.state.sqlite import SqliteStateStore

async def main(path):
    store = SqliteStateStore(path)
    await store.start()
    await store.put("memory:kept", b"1", ttl=3600)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    try:
        for number in range(100):
            await store.put(f"memory:{number}", bytes(10_000), ttl=3600)
    except StoreUnavailable:
        print("refused", store.available, await store.get("memory:kept"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    while not store.available:
        await asyncio.sleep(0.1)
    await store.put("memory:later", b"2", ttl=3600)
    print(await store.get("memory:kept"), await store.get("memory:later"), await store.get("memory:0") == bytes(10_000))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_full_disk_refuses_writes_keeps_what_was_there_and_is_used_again(path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK, path],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert run.stdout.splitlines() == ["refused False b'1'", "b'1' b'2' True"], run.stderr
