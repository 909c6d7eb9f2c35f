"""Records move between any two stores, with their lists and logs."""

import itertools
import json
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.state.conftest import opened
from toolchat.service.cli.state import _from_json, _import, _to_json
from toolchat.state.base import StateStore, StoredRecord, Write

KINDS = ["file", "redis", "postgresql"]


@pytest.fixture(
    params=[pytest.param(each, marks=pytest.mark.slow) for each in itertools.product(KINDS, repeat=2)], ids="-".join
)
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[tuple[StateStore, StateStore], None]:
    """Two stores, of any two kinds."""
    async with AsyncExitStack() as stack:
        first, second = [
            await stack.enter_async_context(opened(kind, tmp_path / f"{number}.db", request))
            for number, kind in enumerate(request.param)
        ]
        yield first, second


async def move(source: StateStore, target: StateStore) -> list[StoredRecord]:
    """What ``state export | toolchat state import`` does; the records that were moved."""
    lines = [json.dumps(_to_json(record)) async for record in source.records()]
    assert await _import(target, [*map(json.loads, lines), {"records": len(lines)}]) == 0
    return [_from_json(json.loads(line)) for line in lines]


async def test_records_move_with_their_lists_and_logs(pair: tuple[StateStore, StateStore]) -> None:
    source, target = pair
    values = {"memory:ü {a} }:b": '["é"]'.encode(), "plain": bytes(range(256)), "todo:\udc80": b""}
    for key in values:
        await source.put(key, b"", ttl=3600)
    for number, (key, value) in enumerate(reversed(values.items())):
        lines = [f"line {number}".encode(), b"\xff", b""]
        for place, line in enumerate(lines):
            await source.commit([Write(key, value, 3600, lists=("all", f"list {number}"), line=line, place=place)])
    await source.put("alone", b"1", ttl=3600)
    await source.put("quota:key:alice", b"{}", ttl=3600)
    assert await source.try_lock("memory:locked", ttl=30)
    await move(source, target)
    assert [key for key, *_ in await target.listed("all", limit=10)] == list(values)
    for number, (key, value) in enumerate(reversed(values.items())):
        lines = [f"line {number}".encode(), b"\xff", b""]
        assert (await target.get(key), await target.read_log(key)) == (value, lines)
        assert [each for each, *_ in await target.listed(f"list {number}", limit=10)] == [key]
    assert (await target.get("alone"), await target.get("quota:key:alice")) == (b"1", None)
    assert await target.try_lock("memory:locked", ttl=30)


async def test_a_second_import_changes_nothing(pair: tuple[StateStore, StateStore]) -> None:
    source, target = pair
    await source.commit([Write("memory:a", b"1", 3600, line=b"old")])
    await move(source, target)
    await target.commit([Write("memory:a", b"2", 3600, line=b"new", place=1)])
    await move(source, target)
    assert (await target.get("memory:a"), await target.read_log("memory:a")) == (b"2", [b"old", b"new"])


async def test_what_is_never_evicted_stays_so(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    async with (
        opened("file", tmp_path / "1.db", request) as first,
        opened("file", tmp_path / "2.db", request) as second,
    ):
        for key in ("approval:a", "memory:a"):
            await first.commit([Write(key, b"1", 3600, is_kept=key == "approval:a")])
        await move(first, second)
        assert {record.key: record.is_kept async for record in second.records()} == {
            "approval:a": True,
            "memory:a": False,
        }


def test_an_export_of_an_earlier_version_is_read() -> None:
    line = {"key": "memory:a", "client": "alice", "expires": 4_000_000_000, "value": "1"}
    assert _from_json(line) == StoredRecord("memory:a", b"1", 4e9, "alice", is_kept=False)


async def test_an_export_tells_when_records_expire(pair: tuple[StateStore, StateStore]) -> None:
    source, target = pair
    await source.put("memory:a", b"1", ttl=3600)
    [exported] = await move(source, target)
    [again] = [record async for record in target.records()]
    assert abs(exported.expires - time.time() - 3600) < 60
    assert abs(exported.expires - again.expires) <= 2
