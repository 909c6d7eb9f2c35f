"""Results of tools that may repeat: which calls are equal, how long results are kept, and runs that several share."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest

from tests.tool_calling.calls import PARIS, ROME, Atlas, asking, called, flights
from tests.waiting import PATIENCE, until
from toolchat import ToolSettings
from toolchat.errors import UpstreamTimeout
from toolchat.service.observability.logs import request_id
from toolchat.tool_calling.caching import RecentResults, SingleFlight, call_key
from toolchat.tool_calling.callback import ToolCallback, ToolResult
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata, tool
from toolchat.tool_calling.errors import ToolDefinitionError, ToolExecutionError
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.limits import CallCounter, ToolCallLimits


async def test_a_hundred_equal_calls_at_once_run_once_and_all_but_one_say_that_they_did_not() -> None:
    atlas = Atlas()
    async with asking(atlas, atlas.callback(), 100) as tasks:
        atlas.open()
        records = [each.to_dict() for each in await asyncio.gather(*tasks)]
    assert atlas.runs == ["Paris"]
    assert {record["result"] for record in records} == {"Paris 1"}
    assert sorted(record.get("cached", "absent") is True for record in records) == [False] + [True] * 99


async def test_a_later_equal_call_gets_the_result_and_another_city_is_looked_up() -> None:
    atlas = Atlas().open()
    callback = atlas.callback()
    results = [await called(callback, each) for each in (PARIS, PARIS, ROME, PARIS)]
    assert [(each.result, each.cached) for each in results] == [
        ("Paris 1", False), ("Paris 1", True), ("Rome 2", False), ("Paris 1", True),
    ]  # fmt: skip


@pytest.mark.parametrize("seconds", [None, 0])
async def test_without_a_time_every_call_runs_and_its_record_does_not_speak_of_a_cache(seconds: float | None) -> None:
    atlas = Atlas().open()
    last = await called(atlas.callback(cache_seconds=seconds), times=3)
    assert len(atlas.runs) == 3
    assert "cached" not in last.to_dict()


async def test_after_its_time_a_result_is_looked_up_again() -> None:
    atlas = Atlas().open()
    callback = atlas.callback(cache_seconds=0.05)
    assert (await called(callback)).result == "Paris 1"
    async with asyncio.timeout(PATIENCE):
        while (last := await called(callback)).cached:
            pass
    assert last.result == "Paris 2"


async def test_a_cached_call_counts_as_a_call_and_stays_direct() -> None:
    callback = Atlas().open().callback(return_direct=True)
    counter = CallCounter(ToolCallLimits(identical=3))
    assert (await called(callback, counter=counter, times=3)).return_direct
    assert (await called(callback, counter=counter)).error_kind == "repeated-call"


async def test_the_copies_for_the_sandbox_and_for_another_time_share_nothing_with_the_original() -> None:
    # A result of invented data never answers where real data is expected, nor the other way round.
    original = Atlas().open().callback()
    invented = original.in_sandbox()
    for number, callback in enumerate(
        (original, invented, original.with_cache_ttl(300), invented.with_cache_ttl(300)), 1
    ):
        first, second = await called(callback), await called(callback)
        assert (first.result, first.cached, second.cached) == (f"Paris {number}", False, True)
        assert first.sandbox is second.sandbox is (number % 2 == 0)


@dataclass
class Counting(ToolCallback):
    """A callback of one's own, which has no cache."""

    definition: ToolDefinition = field(default_factory=lambda: ToolDefinition("count", "Count", {"type": "object"}))
    metadata: ToolMetadata = field(default_factory=lambda: ToolMetadata(cache_seconds=60))
    runs: int = 0

    async def call(self, tool_input: str, context: ToolContext) -> str:
        self.runs += 1
        return str(self.runs)


class KeepingSettings(ToolSettings):
    """A folder's settings that say how long results are kept."""

    cache_seconds: float = 5


async def locate(city: Annotated[str, "The city"]) -> str:
    """Tell where a city is."""
    return city


def test_a_folders_settings_reach_only_tools_that_declare_a_cache_themselves() -> None:
    # A tool that changes something is never cached because its neighbour may be.
    settings = KeepingSettings()
    declared, undeclared, own = Atlas().callback(), FunctionToolCallback.from_function(locate), Counting()
    assert settings.applied_to(declared).metadata.cache_seconds == 5
    assert settings.applied_to(undeclared) is undeclared
    assert settings.applied_to(own) is own
    assert ToolSettings().applied_to(declared) is declared


async def whose(context: ToolContext, city: str) -> str:
    """Tell whose city this is."""
    return f"{context.get('tenant')} {city}"


async def test_a_default_is_filled_in_before_calls_are_compared() -> None:
    atlas = Atlas().open()
    callback = atlas.callback()
    for arguments in (PARIS, '{"detail": 1, "city": "Paris"}', '```json\n{"city": "Paris"}\n```', '{"city":"Paris",}'):
        assert (await called(callback, arguments, times=2)).cached
    assert len(atlas.runs) == 3


def test_the_result_that_was_not_used_for_longest_makes_room() -> None:
    recent = RecentResults(60, max_entries=3)
    for key in (b"1", b"2", b"3"):
        recent.put(key, ToolResult(key.decode()))
    assert recent.get(b"1") == ToolResult("1")
    recent.put(b"4", ToolResult("4"))
    stored = [recent.get(key) for key in (b"1", b"2", b"3", b"4")]
    assert [each and each.text for each in stored] == ["1", None, "3", "4"]


@pytest.mark.parametrize("letter", ["a", "é", "中", "😀"])
@pytest.mark.parametrize("in_data", [False, True])
def test_all_results_together_take_no_more_memory_than_allowed(letter: str, in_data: bool) -> None:
    recent = RecentResults(60, max_bytes=10_000)
    for number in range(200):
        text = letter * (number * 37 % 900)
        recent.put(b"%d" % (number % 150), ToolResult(text, data=text if in_data else None))
        taken = [result.text.__sizeof__() for result, _, _ in recent._stored.values()]
        assert sum(taken) <= recent._bytes <= 10_000
    assert recent.get(b"49") is not None
    recent.put(b"49", ToolResult("", data=letter * 10_000) if in_data else ToolResult(letter * 10_000))
    assert recent.get(b"49") is None


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


SCHEMA = {"properties": {"q": {}, "days": {"default": 3}}}


@pytest.mark.parametrize(
    ("one", "other", "is_equal"),
    [
        ('{"q":"x","days":3}', '{"q": "x"}', True),
        ('{"days": 3, "q": "x"}', ' {"q": "\\u0078"}\n', True),
        ('{"q": "y", "q": "x"}', '{"q": "x"}', True),
        *((each, '{"q": "x"}', False) for each in (
            '{"q":"X"}', '{"q":"x","days":4}', '{"q":"x","days":"3"}', '{"q":"x","days":3.0}', '{"q":["x"]}',
            '{"q":"x "}', '{"city":"x"}', '{"q":"x","other":1}', '```{"q":"x"}```', '"{}"', "", "{}",
        )),
        ('{"q": 1}', '{"q": true}', False),
        ('{"q": 0}', '{"q": -0.0}', False),
        ('{"q": null}', '{"q": "null"}', False),
        ('{"q": []}', '{"q": {}}', False),
    ],
)  # fmt: skip
def test_only_order_blanks_escapes_and_written_defaults_make_no_difference(
    one: str, other: str, is_equal: bool
) -> None:
    assert (call_key(one, SCHEMA) == call_key(other, SCHEMA)) is is_equal


@pytest.mark.parametrize(
    ("function", "metadata", "told"),
    [
        (whose, {}, "tool whose: cache_seconds is not for a tool with a ToolContext (parameter context)"),
        (locate, {"requires_approval": True}, "tool locate: cache_seconds is not for a tool that requires approval"),
        (locate, {"cache_seconds": -1}, "tool locate: cache_seconds must be a number of at least 0"),
        (locate, {"cache_seconds": float("nan")}, "tool locate: cache_seconds must be a number of at least 0"),
    ],
)
def test_a_tool_that_cannot_be_cached_stops_the_definition(
    function: Callable[..., Any], metadata: dict[str, Any], told: str
) -> None:
    settings = {"cache_seconds": 60.0} | metadata
    with pytest.raises(ToolDefinitionError) as caught:
        FunctionToolCallback.from_function(function, metadata=ToolMetadata(**settings))
    assert str(caught.value).startswith(told)


async def test_a_caller_that_waits_and_leaves_changes_nothing_for_the_others() -> None:
    atlas = Atlas()
    async with asking(atlas, atlas.callback(), 3) as (first, second, third):
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        atlas.open()
        assert [each.cached for each in await asyncio.gather(first, third)] == [False, True]
    assert atlas.runs == ["Paris"]
