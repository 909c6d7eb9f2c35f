"""A process that stalls at any of its operations changes nothing that another one has taken over meanwhile."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from app.tools.alarms.alarms import AlarmOrder, AlarmStore
from app.tools.todo.lists import TodoItem, TodoLists
from tests.chat.scripted import WatchedModel, calls, says
from tests.waiting import until
from toolchat.chat.advisors.memory import MemoryAdvisor
from toolchat.chat.advisors.tool_loop import ToolCallingAdvisor
from toolchat.chat.client import ChatClient
from toolchat.chat.memory import ChatMemory
from toolchat.errors import IdempotencyConflict, NotFound, Overloaded, SessionBusy
from toolchat.messages import AssistantMessage, UserMessage
from toolchat.service.api.advisors import ConversationCallLimit
from toolchat.service.api.approvals import ApprovalStore, ConsentAdvisor
from toolchat.service.api.audit import AuditTrail
from toolchat.service.api.idempotency import IdempotencyAdvisor, IdempotencyStore, IdempotentRequest
from toolchat.service.api.paused_turns import PausedTurnCodec
from toolchat.service.settings.service_settings import Settings
from toolchat.state.base import Committed, StateStore, Write
from toolchat.state.locks import Locks
from toolchat.tool_calling.callback import StaticToolCallbackResolver
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.function_callback import FunctionToolCallback

REFUSALS = (SessionBusy, IdempotencyConflict, Overloaded)


class StallingStore(StateStore):
    """A process' view of the store: before one of its operations it stalls until others have taken its locks."""

    kind, available, failures = "memory", True, 0

    def __init__(self, store: StateStore, position: int, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self._store, self._left, self._meanwhile = store, position, meanwhile
        self._locks: set[str] = set()

    @property
    def has_stalled(self) -> bool:
        return self._left < 0

    async def _operate(self) -> None:
        self._left -= 1
        if self._left == -1:
            for key in self._locks:
                await until(partial(self._is_taken, key))
            await self._meanwhile()

    async def _is_taken(self, key: str) -> bool:
        lock = await self._store.try_lock(key, ttl=1)
        if lock is not None:
            await self._store.unlock(lock)
        return lock is not None

    async def commit(self, writes: Sequence[Write], *, name: str = "commit", **others: Any) -> Committed:
        if name != "renew":
            await self._operate()
        if name == "lock":  # so that it expires during the stall
            writes = [replace(each, ttl=0.01) for each in writes]
            self._locks.update(each.key.removeprefix("lock:") for each in writes)
        return await self._store.commit(writes, name=name, **others)

    async def get(self, key: str) -> bytes | None:
        await self._operate()
        return await self._store.get(key)

    async def read_log(self, key: str, start: int = 0, limit: int | None = None) -> list[bytes]:
        await self._operate()
        return await self._store.read_log(key, start, limit)

    async def listed(self, name: str, *, limit: int, before: float | None = None) -> list[tuple[str, bytes, float]]:
        await self._operate()
        return await self._store.listed(name, limit=limit, before=before)


@dataclass
class World:
    """What all processes share outside of the store."""

    payments: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)


def client_of(*turns: AssistantMessage) -> ChatClient:
    return ChatClient(WatchedModel(turns), StaticToolCallbackResolver(()), (ToolCallingAdvisor(),))


async def pay_once(store: StateStore, name: str, world: World) -> None:
    """A request with an idempotency key, whose tool must run once."""

    async def pay() -> str:
        world.payments.append(name)
        return "paid"

    once, answers = IdempotentRequest("owner", "key", "pay"), IdempotencyStore(store)
    advisor = IdempotencyAdvisor(answers, once, await answers.find(once))
    client = client_of(calls(("pay", "{}")), says("done"))
    await client.prompt("pay").tools(pay).advisors(advisor).call().response()


async def paid_once(_: StateStore, world: World) -> None:
    assert len(world.payments) == 1


def memory_of(store: StateStore) -> ChatMemory:
    return ChatMemory(store, Locks(store))


async def update_list(store: StateStore, name: str, world: World) -> None:
    """A turn that replaces the todo list of its conversation and counts its calls."""

    async def write() -> str:
        await TodoLists(store, Settings()).put("s", [TodoItem("1", name, "pending")])
        return "written"

    advisors = MemoryAdvisor(memory_of(store)), ConversationCallLimit(store, 9, ttl=60)
    client = client_of(calls(("write", "{}")), says("done"))
    spec = client.prompt(name).tools(write).advisors(*advisors).tool_context({CONVERSATION_ID: "s"})
    await spec.call().response()


async def last_turn_and_list_agree(store: StateStore, _: World) -> None:
    asked = [turn.messages[0] for turn in await memory_of(store).turns("s")]
    items = await TodoLists(store, Settings()).get("s")
    assert asked[-1:] == [UserMessage(item.text) for item in items]
    assert int(await store.get("tool-calls:s") or b"0") >= len(asked)


@tool(requires_approval=True)
async def transfer() -> str:
    """Transfer money."""
    raise AssertionError("nobody has approved it")


TRANSFER = FunctionToolCallback.from_function(transfer)


def approvals_in(store: StateStore) -> ApprovalStore:
    codec = PausedTurnCodec(StaticToolCallbackResolver([TRANSFER]), ())
    return ApprovalStore(store, codec, AuditTrail(store))


async def pause(store: StateStore, name: str, world: World) -> None:
    """A turn that waits for approval; the other process deletes the conversation."""
    if name == "another":
        await memory_of(store).delete("s", "of:s")
        return
    approvals = approvals_in(store)
    spec = client_of(calls(("transfer", "{}"))).prompt("pay").tools(TRANSFER)
    advisor = ConsentAdvisor(approvals, spec)
    spec = spec.advisors(MemoryAdvisor(memory_of(store)), advisor).tool_context({CONVERSATION_ID: "s"})
    await spec.call().response()
    assert advisor.pending is not None
    world.pending.append(advisor.pending["id"])


async def a_deletion_finds_what_waits(store: StateStore, world: World) -> None:
    approvals = approvals_in(store)
    await store.delete_listed("of:s")
    for each in world.pending:
        with pytest.raises(NotFound):
            await approvals.find(each)


async def set_alarm(store: StateStore, name: str, world: World) -> None:
    at = datetime.now(UTC) + timedelta(hours=len(name))
    await AlarmStore(store).set(AlarmOrder(name), at)
    world.alarms.append(name)


async def alarms_are_those_reported(store: StateStore, world: World) -> None:
    for owner in ("this", "another"):
        assert len(await AlarmStore(store).of(owner)) == world.alarms.count(owner)


Work = Callable[[StateStore, str, World], Awaitable[None]]
Check = Callable[[StateStore, World], Awaitable[None]]


async def clear(store: StateStore) -> None:
    """Forget everything, as the next round begins anew."""
    await store.delete_listed("alarms")
    keys = ["memory:s", "todo:s", "tool-calls:s"]
    await store.delete(*keys, f"once:{IdempotentRequest('owner', 'key', 'pay').name}")


@pytest.mark.parametrize(
    ("work", "check"),
    [
        (pay_once, paid_once),
        (update_list, last_turn_and_list_agree),
        (pause, a_deletion_finds_what_waits),
        (set_alarm, alarms_are_those_reported),
    ],
)
async def test_what_comes_after_a_stall_is_refused_wherever_it_stalls(
    work: Work, check: Check, store: StateStore
) -> None:
    position, has_stalled = 0, True
    while has_stalled:
        world = World()
        stalling = StallingStore(store, position, partial(work, store, "another", world))
        with suppress(*REFUSALS):
            await work(stalling, "this", world)
        has_stalled = stalling.has_stalled
        await check(store, world)
        await clear(store)
        position += 1
    assert position > 3
