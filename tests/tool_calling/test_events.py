"""Tools tell how far they are: from wherever they run, at a bounded rate, and without ever failing by it."""

import asyncio
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from tests.tool_calling.calls import EMPTY, call, executing, run
from tests.waiting import PATIENCE
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.events import ToolCallEvent, ToolCallFinished, ToolCallProgress, ToolCallStarted
from toolchat.tool_calling.function_callback import FunctionToolCallback

FOR_EVER = 3600.0


def progress_of(events: list[ToolCallEvent]) -> list[dict[str, Any]]:
    return [event.to_dict() for event in events if isinstance(event, ToolCallProgress)]


async def reported(say: Callable[[ToolContext], object], **settings: Any) -> list[dict[str, Any]]:
    """What listeners are told of a tool that reports on the event loop."""

    async def working(context: ToolContext) -> str:
        say(context)
        return "worked"

    events = await executing(call("working"), tools=[working], **settings)
    assert isinstance(events[-1], ToolCallFinished)
    assert events[-1].outcome == "ok", events[-1].result
    return progress_of(events)


class Station:
    """The same work as a method, waited for and blocking."""

    @tool
    async def wait(self, context: ToolContext) -> str:
        """Wait."""
        context.report(1, of=2, text="half")
        return "waited"

    @tool
    def block(self, context: ToolContext | None = None) -> str:
        """Block."""
        assert context is not None
        assert threading.current_thread() is not threading.main_thread()
        context.report(1, of=2, text="half")
        return "blocked"


@pytest.mark.parametrize("method", ["wait", "block"])
async def test_a_report_is_emitted_between_start_and_end(method: str) -> None:
    events = await executing(call(method, identifier="c-1"), tools=[getattr(Station(), method)])
    assert [type(event) for event in events] == [ToolCallStarted, ToolCallProgress, ToolCallFinished]
    assert progress_of(events) == [{"id": "c-1", "name": method, "done": 1, "of": 2, "text": "half", "round": 1}]
    assert str(events[1]) == f"{method}: 1 of 2, half"


async def test_a_report_is_emitted_while_the_tool_runs() -> None:
    heard = asyncio.Event()

    async def emit(event: ToolCallEvent) -> None:
        if isinstance(event, ToolCallProgress):
            heard.set()

    async def patient(context: ToolContext) -> str:
        context.report(1)
        await heard.wait()
        return "heard"

    ended = await asyncio.wait_for(run(("patient", ""), tools=[patient], emit=emit), PATIENCE)
    assert ended.executions[0].result == "heard"


async def test_a_thread_of_the_tools_own_may_report() -> None:
    def working(context: ToolContext) -> str:
        thread = threading.Thread(target=context.report, args=(3,))
        thread.start()
        thread.join(PATIENCE)
        return "worked"

    assert [each["done"] for each in progress_of(await executing(call("working"), tools=[working]))] == [3]


async def test_of_reports_that_come_too_fast_the_first_and_the_last_are_emitted() -> None:
    async def working(context: ToolContext) -> str:
        for number in range(1000):
            context.report(number, of=1000)
            await asyncio.sleep(0)
        return "worked"

    events = await executing(call("working"), tools=[working], progress_pause=FOR_EVER)
    first, last = (each["done"] for each in progress_of(events))
    assert first < 10
    assert last == 999


async def test_reports_of_an_abandoned_thread_are_ignored() -> None:
    late, reported_late = threading.Event(), threading.Event()

    def working(context: ToolContext) -> str:
        context.report(1)
        late.wait(PATIENCE)
        context.report(2)
        reported_late.set()
        return "worked"

    callback = FunctionToolCallback.from_function(working, timeout=0.2)
    events = await executing(call("working"), tools=[callback])
    late.set()
    assert await asyncio.to_thread(reported_late.wait, PATIENCE)
    assert isinstance(events[-1], ToolCallFinished)
    assert events[-1].error_kind == "timeout"
    assert [each["done"] for each in progress_of(events)] == [1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((float("nan"),), None),
        ((float("inf"),), None),
        ((10**400,), None),
        ((-3,), {"done": 0}),
        ((Fraction(1, 2),), {"done": 0.5}),
        ((1, float("nan")), {"done": 1}),
        ((1, -8), {"done": 1}),
        ((1, 0), {"done": 1}),
        ((9, 8), {"done": 9, "of": 8}),
        ((1, None, "a\x1b[31m\n b\t\u202ec"), {"done": 1, "text": "a [31m b c"}),
        ((1, None, " \n"), {"done": 1}),
        ((1, None, "x" * 10_000_000), {"done": 1, "text": "x" * 199 + "…"}),
        ((1, None, "a\ud800b"), {"done": 1, "text": "a b"}),
    ],
    ids=lambda given: repr(given)[:40],
)
async def test_odd_values_are_emitted_as_far_as_they_make_sense(
    arguments: tuple[Any, ...], told: dict[str, Any] | None
) -> None:
    done, of, text = (*arguments, None, None)[:3]
    records = await reported(lambda context: context.report(done, of=of, text=text))
    frame = {"id": "call_1", "name": "working", "round": 1}
    assert records == ([] if told is None else [frame | told])


@pytest.mark.parametrize(
    "odd",
    [
        {"done": "3"},
        {"done": None},
        {"done": True},
        {"done": Decimal(1)},
        {"done": 1, "of": "8"},
        {"done": 1, "text": 8},
    ],
    ids=repr,
)
async def test_a_report_of_a_wrong_type_is_an_error_of_the_tool(odd: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        EMPTY.report(**odd)

    async def working(context: ToolContext) -> str:
        context.report(**odd)
        return "worked"

    *_, last = await executing(call("working"), tools=[working])
    assert isinstance(last, ToolCallFinished)
    assert (last.outcome, last.error_kind) == ("error", "failed")


async def test_copies_of_a_context_report_too() -> None:
    told = await reported(lambda context: context.with_values({"a": 1}).with_history(()).report(4))
    assert [each["done"] for each in told] == [4]


async def test_a_report_without_a_listener_does_nothing() -> None:
    async def working(context: ToolContext) -> str:
        context.report(1, of=2, text="half")
        return "worked"

    assert (await run(("working", ""), tools=[working])).executions[0].result == "worked"


async def test_a_question_that_is_cancelled_leaves_no_task_behind() -> None:
    telling = asyncio.Event()

    async def stuck(event: ToolCallEvent) -> None:
        if isinstance(event, ToolCallProgress):
            telling.set()
            await asyncio.Event().wait()

    async def working(context: ToolContext) -> str:
        context.report(1)
        await asyncio.Event().wait()
        return "never"

    before = asyncio.all_tasks()
    question = asyncio.create_task(run(("working", ""), tools=[working], emit=stuck))
    await asyncio.wait_for(telling.wait(), PATIENCE)
    question.cancel()
    await asyncio.gather(question, return_exceptions=True)
    assert question.cancelled()
    assert asyncio.all_tasks() == before


async def test_a_listener_that_fails_ends_the_question() -> None:
    async def refuses(event: ToolCallEvent) -> None:
        if isinstance(event, ToolCallProgress):
            raise OSError("nobody listens")

    async def working(context: ToolContext) -> str:
        context.report(1)
        return "worked"

    with pytest.raises(OSError, match="nobody listens"):
        await run(("working", ""), tools=[working], emit=refuses)
