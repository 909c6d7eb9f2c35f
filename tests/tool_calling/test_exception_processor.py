"""Whatever a tool raises: what the model is told, what the log keeps, and what ends the question."""

import asyncio
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic_core import from_json

from tests.tool_calling.calls import only, run
from tests.waiting import PATIENCE
from toolchat.errors import NotFound, ToolFailed, UpstreamTimeout
from toolchat.messages import ToolCall
from toolchat.tool_calling.callback import ToolCallback, ToolResult
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata
from toolchat.tool_calling.errors import ToolArgumentsError, ToolExecutionError
from toolchat.tool_calling.exception_processor import ToolExecutionExceptionProcessor
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.limits import CallCounter, ToolCallLimits
from toolchat.tool_calling.manager import ToolCallingManager


async def test_a_failing_tool_can_end_the_question() -> None:
    async def raises() -> None:
        raise ValueError("secret")

    strict = ToolCallingManager(exception_processor=ToolExecutionExceptionProcessor(always_throw=True))
    for asked in ([("raises", "")], [("raises", ""), ("raises", "{}")]):
        with pytest.raises(ToolFailed, match=r"^raises: the tool failed$"):
            await run(*asked, tools=[raises], manager=strict)
    wrong = await run(("raises", '{"a": 1}'), ("nothing", ""), tools=[raises], manager=strict)
    assert [each.error_kind for each in wrong.executions] == ["invalid-arguments", "unknown-tool"]


@dataclass
class Returning:
    """An exception processor that returns what it was made with."""

    returned: Any

    def process(self, error: BaseException, tool: str) -> Any:
        return self.returned


@pytest.mark.parametrize(
    ("returned", "kind", "result"),
    [
        ("it is broken", "lost", "it is broken"),
        (ToolExecutionError("broken", kind="b"), "b", '{"error":{"kind":"b","message":"broken"}}'),
        (ValueError("secret"), "failed", '{"error":{"kind":"failed","message":"the tool failed"}}'),
        (None, "lost", '{"error":{"kind":"lost","message":"text"}}'),
        ("", "lost", '{"error":{"kind":"lost","message":"text"}}'),
        (7, "lost", '{"error":{"kind":"lost","message":"text"}}'),
    ],
)
async def test_a_processor_of_ones_own_returns_an_error_or_a_text(returned: Any, kind: str, result: str) -> None:
    async def fails() -> None:
        raise ToolExecutionError("text", kind="lost")

    done = await only(("fails", ""), tools=[fails], exception_processor=Returning(returned))
    assert (done.outcome, done.error_kind, done.result) == ("error", kind, result)


class _Asynchronous:
    async def process(self, error: BaseException, tool: str) -> str:
        return "text"


class _Narrow:
    def process(self, error: BaseException) -> str:
        return "text"


@pytest.mark.parametrize("processor", [None, "text", str, _Asynchronous(), _Narrow(), lambda error, tool: "text"])
def test_what_is_no_processor_is_refused_when_it_is_set(processor: Any) -> None:
    with pytest.raises(TypeError, match=r"^an exception processor needs a method process\(error, tool\) .*$"):
        ToolCallingManager(exception_processor=processor)


@pytest.mark.parametrize("levels", [1, 2])
async def test_an_error_within_a_task_group_keeps_its_text(levels: int) -> None:
    async def fails(error: Exception, deeper: int) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fails(error, deeper - 1) if deeper else _raise(error))

    async def refuses() -> None:
        await fails(ToolExecutionError("no such place", kind="no-such-place", hint="add the country"), levels)

    async def denies() -> None:
        await fails(PermissionError("not yours"), levels)

    refused = await only(("refuses", ""), tools=[refuses])
    told = {"kind": "no-such-place", "message": "no such place", "hint": "add the country"}
    assert from_json(refused.result)["error"] == told
    with pytest.raises(PermissionError):
        await only(
            ("denies", ""), tools=[denies], exception_processor=ToolExecutionExceptionProcessor(rethrow=(OSError,))
        )


async def _raise(error: Exception) -> None:
    raise error


class NeedsLogin(ToolExecutionError):
    """A tool's own failure that the caller wants to see."""


@pytest.mark.parametrize("error", [PermissionError("not yours"), NeedsLogin("log in first")], ids=repr)
@pytest.mark.parametrize("number", [1, 2])
async def test_chosen_exceptions_reach_the_caller_as_they_are(error: Exception, number: int) -> None:
    async def raises() -> None:
        raise error

    manager = ToolCallingManager(exception_processor=ToolExecutionExceptionProcessor(rethrow=(OSError, NeedsLogin)))
    with pytest.raises(type(error)) as caught:
        await run(*[("raises", "")] * number, tools=[raises], manager=manager)
    assert caught.value is error
    assert (await only(("raises", ""), tools=[raises])).error_kind == "failed"


@pytest.mark.parametrize(
    ("error", "told", "logged"),
    [
        (ToolExecutionError("no such city", kind="no-such-city"), ("no-such-city", "no such city"), []),
        (ToolArgumentsError("city: too long"), ("invalid-arguments", "city: too long"), []),
        (NotFound("no such order"), ("not-found", "no such order"), []),
        (UpstreamTimeout("it did not answer"), ("upstream-timeout", "it did not answer"), ["WARNING"]),
        (LookupError("secret"), ("failed", "the tool failed"), ["ERROR"]),
    ],
)
def test_only_messages_meant_for_the_model_reach_it_and_faults_of_the_tool_are_logged(
    error: Exception, told: tuple[str, str], logged: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    processed = ToolExecutionExceptionProcessor().process(error, "tool")
    assert not isinstance(processed, str)
    assert (processed.kind, processed.message) == told
    assert [each.levelname for each in caplog.records] == logged


async def test_a_tool_that_cancels_its_own_task_has_only_failed() -> None:
    async def cancels() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()

    answer = await only(("cancels", ""), tools=[cancels])
    assert (answer.outcome, answer.error_kind) == ("error", "failed")


@pytest.mark.slow
async def test_a_tool_that_ignores_its_cancellation_is_abandoned() -> None:
    let_go = asyncio.Event()

    async def stubborn() -> None:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    try:
        answer = await only(("stubborn", ""), tools=[stubborn], timeout=0.05)
    finally:
        let_go.set()
    assert answer.error_kind == "timeout"


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_blocking_tool_learns_that_it_was_given_up(cancelled: bool) -> None:
    started, ended = threading.Event(), threading.Event()

    def wait(context: ToolContext) -> None:
        """Wait until nobody waits for this."""
        assert not context.given_up
        started.set()
        while not context.with_values({"a": 1}).given_up:
            time.sleep(0.001)
        ended.set()

    tool = FunctionToolCallback.from_function(wait, timeout=60 if cancelled else 0.05)
    calls = [ToolCall("1", "wait", "{}")]
    running = asyncio.create_task(
        ToolCallingManager().execute(calls, {"wait": tool}, ToolContext(), counter=CallCounter(ToolCallLimits()))
    )
    await asyncio.to_thread(started.wait, PATIENCE)
    if cancelled:
        running.cancel()
    assert await asyncio.to_thread(ended.wait, PATIENCE)
    await asyncio.gather(running, return_exceptions=True)


async def test_a_blocking_tool_that_raises_stop_iteration_fails_at_once() -> None:
    def stops() -> None:
        raise StopIteration

    answer = await only(("stops", ""), tools=[stops], timeout=10)
    assert answer.error_kind == "failed"


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize(
    "error",
    [ValueError("secret"), KeyError("secret"), TimeoutError("secret"), asyncio.CancelledError("secret"),
     SystemExit("secret"), KeyboardInterrupt("secret"), GeneratorExit("secret"), MemoryError("secret"),
     RecursionError("secret"), ExceptionGroup("secret", [ValueError("secret")]),
     BaseExceptionGroup("secret", [SystemExit("secret")]), StopAsyncIteration("secret")],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
async def test_an_exceptions_text_stays_in_the_log_and_the_other_calls_go_on(
    error: BaseException, blocking: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def raises_in_thread() -> None:
        raise error

    async def raises() -> None:
        raise error

    async def fine() -> str:
        return "fine"

    broken = raises_in_thread if blocking else raises
    result = await run((broken.__name__, ""), ("fine", ""), tools=[broken, fine])
    assert result.executions[0].result == '{"error":{"kind":"failed","message":"the tool failed"}}'
    assert result.executions[1].result == "fine"
    (record,) = caplog.records
    assert record.exc_info is not None
    assert type(record.exc_info[1]) is type(error)
    assert "secret" not in record.getMessage()


@pytest.mark.parametrize(
    ("error", "kind"),
    [(ToolExecutionError(""), "failed"), (ToolExecutionError(" \n", kind="lost"), "lost"), (NotFound(""), "not-found")],
    ids=["empty", "blank", "of an upstream"],
)
async def test_an_error_without_a_message_gets_the_name_of_the_tool(error: Exception, kind: str) -> None:
    async def mute() -> None:
        raise error

    told = from_json((await only(("mute", ""), tools=[mute])).result)["error"]
    assert told == {"kind": kind, "message": "the tool mute failed without a message"}


@pytest.mark.parametrize("message", ["\ud800 is no text", ValueError("is no text")], ids=["surrogate", "exception"])
async def test_an_error_whose_message_cannot_be_encoded_still_reaches_the_model(message: Any) -> None:
    async def fails() -> None:
        raise ToolExecutionError(message)

    told = from_json((await only(("fails", ""), tools=[fails])).result)["error"]
    assert told["message"].endswith("is no text")


@dataclass
class Own(ToolCallback):
    """A callback of one's own, which gives whatever it was made with."""

    gives: Any
    whole: bool = False
    metadata: ToolMetadata = field(default_factory=ToolMetadata)
    definition: ToolDefinition = field(default_factory=lambda: ToolDefinition("own", "Own", {"type": "object"}))

    async def call(self, tool_input: str, context: ToolContext) -> str:
        text: str = self.gives
        return text

    async def result(self, tool_input: str, context: ToolContext) -> ToolResult:
        result: ToolResult = self.gives if self.whole else await super().result(tool_input, context)
        return result


def given_back(value: Any) -> FunctionToolCallback:
    async def own() -> str:
        return "text"

    return FunctionToolCallback.from_function(own, result_converter=lambda result: value)


@pytest.mark.parametrize(
    ("callback", "kind"),
    [
        (Own(None), "tool-result"),
        (Own(b"text"), "tool-result"),
        (Own({"a": 1}), "tool-result"),
        (Own(5, metadata=ToolMetadata(cache_seconds=60)), "tool-result"),
        (Own("text", whole=True), "failed"),
        (given_back(None), "tool-result"),
        (given_back(["text"]), "tool-result"),
    ],
)
@pytest.mark.parametrize("number", [1, 2])
async def test_a_callback_or_converter_that_returns_no_text_is_a_failed_tool(
    callback: ToolCallback, kind: str, number: int
) -> None:
    done = await run(*[("own", "")] * number, tools=[callback])
    assert [(each.error_kind, from_json(each.result)["error"]["message"]) for each in done.executions] == [
        (kind, "the tool failed")
    ] * number
