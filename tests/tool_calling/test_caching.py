"""Tools that may repeat: one run for equal calls, for a while, within bounds."""

import asyncio
import contextvars
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from app.errors import ConfigurationError, UpstreamTimeout
from app.logs import request_id
from app.messages import ToolCall
from app.tool_calling.caching import RecentResults, ResultCache, _Flight, call_key
from app.tool_calling.callback import ToolCallback
from app.tool_calling.context import ToolContext
from app.tool_calling.definition import ToolDefinition, ToolMetadata
from app.tool_calling.errors import ToolDefinitionError, ToolExecutionError
from app.tool_calling.events import ToolCallFinished
from app.tool_calling.function_callback import FunctionToolCallback, tool
from app.tool_calling.limits import CallCounter, ToolCallLimits
from app.tool_calling.manager import ToolCallingManager
from app.tool_calling.method_callback import MethodToolCallbackProvider
from app.tools.module import ToolModule, ToolSettings
from app.tools.registry import ConfiguredModule

PARIS, ROME = '{"city": "Paris"}', '{"city": "Rome"}'


@dataclass
class Atlas:
    """A tool that may repeat, and a door that keeps its runs inside until it is opened."""

    door: asyncio.Event = field(default_factory=asyncio.Event)
    runs: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    faults: list[BaseException] = field(default_factory=list)

    @tool(cache_seconds=60)
    async def locate(self, city: str, detail: int = 1) -> str:
        """Tell where a city is."""
        self.runs.append(city)
        try:
            await self.door.wait()
        finally:
            self.ended.append(city)
        if self.faults:
            raise self.faults.pop(0)
        return f"{city} {len(self.runs)}"

    def open(self) -> "Atlas":
        self.door.set()
        return self

    def callback(self, **metadata: Any) -> FunctionToolCallback:
        return FunctionToolCallback.of(self.locate, metadata=ToolMetadata(**{"cache_seconds": 60} | metadata))


async def run(
    callback: ToolCallback, arguments: str = PARIS, *, times: int = 1, counter: CallCounter | None = None, **limits: Any
) -> ToolCallFinished:
    """One call as a question makes it; with ``times`` the last of several, one after the other."""
    name = callback.definition.name
    counter = counter or CallCounter(ToolCallLimits())
    for _ in range(times):
        calls = [ToolCall("call_1", name, arguments)]
        events = ToolCallingManager(**limits).execute(calls, {name: callback}, ToolContext(), counter=counter)
        *_, last = [event async for event in events]
    assert isinstance(last, ToolCallFinished)
    return last


async def until(condition: Callable[[], bool]) -> None:
    """Let the event loop run until something is so; ten seconds at most."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


@asynccontextmanager
async def asking(
    atlas: Atlas, callback: FunctionToolCallback, number: int
) -> AsyncGenerator[list[asyncio.Task[ToolCallFinished]], None]:
    """Equal calls that all wait for the one run, which waits at the door."""
    tasks = [asyncio.create_task(run(callback)) for _ in range(number)]
    await until(lambda: sum(flight.waiting for flight in flights(callback).values()) == number)
    yield tasks
    atlas.open()
    await asyncio.gather(*tasks, return_exceptions=True)


def flights(callback: FunctionToolCallback) -> dict[bytes, _Flight]:
    assert callback._cache is not None
    return callback._cache._flights


# One run


async def test_a_hundred_equal_calls_at_once_run_once_and_all_but_one_say_that_they_did_not() -> None:
    atlas = Atlas()
    async with asking(atlas, atlas.callback(), 100) as tasks:
        atlas.open()
        records = [each.as_record() for each in await asyncio.gather(*tasks)]
    assert atlas.runs == ["Paris"]
    assert {record["result"] for record in records} == {"Paris 1"}
    assert sorted(record.get("cached", "absent") is True for record in records) == [False] + [True] * 99


async def test_a_later_equal_call_gets_the_result_and_another_city_is_looked_up() -> None:
    atlas = Atlas().open()
    callback = atlas.callback()
    results = [(await run(callback, each)) for each in (PARIS, PARIS, ROME, PARIS)]
    assert [(each.result, each.cached) for each in results] == [
        ("Paris 1", False), ("Paris 1", True), ("Rome 2", False), ("Paris 1", True),
    ]  # fmt: skip


@pytest.mark.parametrize("seconds", [None, 0])
async def test_without_a_time_every_call_runs_and_its_record_does_not_speak_of_a_cache(seconds: float | None) -> None:
    atlas = Atlas().open()
    last = await run(atlas.callback(cache_seconds=seconds), times=3)
    assert len(atlas.runs) == 3
    assert "cached" not in last.as_record()


async def test_after_its_time_a_result_is_looked_up_again() -> None:
    atlas = Atlas().open()
    callback = atlas.callback(cache_seconds=0.05)
    assert (await run(callback, times=2)).result == "Paris 1"
    async with asyncio.timeout(10):
        while (last := await run(callback)).cached:
            pass
    assert last.result == "Paris 2"


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


async def test_a_callback_without_a_cache_runs_each_time() -> None:
    last = await run(Counting(), times=3)
    assert (last.result, last.cached) == ("3", False)
    uncached = Atlas().open().callback(cache_seconds=None)
    assert [await uncached.cached_call(PARIS, ToolContext()) for _ in range(2)] == [
        ("Paris 1", False),
        ("Paris 2", False),
    ]


def test_a_folders_settings_reach_only_tools_that_declare_a_cache_themselves() -> None:
    """A tool that changes something is never cached because its neighbour may be."""
    settings = KeepingSettings()
    declared, undeclared, own = Atlas().callback(), FunctionToolCallback.of(locate), Counting()
    assert settings.applied_to(declared).metadata.cache_seconds == 5
    assert settings.applied_to(undeclared) is undeclared
    assert settings.applied_to(own) is own
    assert ToolSettings().applied_to(declared) is declared


async def test_methods_and_blocking_functions_are_run_once_too() -> None:
    runs: list[str] = []

    @tool(cache_seconds=60)
    def measure(city: str) -> str:
        runs.append(city)
        return city

    (method,) = MethodToolCallbackProvider(atlas := Atlas().open()).tool_callbacks()
    for callback in (method, FunctionToolCallback.of(measure)):
        assert (await run(callback, times=3)).cached
    assert (atlas.runs, runs) == (["Paris"], ["Paris"])


async def test_a_cached_call_counts_as_a_call_and_stays_direct() -> None:
    callback = Atlas().open().callback(return_direct=True)
    counter = CallCounter(ToolCallLimits(identical=3))
    assert (await run(callback, counter=counter, times=3)).return_direct
    assert (await run(callback, counter=counter)).error_kind == "repeated-call"


async def test_the_copies_for_the_sandbox_and_for_another_time_share_nothing_with_the_original() -> None:
    """A result of invented data never answers where real data is expected, nor the other way round."""
    original = Atlas().open().callback()
    invented = original.in_sandbox()
    for number, callback in enumerate((original, invented, original.cached_for(5), invented.cached_for(5)), 1):
        first, second = await run(callback), await run(callback)
        assert (first.result, first.cached, second.cached) == (f"Paris {number}", False, True)
        assert first.sandbox is second.sandbox is (number % 2 == 0)


# What is an equal call


class Forecast(BaseModel):
    """A whole input."""

    city: Annotated[str, Field(alias="q")]
    days: int = 3


def forecast(request: Forecast) -> None: ...


SCHEMA = FunctionToolCallback.of(forecast).definition.input_schema


@pytest.mark.parametrize(
    "text",
    ['{"q":"x","days":3}', '{"days": 3, "q": "x"}', ' {"q": "x"}\n', '{"q": "\\u0078"}', '{"q": "y", "q": "x"}'],
)  # fmt: skip
def test_order_blanks_escapes_and_written_defaults_make_no_difference(text: str) -> None:
    assert call_key(text, SCHEMA) == call_key('{"q": "x"}', SCHEMA)


@pytest.mark.parametrize(
    "text",
    ['{"q":"X"}', '{"q":"x","days":4}', '{"q":"x","days":"3"}', '{"q":"x","days":3.0}', '{"q":["x"]}', '{"q":"x "}',
     '{"city":"x"}', '{"q":"x","other":1}', '```{"q":"x"}```', '"{}"', "", "{}"],
)  # fmt: skip
def test_any_other_difference_makes_another_call(text: str) -> None:
    assert call_key(text, SCHEMA) != call_key('{"q": "x"}', SCHEMA)


@pytest.mark.parametrize(("one", "two"), [("1", "true"), ("0", "-0.0"), ("null", '"null"'), ("[]", "{}")])
def test_values_that_python_holds_equal_are_different_calls_where_json_tells_them_apart(one: str, two: str) -> None:
    assert call_key(f'{{"q": {one}}}', {}) != call_key(f'{{"q": {two}}}', {})


async def test_a_default_is_filled_in_before_calls_are_compared() -> None:
    atlas = Atlas().open()
    callback = atlas.callback()
    for arguments in (PARIS, '{"detail": 1, "city": "Paris"}', '```json\n{"city": "Paris"}\n```', '{"city":"Paris",}'):
        assert (await run(callback, arguments, times=2)).cached
    assert len(atlas.runs) == 3


async def test_arguments_that_do_not_fit_run_nothing_and_are_not_kept() -> None:
    atlas = Atlas().open()
    last = await run(atlas.callback(), '{"city": 1}', times=2)
    assert (last.error_kind, last.cached, atlas.runs) == ("invalid-arguments", False, [])


# Errors


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
async def test_an_error_is_told_to_all_who_wait_and_is_not_kept(fault: BaseException, kind: str) -> None:
    atlas = Atlas(faults=[fault])
    callback = atlas.callback()
    async with asking(atlas, callback, 5) as tasks:
        atlas.open()
        ended = await asyncio.gather(*tasks)
    assert [(each.error_kind, each.cached) for each in ended] == [(kind, False)] * 5
    assert len(atlas.runs) == 1
    after = await run(callback)
    assert (after.result, after.cached) == ("Paris 2", False)


async def test_a_shared_error_does_not_grow_with_those_who_are_told() -> None:
    fault = ToolExecutionError("no")
    cache, door = ResultCache(RecentResults(60)), asyncio.Event()

    async def fails() -> str:
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


# Callers who leave


async def test_a_first_caller_who_leaves_takes_nothing_from_the_others() -> None:
    atlas = Atlas()
    async with asking(atlas, atlas.callback(), 3) as (first, *others):
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert atlas.ended == []
        atlas.open()
        ended = await asyncio.gather(*others)
    assert [(each.result, each.cached) for each in ended] == [("Paris 1", True)] * 2
    assert (await run(atlas.callback())).result == "Paris 2"


async def test_the_run_ends_with_the_last_caller_who_leaves() -> None:
    atlas = Atlas()
    callback = atlas.callback()
    async with asking(atlas, callback, 3) as tasks:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (atlas.runs, atlas.ended) == (["Paris"], ["Paris"])
        assert flights(callback) == {}
        atlas.open()
        assert (await run(callback)).result == "Paris 2"


async def test_each_caller_keeps_the_time_limit_of_its_own() -> None:
    atlas = Atlas()
    callback = atlas.callback()
    patient = asyncio.create_task(run(callback, timeout=30))
    await until(lambda: bool(atlas.runs))
    hurried = await run(callback, timeout=0.05)
    assert (hurried.error_kind, hurried.cached) == ("timeout", False)
    atlas.open()
    assert (await patient).result == "Paris 1"
    assert (await run(callback)).cached


async def test_nobody_new_waits_for_a_run_that_somebody_has_given_up() -> None:
    """One look-up that hangs must not hold every later question about the same city."""
    atlas = Atlas()
    callback = atlas.callback()
    async with asking(atlas, callback, 1):
        assert (await run(callback, timeout=0.05)).error_kind == "timeout"
        newcomer = asyncio.create_task(run(callback))
        await until(lambda: len(atlas.runs) == 2)
        atlas.open()
        assert not (await newcomer).cached


# Whose call it is


async def test_a_run_belongs_to_no_request(caplog: pytest.LogCaptureFixture) -> None:
    """Neither the first caller's context variables nor its request id reach what answers everybody."""
    tenant = contextvars.ContextVar("tenant", default="nobody")

    @tool(cache_seconds=60)
    async def whose() -> str:
        """Tell whose shop this is."""
        return f"{tenant.get()}/{request_id.get()}"

    tenant.set("acme")
    request_id.set("request-1")
    with caplog.at_level(logging.INFO):
        assert (await run(FunctionToolCallback.of(whose), "{}")).result == "nobody/"
    assert request_id.get() == "request-1"


async def whose(context: ToolContext, city: str) -> str:
    """Tell whose city this is."""
    return f"{context.get('tenant')} {city}"


async def locate(city: Annotated[str, "The city"]) -> str:
    """Tell where a city is."""
    return city


@pytest.mark.parametrize(
    ("function", "metadata", "told"),
    [
        (whose, {}, "tool whose: cache_seconds is not for a tool with a ToolContext (parameter context)"),
        (locate, {"requires_approval": True}, "tool locate: cache_seconds is not for a tool that requires approval"),
        (locate, {"cache_seconds": -1}, "tool locate: cache_seconds must not be negative"),
        (locate, {"cache_seconds": float("nan")}, "tool locate: cache_seconds must not be negative"),
    ],
)
def test_a_tool_that_cannot_be_cached_stops_the_start_with_its_file(
    function: Callable[..., Any], metadata: dict[str, Any], told: str
) -> None:
    settings = {"cache_seconds": 60.0} | metadata
    with pytest.raises(ToolDefinitionError) as caught:
        FunctionToolCallback.of(function, metadata=ToolMetadata(**settings))
    assert str(caught.value).startswith(told)
    copy = type("marked", (), {"__call__": function, "__doc__": function.__doc__})
    tool(name=function.__name__, **settings)(copy)
    with pytest.raises(ConfigurationError) as at_start:
        ConfiguredModule.read(ToolModule(functions=(copy,)).in_folder("atlas", Path(__file__).parent))
    (line,) = str(at_start.value).splitlines()
    assert "tool_calling/" in line.split(": ")[0]
    assert told in line


# Bounds


def test_the_result_that_was_not_used_for_longest_makes_room() -> None:
    recent = RecentResults(60, max_entries=3)
    for key in (b"1", b"2", b"3"):
        recent.put(key, key.decode())
    assert recent.get(b"1") == "1"
    recent.put(b"4", "4")
    assert [recent.get(key) for key in (b"1", b"2", b"3", b"4")] == ["1", None, "3", "4"]


@pytest.mark.parametrize("letter", ["a", "é", "中", "😀"])
def test_all_results_together_take_no_more_memory_than_allowed(letter: str) -> None:
    recent = RecentResults(60, max_bytes=10_000)
    for number in range(200):
        recent.put(b"%d" % (number % 150), letter * (number * 37 % 900))
        assert recent._bytes == sum(text.__sizeof__() for text, _ in recent._kept.values()) <= 10_000
    assert recent.get(b"49") is not None
    recent.put(b"49", letter * 10_000)
    assert recent.get(b"49") is None


def test_a_result_is_forgotten_when_its_time_is_over() -> None:
    now = [0.0]
    recent = RecentResults(10, clock=lambda: now[0])
    recent.put(b"key", "text")
    now[0] = 9.99
    assert recent.get(b"key") == "text"
    now[0] = 10
    assert (recent.get(b"key"), recent._bytes) == (None, 0)


async def test_ten_thousand_different_calls_leave_a_thousand_results() -> None:
    @tool(cache_seconds=60)
    async def echo(number: int) -> int:
        """Say it again."""
        return number

    callback = FunctionToolCallback.of(echo)
    for number in range(10_000):
        await callback.cached_call(f'{{"number": {number}}}', ToolContext())
    assert flights(callback) == {}
    assert callback._cache is not None
    assert len(callback._cache.recent._kept) == 1000
