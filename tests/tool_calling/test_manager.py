"""Running the calls of a message: which of them run, side by side, again, and what each leaves to the others."""

import asyncio
import contextvars
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from pydantic_core import from_json

from tests.tool_calling.calls import call, only, run
from tests.waiting import until
from toolchat.errors import NotFound, UpstreamUnavailable
from toolchat.messages import AssistantMessage, Message, ToolResponse, ToolResponseMessage, UserMessage
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.events import ToolCallEvent, ToolCallFinished
from toolchat.tool_calling.exception_processor import ToolExecutionExceptionProcessor
from toolchat.tool_calling.function_callback import FunctionToolCallback, MethodToolCallbackProvider
from toolchat.tool_calling.manager import ToolCallingManager, ToolExecutionResult


@pytest.mark.parametrize("name", ["getTime", "default_api:ok", "OK", "", "x" * 300, "ok\n", "\ud800", "时间"])
async def test_a_name_that_was_not_offered_runs_nothing_and_is_answered_with_those_that_were(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def ok() -> None:
        raise AssertionError

    with caplog.at_level(logging.INFO):
        answer = await only((name, "{}"), tools=[ok])
    error = from_json(answer.result)["error"]
    assert (answer.outcome, answer.error_kind) == ("error", "unknown-tool")
    assert error["hint"] == "available: ok"
    assert len(answer.result) < 300
    assert "\n" not in error["message"]
    assert caplog.records == []


@pytest.mark.parametrize(
    "arguments",
    ["{", '{"text": "a"', "{'text': 'a'}", '{"text": "a"} {"text": "b"}', '{"text": "a"}x', '{"text": }',
     '{"text": ' + "[" * 1_100, "[" * 100_000, '{"text": ' + "9" * 5_000 + "}", "[]", '"text"', "3", "true",
     '{"text": null}', '{"text": true}', '{"Text": "a"}', '{"text": "a", "b": 1}', "x", "\x00",
     '{"text": "\\ud800"}', "x" * 1_000_001],
)  # fmt: skip
async def test_invalid_arguments_run_nothing_and_are_reported_to_the_model(arguments: str) -> None:
    ran: list[str] = []

    async def echo(text: str) -> None:
        ran.append(text)

    finished = await only(("echo", arguments), tools=[echo])
    assert (finished.error_kind, ran) == ("invalid-arguments", [])
    assert from_json(finished.result)["error"]["message"]
    assert len(finished.result) < 1000


QUESTION = UserMessage("?")
ASKING = AssistantMessage(tool_calls=tuple(call("note", f'{{"text": "{name}"}}', name) for name in ("a", "b", "c")))


def answered(*names: str) -> ToolResponseMessage:
    return ToolResponseMessage(tuple(ToolResponse(name, "note", f"earlier {name}") for name in names))


async def noted(
    messages: Sequence[Message], message: AssistantMessage = ASKING
) -> tuple[list[str], ToolExecutionResult]:
    """What ran, and what came of it."""
    ran: list[str] = []
    seen: list[tuple[Message, ...]] = []

    @tool(return_direct=True)
    async def note(text: str, context: ToolContext) -> str:
        ran.append(text)
        seen.append(context.history)
        return f"now {text}"

    result = await ToolCallingManager().execute_tool_calls(
        messages, message, [FunctionToolCallback.from_function(note)]
    )
    assert all(each == (QUESTION, message) for each in seen)
    return ran, result


@pytest.mark.parametrize(
    "earlier", [[answered("a", "c")], [answered("c"), answered("a")]], ids=["one message", "two messages"]
)
async def test_only_the_calls_without_a_response_run_and_all_are_answered_in_their_order(
    earlier: list[Message],
) -> None:
    ran, result = await noted([QUESTION, ASKING, *earlier])
    assert ran == ["b"]
    assert [each.call.id for each in result.executions] == ["b"]
    *before, responses = result.conversation_history
    assert before == [QUESTION, ASKING]
    assert isinstance(responses, ToolResponseMessage)
    assert [each.text for each in responses.responses] == ["earlier a", "now b", "earlier c"]
    assert not result.return_direct, "of the earlier responses nobody knows whether they are answers"


async def test_a_message_that_the_history_ends_with_is_not_repeated() -> None:
    ran, result = await noted([QUESTION, ASKING])
    assert sorted(ran) == ["a", "b", "c"]
    assert result.conversation_history[:-1] == (QUESTION, ASKING)
    assert result.return_direct


OTHER = AssistantMessage(tool_calls=(call("note", '{"text": "other"}', "a"),))


@pytest.mark.parametrize("earlier", [(QUESTION, ASKING, answered("a", "b", "c")), (QUESTION, OTHER, answered("a"))])
async def test_a_repeated_message_and_one_after_responses_to_another_get_new_results(
    earlier: tuple[Message, ...],
) -> None:
    ran: list[str] = []

    async def note(text: str) -> str:
        ran.append(text)
        return f"now {text}"

    result = await ToolCallingManager().execute_tool_calls(earlier, ASKING, [FunctionToolCallback.from_function(note)])
    assert sorted(ran) == ["a", "b", "c"]
    assert result.conversation_history[:-1] == (*earlier, ASKING)


async def test_a_message_without_calls_is_refused() -> None:
    with pytest.raises(ValueError, match="the message has no tool calls"):
        await ToolCallingManager().execute_tool_calls([QUESTION], AssistantMessage("Hello."), [])


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


class Busy(Exception):
    """An error of a library's, marked by whoever derives it."""

    retryable = True


@dataclass
class Flaky:
    """Fails with each of its faults in turn, and then answers."""

    faults: list[BaseException] = field(default_factory=list)
    runs: int = 0
    keys: list[str] = field(default_factory=list)

    async def ask(self, context: ToolContext) -> str:
        """Ask."""
        self.runs += 1
        self.keys.append(context.idempotency_key)
        if self.runs <= len(self.faults):
            raise self.faults[self.runs - 1]
        return f"answer {self.runs}"

    def ask_blocking(self) -> str:
        """Ask, blocking."""
        self.runs += 1
        if self.runs <= len(self.faults):
            raise self.faults[self.runs - 1]
        return f"answer {self.runs}"


RETRYABLE = [UpstreamUnavailable("no connection"), ToolExecutionError("later", retryable=True), Busy()]


@pytest.mark.parametrize("fault", RETRYABLE, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize("method", ["ask", "ask_blocking"])
async def test_a_call_is_retried_after_a_retryable_error(fault: Exception, method: str) -> None:
    flaky = Flaky([fault])
    finished = await only((method, ""), tools=[FunctionToolCallback.from_function(getattr(flaky, method), retries=1)])
    assert (finished.outcome, finished.result, flaky.runs) == ("ok", "answer 2", 2)


@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("retry_after", ["0.01", "soon", "-3", float("nan"), None, {}])
async def test_whatever_wait_an_error_names_it_is_retried_and_not_replaced(retry_after: Any, group: bool) -> None:
    busy = ToolExecutionError("busy", kind="busy", retryable=True)
    busy.retry_after = retry_after  # type: ignore[attr-defined]
    fault = ExceptionGroup("of a task group", [busy]) if group else busy
    flaky = Flaky([fault, fault])
    finished = await only(("ask", ""), tools=[FunctionToolCallback.from_function(flaky.ask, retries=1)])
    assert (finished.error_kind, flaky.runs) == ("busy", 2)
    assert UpstreamUnavailable("busy", retry_after=retry_after).retry_after in (None, 0.01)


@pytest.mark.parametrize(
    "fault",
    [
        NotFound("no such city"),
        ToolExecutionError("no such city"),
        ValueError("broken"),
        asyncio.CancelledError(),
        UpstreamUnavailable("its body was nonsense", retryable=False),
    ],
    ids=lambda fault: type(fault).__name__,
)
async def test_any_other_error_is_reported_at_once(fault: BaseException) -> None:
    flaky = Flaky([fault])
    finished = await only(("ask", ""), tools=[FunctionToolCallback.from_function(flaky.ask, retries=3)])
    assert (finished.outcome, flaky.runs) == ("error", 1)


async def test_without_retries_a_call_is_made_once() -> None:
    flaky = Flaky(list(RETRYABLE))
    finished = await only(("ask", ""), tools=[flaky.ask])
    assert (finished.error_kind, flaky.runs) == ("upstream-unavailable", 1)


async def test_the_last_error_is_reported_after_all_attempts() -> None:
    flaky = Flaky([*RETRYABLE, ToolExecutionError("never", kind="never")])
    tools = [FunctionToolCallback.from_function(flaky.ask, retries=2)]
    finished = await only(("ask", ""), tools=tools)
    assert (finished.error_kind, flaky.runs, len(set(flaky.keys))) == ("failed", 3, 1)
    await only(("ask", ""), tools=tools)
    assert len(set(flaky.keys)) == 2, "another call has another key"
    manager = ToolCallingManager(exception_processor=ToolExecutionExceptionProcessor(rethrow=(Busy,)))
    with pytest.raises(Busy):
        await run(
            ("ask", ""),
            tools=[FunctionToolCallback.from_function(Flaky([Busy(), Busy()]).ask, retries=1)],
            manager=manager,
        )


async def test_invalid_arguments_are_not_retried() -> None:
    flaky = Flaky()
    finished = await only(("ask", '{"a": 1}'), tools=[FunctionToolCallback.from_function(flaky.ask, retries=2)])
    assert (finished.error_kind, flaky.runs) == ("invalid-arguments", 0)


async def test_no_attempt_is_made_if_the_pause_exceeds_the_time_limit() -> None:
    flaky = Flaky([UpstreamUnavailable("come back in an hour", retry_after=3600)] * 3)
    callback = FunctionToolCallback.from_function(flaky.ask, retries=3, timeout=30)
    finished = await only(("ask", ""), tools=[callback])
    assert (finished.error_kind, flaky.runs) == ("upstream-unavailable", 1), "an hour is more than the tool has"


@pytest.mark.slow
async def test_all_attempts_share_one_time_limit() -> None:
    begun: list[int] = []

    @tool(retries=5, timeout=1.5)
    async def hangs() -> None:
        begun.append(1)
        if len(begun) > 1:
            await asyncio.Event().wait()
        raise Busy

    assert (await only(("hangs", ""), tools=[hangs])).error_kind == "timeout"
    assert len(begun) == 2


@pytest.mark.slow
async def test_the_pauses_before_further_tries_grow() -> None:
    begun: list[float] = []

    @tool(retries=3)
    async def ask() -> None:
        begun.append(asyncio.get_running_loop().time())
        raise Busy

    await only(("ask", ""), tools=[ask])
    pauses = [later - earlier for earlier, later in pairwise(begun)]
    assert [pause >= least for pause, least in zip(pauses, (0.09, 0.19, 0.39), strict=True)] == [True] * 3


async def test_cancelling_the_caller_ends_the_pause() -> None:
    flaky = Flaky([UpstreamUnavailable("wait", retry_after=15)])
    task = asyncio.create_task(only(("ask", ""), tools=[FunctionToolCallback.from_function(flaky.ask, retries=1)]))
    await until(lambda: flaky.runs == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert flaky.runs == 1
