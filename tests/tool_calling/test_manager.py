"""Running the calls of one assistant message."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import from_json

from app.errors import UpstreamTimeout
from app.messages import ToolCall
from app.tool_calling.callback import ToolCallback
from app.tool_calling.context import ToolContext
from app.tool_calling.errors import ToolExecutionError
from app.tool_calling.events import ToolCallFinished, ToolCallStarted
from app.tool_calling.function_callback import FunctionToolCallback, tool
from app.tool_calling.limits import CallCounter, ToolCallLimits
from app.tool_calling.manager import ToolCallingManager


async def ok(text: str = "fine") -> str:
    return text


def offer(*functions: Callable[..., Any]) -> Mapping[str, ToolCallback]:
    callbacks = [FunctionToolCallback.of(function) for function in functions]
    return {callback.definition.name: callback for callback in callbacks}


def call(name: str, arguments: str = "{}", identifier: str = "call_1") -> ToolCall:
    return ToolCall(identifier, name, arguments)


async def finished(
    manager: ToolCallingManager, offered: Mapping[str, ToolCallback], *calls: ToolCall,
    limits: ToolCallLimits | None = None,
) -> dict[str, ToolCallFinished]:  # fmt: skip
    events = manager.execute(calls, offered, ToolContext(), counter=CallCounter(limits or ToolCallLimits()))
    return {each.call.id: each async for each in events if isinstance(each, ToolCallFinished)}


async def test_a_start_and_an_end_are_told_for_every_call() -> None:
    calls = [call("ok", identifier="a"), call("ok", '{"text": "two"}', identifier="b")]
    running = ToolCallingManager().execute(calls, offer(ok), ToolContext(), counter=CallCounter(ToolCallLimits()))
    events = [event async for event in running]
    assert [event.call.id for event in events if isinstance(event, ToolCallStarted)] == ["a", "b"]
    assert {event.call.id: event.result for event in events if isinstance(event, ToolCallFinished)} == {
        "a": "fine",
        "b": "two",
    }


@pytest.mark.parametrize(
    "name", ["getTime", "default_api:ok", "OK", "", "x" * 300, "ok\nok", "\ud800", "时间"]
)  # fmt: skip
async def test_an_unknown_name_is_answered_with_the_names_that_are_known(name: str) -> None:
    answer = (await finished(ToolCallingManager(), offer(ok), call(name)))["call_1"]
    error = from_json(answer.result)["error"]
    assert (answer.outcome, answer.error_kind) == ("error", "unknown-tool")
    assert error["hint"] == "available: ok"
    assert len(answer.result) < 300
    assert "\n" not in error["message"]


async def test_one_call_that_fails_or_hangs_leaves_the_others_their_results() -> None:
    never = asyncio.Event()

    async def breaks() -> None:
        raise ValueError("secret detail")

    @tool(timeout=0.05)
    async def hangs() -> None:
        await never.wait()

    calls = [call("hangs", identifier="1"), call("breaks", identifier="2"), call("ok", identifier="3")]
    ended = await finished(ToolCallingManager(), offer(ok, breaks, hangs), *calls)
    assert {key: each.error_kind for key, each in ended.items()} == {"1": "timeout", "2": "failed", "3": None}
    assert "secret" not in ended["2"].result


async def test_calls_run_side_by_side_but_no_more_than_allowed() -> None:
    running, peak = 0, 0
    gate = asyncio.Barrier(2)

    async def counted() -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await gate.wait()
        running -= 1

    calls = [call("counted", f"{{ }}{' ' * number}", identifier=str(number)) for number in range(6)]
    manager = ToolCallingManager(max_concurrency=2)
    ended = await finished(manager, offer(counted), *calls, limits=ToolCallLimits(identical=10))
    assert len(ended) == 6
    assert peak == 2


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        TimeoutError(),
        asyncio.CancelledError(),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        MemoryError(),
        RecursionError(),
        ExceptionGroup("g", [ValueError()]),
        BaseExceptionGroup("g", [SystemExit()]),
        StopAsyncIteration(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_tool_raises_the_process_goes_on(error: BaseException) -> None:
    async def raises() -> None:
        raise error

    answer = (await finished(ToolCallingManager(), offer(raises), call("raises")))["call_1"]
    assert (answer.outcome, answer.error_kind) == ("error", "failed")


async def test_a_tool_that_cancels_its_own_task_has_only_failed() -> None:
    async def cancels() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()

    answer = (await finished(ToolCallingManager(), offer(cancels), call("cancels")))["call_1"]
    assert (answer.outcome, answer.error_kind) == ("error", "failed")


async def test_a_tool_that_will_not_be_cancelled_is_left_to_itself() -> None:
    let_go = asyncio.Event()

    async def stubborn() -> None:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    try:
        answer = (await finished(ToolCallingManager(timeout=0.05), offer(stubborn), call("stubborn")))["call_1"]
    finally:
        let_go.set()
    assert answer.error_kind == "timeout"


async def test_a_blocking_tool_that_raises_stop_iteration_fails_at_once() -> None:
    def stops() -> None:
        raise StopIteration

    answer = (await finished(ToolCallingManager(timeout=10), offer(stops), call("stops")))["call_1"]
    assert answer.error_kind == "failed"


async def test_a_tools_own_failure_is_told_word_for_word_and_an_upstreams_by_its_code() -> None:
    async def refuses() -> None:
        raise ToolExecutionError("no such place", kind="no-such-place", hint="add the country")

    async def waits() -> None:
        raise UpstreamTimeout("WeatherAPI did not answer within 10 s")

    calls = [call("refuses", identifier="1"), call("waits", identifier="2")]
    ended = await finished(ToolCallingManager(), offer(refuses, waits), *calls)
    assert from_json(ended["1"].result) == {
        "error": {"kind": "no-such-place", "message": "no such place", "hint": "add the country"}
    }
    assert ended["2"].error_kind == "upstream-timeout"


async def test_cancelling_the_caller_cancels_the_tools() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    for calls in ([call("slow")], [call("slow", identifier="a"), call("ok", identifier="b")]):
        started.clear()
        cancelled.clear()
        task = asyncio.create_task(finished(ToolCallingManager(), offer(slow, ok), *calls))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cancelled.is_set()


async def test_closing_the_events_early_cancels_the_tools() -> None:
    cancelled = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    calls = [call("slow", identifier="a"), call("ok", identifier="b")]
    running = ToolCallingManager().execute(calls, offer(slow, ok), ToolContext(), counter=CallCounter(ToolCallLimits()))
    async with aclosing(running) as events:
        async for event in events:
            if isinstance(event, ToolCallFinished):
                break
    assert cancelled.is_set()


async def test_a_long_result_is_cut() -> None:
    async def long() -> str:
        return "长" * 5_000_000

    answer = (await finished(ToolCallingManager(max_result_chars=1000), offer(long), call("long")))["call_1"]
    assert len(answer.result) < 1100


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        (ToolCallLimits(in_total=2), "limit"),
        (ToolCallLimits(per_tool=2), "limit"),
        (ToolCallLimits(identical=2), "repeated-call"),
    ],
)
async def test_a_call_beyond_a_limit_is_refused_and_not_run(limits: ToolCallLimits, kind: str) -> None:
    runs = 0

    async def counted(number: int = 0) -> None:
        nonlocal runs
        runs += 1

    calls = [
        call("counted", '{"number":1}', "1"),
        call("counted", '{ "number": 1 }', "2"),
        call("counted", '{"number":1}', "3"),
    ]
    ended = await finished(ToolCallingManager(), offer(counted), *calls, limits=limits)
    assert runs == 2
    assert [ended[key].error_kind for key in ("1", "2", "3")] == [None, None, kind]


_ANY_TEXT = st.text() | st.sampled_from(["{}", "null", "[]", '{"text":1}', '{"text":', "```", '"{}"', "\x00", "\ud800"])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.text() | st.just("ok"), _ANY_TEXT), min_size=1, max_size=4))
def test_no_call_however_hostile_escapes_or_goes_unanswered(hostile: list[tuple[str, str]]) -> None:
    calls = [ToolCall(str(number), name, arguments) for number, (name, arguments) in enumerate(hostile)]
    ended = asyncio.run(finished(ToolCallingManager(), offer(ok), *calls))
    assert set(ended) == {each.id for each in calls}
