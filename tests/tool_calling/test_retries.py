"""Tools that are tried again: after which errors, how often, and within which time."""

import asyncio
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from tests.tool_calling.calls import only, run
from tests.waiting import until
from toolchat.errors import NotFound, UpstreamUnavailable
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata, tool
from toolchat.tool_calling.errors import ToolDefinitionError, ToolExecutionError
from toolchat.tool_calling.exception_processor import ToolExecutionExceptionProcessor
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.manager import ToolCallingManager


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


async def test_a_custom_callback_is_retried_too() -> None:
    flaky = Flaky([Busy()])

    class Own(ToolCallback):
        definition = ToolDefinition("own", "Own", {"type": "object"})
        metadata = ToolMetadata(retries=1)

        async def call(self, tool_input: str, context: ToolContext) -> str:
            return await flaky.ask(context)

    assert (await only(("own", ""), tools=[Own()])).result == "answer 2"


async def test_cancelling_the_caller_ends_the_pause() -> None:
    flaky = Flaky([UpstreamUnavailable("wait", retry_after=15)])
    task = asyncio.create_task(only(("ask", ""), tools=[FunctionToolCallback.from_function(flaky.ask, retries=1)]))
    await until(lambda: flaky.runs == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert flaky.runs == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"retries": 1, "requires_approval": True}, "retries is not for a tool that requires approval"),
        ({"retries": -1}, "retries must be a whole number of at least 0"),
        ({"max_calls": 0}, "max_calls must be a whole number of at least 1"),
        ({"max_calls": "3"}, "max_calls must be a whole number of at least 1"),
        ({"max_calls": True}, "max_calls must be a whole number of at least 1"),
        ({"max_identical_calls": -2}, "max_identical_calls must be a whole number of at least 1"),
        ({"timeout": -1}, "timeout must be a number of at least 0.001"),
        ({"timeout": "3"}, "timeout must be a number of at least 0.001"),
        ({"timeout": float("nan")}, "timeout must be a number of at least 0.001"),
        ({"exclusive": "no"}, "exclusive must be True or False"),
    ],
)
def test_invalid_or_unsafe_metadata_stop_the_definition(options: dict[str, Any], told: str) -> None:
    def ask() -> None: ...

    for function, said in ((ask, options), (tool(**options)(ask), {})):
        with pytest.raises(ToolDefinitionError, match=rf"^tool ask: {told}$"):
            FunctionToolCallback.from_function(function, **said)
