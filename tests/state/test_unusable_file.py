# ruff: noqa: ASYNC240 - nothing else runs in the loop while a file is looked at
"""A state file that cannot be used: of a later version, damaged, removed, unreadable, or on a full disk."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.state.conftest import content
from tests.waiting import PATIENCE, until
from toolchat.errors import ConfigurationError, StoreUnavailable
from toolchat.state.sqlite import SqliteStateStore

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.fixture(name="store")
def file_store(store_in_file: SqliteStateStore) -> SqliteStateStore:
    return store_in_file


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

    async def is_unavailable() -> bool:
        return not store.available

    await until(is_unavailable)
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
