"""``python -m app state``: records are moved between stores, counted, and their file is made smaller."""

import asyncio
import json
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.command_line import run, started
from tests.players.redis_server import RedisServer
from toolchat.state.sqlite import SqliteStateStore

Done = subprocess.CompletedProcess[str]
NEWER = "a newer version of the service stored this; only that version reads it"
HEAD = '{"format":1}\n'


def state(command: str, tmp_path: Path, url: str = "sqlite:///state.db", given: str = "") -> Done:
    return run("state", command, cwd=tmp_path, entering=given, STATE_URL=url)


def line(key: str = "memory:a", value: str = "1", *, expires: int = 4_000_000_000, client: str = "") -> str:
    document = {"key": key, "client": client, "expires": expires, "value": value}
    return json.dumps(document, separators=(",", ":")) + "\n"


def export_of(*lines: str) -> str:
    return HEAD + "".join(lines) + f'{{"records":{len(lines)}}}\n'


def test_what_a_running_service_has_stored_moves_to_another_file(tmp_path: Path) -> None:
    def conversation(url: str) -> list[str]:
        return [each["text"] for each in httpx.get(f"{url}/chat/s1").json()["messages"]]

    with started(cwd=tmp_path, STATE_URL="sqlite:///state.db") as (_, url):
        assert httpx.get(f"{url}/chat", params={"query": "hello", "sessionId": "s1"}).status_code == 200
        exported = state("export", tmp_path)
        vacuumed = state("vacuum", tmp_path)
        counted = state("stats", tmp_path)
        stored = conversation(url)
        assert httpx.get(f"{url}/chat", params={"query": "again", "sessionId": "s1"}).status_code == 200
    assert (exported.returncode, vacuumed.returncode, counted.returncode, len(stored)) == (0, 0, 0, 2)
    kinds = dict(row.split()[:2] for row in counted.stdout.splitlines() if row[0] != "s")
    assert kinds.keys() >= {"kind", "memory", "all"}
    assert kinds["memory"] == "1"
    assert state("import", tmp_path, "sqlite:///other.db", exported.stdout).returncode == 0
    with started(cwd=tmp_path, STATE_URL="sqlite:///other.db") as (_, url):
        assert conversation(url) == stored


@pytest.mark.slow
async def test_records_move_from_a_file_to_redis_and_back(tmp_path: Path) -> None:
    values = {"memory:ü {a} }:b": '["é"]'.encode(), "plain": bytes(range(256)), "todo:x": b"", "quota:key:alice": b"{}"}
    store = SqliteStateStore(tmp_path / "state.db", client_key=lambda: "alice")
    for key, value in values.items():
        await store.put(key, value, ttl=3600)
    assert await store.try_lock("memory:locked", ttl=30)
    await store.aclose()
    async with RedisServer(password="secret-1") as server:
        from_file = await asyncio.to_thread(state, "export", tmp_path)
        to_redis = await asyncio.to_thread(state, "import", tmp_path, server.url, from_file.stdout)
        counted = await asyncio.to_thread(state, "stats", tmp_path, server.url)
        from_redis = await asyncio.to_thread(state, "export", tmp_path, server.url)
    assert to_redis.stderr == "3 records imported, 0 expired, 0 already there\n"
    assert "secret-1" not in counted.stdout + counted.stderr
    before, after = (
        {row["key"]: row for row in map(json.loads, each.stdout.splitlines()[1:-1])} for each in (from_file, from_redis)
    )
    assert {row.pop("client") for row in before.values()} == {"alice"}
    assert {row.pop("client") for row in after.values()} == {""}  # Redis counts no clients
    assert {row.pop("kept") for row in after.values()} == {True}  # and evicts nothing
    assert all(abs(before[key].pop("expires") - after[key].pop("expires")) <= 1 for key in after)
    assert before == after
    assert before.keys() == values.keys() - {"quota:key:alice"}


def test_an_import_neither_overwrites_nor_revives_and_keeps_the_clients(tmp_path: Path) -> None:
    given = export_of(
        line("memory:a", "first", client="alice"), line("memory:a", "second"), line("memory:b", expires=1)
    )
    done = state("import", tmp_path, given=given)
    assert (done.returncode, done.stderr) == (0, "1 records imported, 1 expired, 1 already there\n")
    [_, record, _] = state("export", tmp_path).stdout.splitlines()
    assert record == line("memory:a", "first", client="alice").strip()


@pytest.mark.parametrize(
    ("given", "code", "told"),
    [
        ("", 2, "line 1: is not an export of format 1, the one that this version reads"),
        ('{"format":2}\n', 2, "line 1: is not an export of format 1, the one that this version reads"),
        (HEAD + "{}\n", 2, "line 2: is not a line of an export"),
        (HEAD + line()[:-9], 2, "line 2: is not a line of an export"),
        (HEAD + line(), 1, "the export is incomplete: it ends after 1 records, which were imported"),
        (export_of(line(value='{"version":99}')), 2, f"line 2: {NEWER}"),
        (export_of(line(value='[{},{"version":99}]')), 2, f"line 2: {NEWER}"),
    ],
)  # fmt: skip
def test_what_cannot_be_imported_is_refused_with_one_line(given: str, code: int, told: str, tmp_path: Path) -> None:
    done = state("import", tmp_path, given=given)
    assert (done.returncode, done.stderr) == (code, f"toolchat: {told}\n")


@pytest.mark.parametrize(
    ("command", "url", "told"),
    [
        ("export", "memory://", "STATE_URL: the memory of a process cannot be read by another one"),
        ("vacuum", "redis://127.0.0.1:1/0", "STATE_URL: names no file: a server frees its memory by itself"),
    ],
)
def test_a_store_for_which_a_command_makes_no_sense_is_refused(
    command: str, url: str, told: str, tmp_path: Path
) -> None:
    done = state(command, tmp_path, url)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == f"toolchat: {told}"


def test_a_vacuum_gives_the_space_of_what_was_deleted_back(tmp_path: Path) -> None:
    given = export_of(*(line(f"memory:{number}", "x" * 10_000) for number in range(50)))
    assert state("import", tmp_path, given=given).returncode == 0

    async def delete() -> None:
        store = SqliteStateStore(tmp_path / "state.db")
        await store.delete(*(f"memory:{number}" for number in range(50)))
        await store.aclose()

    asyncio.run(delete())
    before = (tmp_path / "state.db").stat().st_size
    assert state("vacuum", tmp_path).returncode == 0
    assert (tmp_path / "state.db").stat().st_size < before / 4
