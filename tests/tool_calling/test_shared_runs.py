"""One run for several callers: its errors, callers who leave, and that it belongs to none of them."""

import asyncio
import contextvars
import threading

import pytest

from tests.tool_calling.calls import Atlas, asking, called, flights
from tests.waiting import PATIENCE, until
from toolchat.errors import UpstreamTimeout
from toolchat.service.observability.logs import request_id
from toolchat.tool_calling.caching import RecentResults, SingleFlight
from toolchat.tool_calling.callback import ToolResult
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.function_callback import FunctionToolCallback


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (ToolExecutionError("no such city", kind="no-such-city"), "no-such-city"),
        (UpstreamTimeout("too slow"), "upstream-timeout"),
        (ValueError("secret"), "failed"),
        (asyncio.CancelledError(), "failed"),
        (SystemExit(3), "failed"),
        (StopAsyncIteration(), "failed"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_an_error_reaches_every_waiting_caller_and_is_not_cached(fault: BaseException, kind: str) -> None:
    atlas = Atlas(faults=[fault])
    callback = atlas.callback()
    async with asking(atlas, callback, 5) as tasks:
        atlas.open()
        ended = await asyncio.gather(*tasks)
    assert [(each.error_kind, each.cached) for each in ended] == [(kind, False)] * 5
    assert len(atlas.runs) == 1
    after = await called(callback)
    assert (after.result, after.cached) == ("Paris 2", False)


async def test_the_traceback_of_a_shared_error_does_not_grow() -> None:
    fault = ToolExecutionError("no")
    cache, door = SingleFlight(RecentResults(60)), asyncio.Event()

    async def fails() -> ToolResult:
        await door.wait()
        raise fault

    async def depth() -> int:
        with pytest.raises(ToolExecutionError) as caught:
            await cache.result(b"key", fails)
        return len(caught.traceback)

    waiting = [asyncio.create_task(depth()) for _ in range(50)]
    await asyncio.sleep(0)
    door.set()
    assert len(set(await asyncio.gather(*waiting))) == 1


async def test_if_the_caller_of_the_run_leaves_one_of_the_others_runs_it_anew() -> None:
    atlas = Atlas()
    async with asking(atlas, atlas.callback(), 3) as (first, *others):
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await until(lambda: len(atlas.runs) == 2)
        assert atlas.ended == ["Paris"]
        atlas.open()
        ended = await asyncio.gather(*others)
    assert [(each.result, each.cached) for each in ended] == [("Paris 2", False), ("Paris 2", True)]


async def test_a_caller_that_waits_and_leaves_changes_nothing_for_the_others() -> None:
    atlas = Atlas()
    async with asking(atlas, atlas.callback(), 3) as (first, second, third):
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        atlas.open()
        assert [each.cached for each in await asyncio.gather(first, third)] == [False, True]
    assert atlas.runs == ["Paris"]


async def test_the_run_is_cancelled_with_its_last_caller() -> None:
    atlas = Atlas()
    callback = atlas.callback()
    async with asking(atlas, callback, 3) as tasks:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (atlas.runs, atlas.ended) == (["Paris"], ["Paris"])
        assert flights(callback) == {}
        atlas.open()
        assert (await called(callback)).result == "Paris 2"


async def test_each_caller_keeps_the_time_limit_of_its_own() -> None:
    atlas = Atlas()
    callback = atlas.callback()
    patient = asyncio.create_task(called(callback, timeout=30))
    await until(lambda: bool(atlas.runs))
    hurried = await called(callback, timeout=0.05)
    assert (hurried.error_kind, hurried.cached) == ("timeout", False)
    atlas.open()
    assert (await patient).result == "Paris 1"
    assert (await called(callback)).cached


async def test_a_look_up_that_hangs_holds_no_later_question_beyond_its_own_time() -> None:
    atlas = Atlas()
    callback = atlas.callback()
    hurried = asyncio.create_task(called(callback, timeout=0.05))
    await until(lambda: bool(atlas.runs))
    newcomer = asyncio.create_task(called(callback))
    assert (await hurried).error_kind == "timeout"
    await until(lambda: len(atlas.runs) == 2)
    atlas.open()
    assert not (await newcomer).cached


async def test_a_kept_call_that_no_thread_began_is_busy_as_well() -> None:
    released, begun = threading.Event(), []

    @tool(cache_seconds=60)
    def hang(number: int) -> None:
        """Wait for the upstream."""
        begun.append(number)
        released.wait(PATIENCE)

    callback = FunctionToolCallback.from_function(hang)
    taken = [asyncio.create_task(called(callback, f'{{"number": {number}}}')) for number in range(8)]
    await until(lambda: len(begun) == 8)
    assert (await called(callback, '{"number": 8}', timeout=0.05)).error_kind == "busy"
    released.set()
    await asyncio.gather(*taken)
    assert 8 not in begun


async def test_a_run_sees_no_callers_context_variables_and_no_request_id() -> None:
    # It answers everybody, so it belongs to no request, the first caller's included.
    tenant = contextvars.ContextVar("tenant", default="nobody")

    @tool(cache_seconds=60)
    async def whose() -> str:
        """Tell whose shop this is."""
        return f"{tenant.get()}/{request_id.get()}"

    tenant.set("acme")
    request_id.set("request-1")
    assert (await called(FunctionToolCallback.from_function(whose), "{}")).result == "nobody/"
    assert request_id.get() == "request-1"
