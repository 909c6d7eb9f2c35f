"""Several calls at once: what is told of them, and what each leaves to the others."""

import asyncio
import contextvars
import threading
from dataclasses import dataclass, field

import pytest

from tests.tool_calling.calls import run
from toolchat.messages import ToolResponseMessage
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.events import ToolCallEvent, ToolCallFinished
from toolchat.tool_calling.function_callback import MethodToolCallbackProvider
from toolchat.tool_calling.manager import ToolCallingManager


async def ok(text: str = "fine") -> str:
    return text


async def test_calls_run_side_by_side_but_no_more_than_allowed() -> None:
    running, peak = 0, 0
    gate = asyncio.Barrier(2)

    async def counted(number: int) -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await gate.wait()
        running -= 1

    asked = [("counted", f'{{"number": {number}}}') for number in range(6)]
    result = await run(*asked, tools=[counted], manager=ToolCallingManager(max_concurrency=2, timeout=10))
    assert [each.error_kind for each in result.executions] == [None] * 6
    assert peak == 2


async def test_three_calls_run_at_once_and_are_answered_in_their_order_however_they_end() -> None:
    # None of them ends before all have begun, and they end in the opposite order.
    stuck_began, bad_began, good_ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def good() -> str:
        await stuck_began.wait()
        await bad_began.wait()
        good_ended.set()
        return "good"

    async def bad() -> None:
        bad_began.set()
        await good_ended.wait()
        raise ValueError

    @tool(timeout=0.2)
    async def stuck() -> None:
        stuck_began.set()
        await asyncio.Event().wait()

    result = await run(("stuck", ""), ("bad", ""), ("good", ""), tools=[good, bad, stuck])
    assert [each.error_kind for each in result.executions] == ["timeout", "failed", None]
    *_, responses = result.conversation_history
    assert isinstance(responses, ToolResponseMessage)
    assert [each.id for each in responses.responses] == ["call_0", "call_1", "call_2"]


@dataclass
class Account:
    """Money that is read, and written a moment later."""

    balance: int = 100
    order: list[str] = field(default_factory=list)

    @tool(exclusive=True)
    async def withdraw(self, amount: int) -> str:
        """Withdraw money."""
        self.order.append(f"withdraw {amount}")
        before = self.balance
        for _ in range(amount):
            await asyncio.sleep(0)
        self.balance = before - amount
        if amount == 20:
            raise ToolExecutionError("the money is gone")
        return str(self.balance)

    @tool(exclusive=True)
    def deposit(self, amount: int) -> str:
        """Deposit money, blocking."""
        self.order.append(f"deposit {amount}")
        return "done"


@pytest.mark.parametrize("max_concurrency", [1, 8])
async def test_calls_of_an_exclusive_tool_run_one_after_another_in_their_order(max_concurrency: int) -> None:
    account = Account()
    methods = MethodToolCallbackProvider(account).tool_callbacks()
    asked = [("withdraw", f'{{"amount": {amount}}}') for amount in (30, 20, 10, 5)]
    asked += [("deposit", f'{{"amount": {amount}}}') for amount in (3, 2, 1)]
    manager = ToolCallingManager(max_concurrency=max_concurrency)
    done = await run(*asked, ("ok", ""), tools=[*methods, ok], manager=manager)
    results = [each.result for each in done.executions if each.outcome == "ok"]
    assert results == ["70", "40", "35", "done", "done", "done", "fine"]
    assert account.balance == 35
    for name, amounts in (("withdraw", [30, 20, 10, 5]), ("deposit", [3, 2, 1])):
        assert [each for each in account.order if name in each] == [f"{name} {amount}" for amount in amounts]


async def test_a_call_that_waits_for_its_turn_leaves_its_place_to_other_tools() -> None:
    others = asyncio.Event()

    @tool(exclusive=True)
    async def write(number: int) -> None:
        await others.wait()

    async def look(number: int) -> None:
        if number == 2:
            others.set()

    asked = [(name, f'{{"number": {number}}}') for name in ("write", "look") for number in range(3)]
    manager = ToolCallingManager(max_concurrency=2, timeout=10)
    done = await run(*asked, tools=[write, look], manager=manager)
    assert [each.error_kind for each in done.executions] == [None] * 6


@pytest.mark.parametrize("blocking", [False, True])
async def test_every_parallel_call_sees_the_callers_context_variables_and_changes_only_its_own(blocking: bool) -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")
    tenant.set("acme")

    def blocks(number: int) -> str:
        seen = tenant.get()
        tenant.set(f"call {number}")
        return f"{seen} {threading.current_thread() is threading.main_thread()}"

    async def awaits(number: int) -> str:
        return blocks(number)

    chosen = blocks if blocking else awaits
    asked = [(chosen.__name__, f'{{"number": {number}}}') for number in range(6)]
    result = await run(*asked, tools=[chosen], manager=ToolCallingManager(max_concurrency=3))
    assert {each.result for each in result.executions} == {f"acme {not blocking}"}
    assert tenant.get() == "acme"


@pytest.mark.parametrize("asked", [["slow"], ["slow", "ok"]], ids=["one", "several"])
async def test_cancelling_the_caller_cancels_the_tools(asked: list[str]) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    task = asyncio.create_task(run(*((name, "") for name in asked), tools=[slow, ok]))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled.is_set()


async def test_a_failing_listener_cancels_the_tools_and_its_error_is_raised() -> None:
    cancelled = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def refuses(event: ToolCallEvent) -> None:
        if isinstance(event, ToolCallFinished):
            raise OSError("nobody listens")

    with pytest.raises(OSError, match="nobody listens"):
        await run(("slow", ""), ("ok", ""), tools=[slow, ok], emit=refuses)
    assert cancelled.is_set()
