"""Logs of lines beside values, and lists of keys, in all stores."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.waiting import until
from toolchat.chat.memory import ChatMemory
from toolchat.messages import AssistantMessage, UserMessage
from toolchat.state.base import Committed, StateStore, Write
from toolchat.state.locks import Locks


async def append(store: StateStore, line: bytes, place: int, ttl: float = 30) -> None:
    await store.commit([Write("memory:a", b"x", ttl, line=line, place=place)])


async def test_lines_are_read_in_their_order_from_a_place_on(store: StateStore) -> None:
    for place, line in enumerate([b"first", b"", bytes(range(256))]):
        await append(store, line, place)
    assert await store.read_log("memory:a") == [b"first", b"", bytes(range(256))]
    assert await store.read_log("memory:a", 2) == [bytes(range(256))]
    assert await store.read_log("memory:a", 0, 2) == [b"first", b""]
    assert (await store.read_log("memory:a", 3), await store.read_log("memory:b")) == ([], [])


async def test_a_line_replaces_what_stood_at_its_place_and_behind(store: StateStore) -> None:
    for place in range(4):
        await append(store, str(place).encode(), place)
    await append(store, b"new", 1)
    assert await store.read_log("memory:a") == [b"0", b"new"]
    await append(store, b"only", 0)
    assert await store.read_log("memory:a") == [b"only"]


async def test_a_log_goes_with_its_value_and_stays_when_the_value_is_replaced(store: StateStore) -> None:
    await append(store, b"1", 0)
    await store.put("memory:a", b"y", ttl=30)
    assert await store.read_log("memory:a") == [b"1"]
    await store.delete("memory:a")
    await store.put("memory:a", b"z", ttl=30)
    assert await store.read_log("memory:a") == []


async def test_a_log_expires_with_its_value(store: StateStore) -> None:
    await append(store, b"1", 0, ttl=30)
    await append(store, b"2", 1, ttl=0.03)

    async def is_over() -> bool:
        return await store.read_log("memory:a") == []

    await until(is_over)


async def test_a_list_has_the_keys_that_were_written_last_on_top(store: StateStore) -> None:
    for key in ("a", "b", "c", "a"):
        await store.commit([Write(key, key.encode(), 30, lists=("all", f"of {key}"))])
    assert [key for key, *_ in await store.listed("all", limit=2)] == ["a", "c"]
    [(_, _, last), (_, value, before)] = await store.listed("all", limit=2)
    assert (value, last > before) == (b"c", True)
    assert [key for key, *_ in await store.listed("all", limit=9, before=before)] == ["b"]
    assert [key for key, *_ in await store.listed("of c", limit=9)] == ["c"]


async def test_what_is_deleted_or_expired_is_in_no_list(store: StateStore) -> None:
    for key, ttl in (("kept", 30), ("deleted", 30), ("short", 0.03)):
        await store.commit([Write(key, b"x", ttl, lists=("all",))])
    await store.delete("deleted")

    async def is_over() -> bool:
        return [key for key, *_ in await store.listed("all", limit=9)] == ["kept"]

    await until(is_over)


async def test_a_value_that_expires_early_removes_no_other_from_its_list(store: StateStore) -> None:
    await store.commit([Write("long", b"x", 30, lists=("all",))])
    await asyncio.sleep(0.05)
    await store.commit([Write("short", b"x", 0.02, lists=("all",))])
    assert "long" in [key for key, *_ in await store.listed("all", limit=9)]


async def test_a_commit_whose_check_fails_writes_nothing(store: StateStore) -> None:
    await store.put("memory:a", b"x", ttl=30)
    write = Write("memory:b", b"y", 30, lists=("all",), line=b"1")
    refused = await store.commit([write], checks={"memory:a": (b"y", None)}, reads=["memory:c"])
    assert (refused.is_done, refused.found) == (False, {"memory:a": b"x", "memory:c": None})
    assert (await store.get("memory:b"), await store.listed("all", limit=9)) == (None, [])
    done = await store.commit([write, Write("memory:a")], checks={"memory:a": (b"y", b"x"), "memory:b": (None,)})
    assert (done.is_done, done.deleted, done.found) == (True, 1, {"memory:a": b"x", "memory:b": None})
    assert (await store.read_log("memory:b"), await store.get("memory:a")) == ([b"1"], None)


async def test_what_a_turn_writes_does_not_depend_on_the_length_of_its_conversation(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = ChatMemory(store, Locks(store), lists=lambda _: ("sessions",))
    sizes, commit = list[int](), store.commit

    async def counting(writes: Sequence[Write], **others: Any) -> Committed:
        sizes[-1] += sum(len(each.key) + len(each.value or b"") + len(each.line or b"") for each in writes)
        return await commit(writes, **others)

    monkeypatch.setattr(store, "commit", counting)
    for number in range(60):
        sizes.append(0)
        async with memory.open_turn("s") as turn:
            assert len(turn.earlier) == number
            await turn.save((UserMessage("what" * 50), AssistantMessage("well" * 50)))
    assert abs(sizes[59] - sizes[1]) <= 2  # a digit more


async def test_half_a_character_in_a_key_or_the_name_of_a_list_comes_back(store: StateStore) -> None:
    write = Write("memory:\udc80", b"x", 30, lists=("of:\ud800/é", "all"), line=b"1")
    await store.commit([write])
    assert [key for key, *_ in await store.listed("of:\ud800/é", limit=9)] == [write.key]
    assert [key for key, *_ in await store.listed("of:\ud801/é", limit=9)] == []
    [record] = [each async for each in store.records()]
    assert (record.key, sorted(record.lists), record.log) == (write.key, sorted(write.lists), (b"1",))
