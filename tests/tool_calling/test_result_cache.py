"""Kept results: for how long, how many, and how much memory they take."""

import pytest

from tests.tool_calling.calls import flights
from toolchat.tool_calling.caching import RecentResults
from toolchat.tool_calling.callback import ToolResult
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.function_callback import FunctionToolCallback


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


async def test_of_many_different_calls_a_thousand_results_are_left() -> None:
    @tool(cache_seconds=60)
    async def echo(number: int) -> int:
        """Say it again."""
        return number

    callback = FunctionToolCallback.from_function(echo)
    for number in range(1_100):
        await callback.result(f'{{"number": {number}}}', ToolContext())
    assert flights(callback) == {}
    assert callback._cache is not None
    assert len(callback._cache.recent._stored) == 1000
