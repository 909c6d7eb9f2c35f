"""Exception processors: what a model receives for an exception, and which exceptions end the question."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic_core import from_json

from tests.tool_calling.calls import only, run
from toolchat.errors import NotFound, ToolFailed, UpstreamTimeout
from toolchat.tool_calling.errors import ToolArgumentsError, ToolExecutionError
from toolchat.tool_calling.exception_processor import ToolExecutionExceptionProcessor
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
        await fails(ToolExecutionError("no such place", kind="no-such-place"), levels)

    async def denies() -> None:
        await fails(PermissionError("not yours"), levels)

    refused = await only(("refuses", ""), tools=[refuses])
    assert from_json(refused.result)["error"] == {"kind": "no-such-place", "message": "no such place"}
    with pytest.raises(PermissionError):
        await only(
            ("denies", ""), tools=[denies], exception_processor=ToolExecutionExceptionProcessor(rethrow=(OSError,))
        )


async def _raise(error: Exception) -> None:
    raise error


async def test_chosen_exceptions_reach_the_caller_as_they_are() -> None:
    error = PermissionError("not yours")

    async def raises() -> None:
        raise error

    manager = ToolCallingManager(exception_processor=ToolExecutionExceptionProcessor(rethrow=(OSError,)))
    with pytest.raises(PermissionError) as caught:
        await run(("raises", ""), tools=[raises], manager=manager)
    assert caught.value is error


class NeedsLogin(ToolExecutionError):
    """A tool's own failure that the caller wants to see."""


@pytest.mark.parametrize("asked", [["asks"], ["asks", "asks"]], ids=["one", "several"])
async def test_a_chosen_exception_of_the_tools_own_kind_reaches_the_caller_too(asked: list[str]) -> None:
    error = NeedsLogin("log in first")

    async def asks() -> None:
        raise error

    manager = ToolCallingManager(exception_processor=ToolExecutionExceptionProcessor(rethrow=(NeedsLogin,)))
    with pytest.raises(NeedsLogin) as caught:
        await run(*((name, "") for name in asked), tools=[asks], manager=manager)
    assert caught.value is error
    assert (await only(("asks", ""), tools=[asks])).result == '{"error":{"kind":"failed","message":"log in first"}}'


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
