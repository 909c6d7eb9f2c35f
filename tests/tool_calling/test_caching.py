"""Results of tools that may repeat answer equal calls for a while; which tools may."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest

from tests.tool_calling.calls import PARIS, ROME, Atlas, asking, called
from tests.waiting import PATIENCE
from toolchat import ToolModule, ToolSettings
from toolchat.errors import ConfigurationError
from toolchat.service.tool_modules.discovery import ConfiguredModule
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata, tool
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.function_callback import FunctionToolCallback, MethodToolCallbackProvider
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


async def test_methods_and_blocking_functions_are_run_once_too() -> None:
    runs: list[str] = []

    @tool(cache_seconds=60)
    def measure(city: str) -> str:
        runs.append(city)
        return city

    (method,) = MethodToolCallbackProvider(atlas := Atlas().open()).tool_callbacks()
    for callback in (method, FunctionToolCallback.from_function(measure)):
        assert (await called(callback, times=3)).cached
    assert (atlas.runs, runs) == (["Paris"], ["Paris"])


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


async def test_a_callback_without_a_cache_runs_each_time() -> None:
    last = await called(Counting(), times=3)
    assert (last.result, last.cached) == ("3", False)


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


@pytest.mark.parametrize(
    ("function", "metadata", "told"),
    [
        (whose, {}, "tool whose: cache_seconds is not for a tool with a ToolContext (parameter context)"),
        (locate, {"requires_approval": True}, "tool locate: cache_seconds is not for a tool that requires approval"),
        (locate, {"cache_seconds": -1}, "tool locate: cache_seconds must be a number of at least 0"),
        (locate, {"cache_seconds": float("nan")}, "tool locate: cache_seconds must be a number of at least 0"),
    ],
)
def test_a_tool_that_cannot_be_cached_stops_the_start_with_its_file(
    function: Callable[..., Any], metadata: dict[str, Any], told: str
) -> None:
    settings = {"cache_seconds": 60.0} | metadata
    with pytest.raises(ToolDefinitionError) as caught:
        FunctionToolCallback.from_function(function, metadata=ToolMetadata(**settings))
    assert str(caught.value).startswith(told)
    copy = type("marked", (), {"__call__": staticmethod(function), "__doc__": function.__doc__})
    tool(name=function.__name__, **settings)(copy)
    with pytest.raises(ConfigurationError) as at_start:
        ConfiguredModule.read(ToolModule(functions=(copy,)).in_folder("atlas", Path(__file__).parent))
    (line,) = str(at_start.value).splitlines()
    assert "tool_calling/" in line.split(": ")[0]
    assert told in line
