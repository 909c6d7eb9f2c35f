"""Results that do not end: they cost a tool its time limit and a bounded memory, and nobody else anything."""

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tests.tool_calling.calling import only
from toolchat.tool_calling.function_callback import FunctionToolCallback


def _slowly() -> Generator[int, None, None]:
    for number in itertools.count():
        time.sleep(0.02)
        yield number


class _Endless(Sequence[int]):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        return index


@dataclass(frozen=True, slots=True)
class _Record:
    numbers: Any


class _Model(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    numbers: Any


ENDLESS: list[Callable[[], Any]] = [
    lambda: itertools.count(),
    lambda: {"numbers": itertools.count()},
    lambda: [(itertools.repeat("x"),)],
    lambda: _Record(itertools.count()),
    lambda: _Model(numbers=itertools.count()),
    lambda: itertools.repeat("x" * 2**20),
    lambda: map(itertools.repeat, itertools.count()),
    _Endless,
]


@pytest.mark.parametrize("make", ENDLESS)
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_result_without_an_end_is_the_authors_fault(make: Callable[[], Any], is_async: bool) -> None:
    async def later() -> Any:
        return make()

    tool = FunctionToolCallback.from_function(later if is_async else make, name="endless")
    finished = await only(("endless", ""), tools=[tool])
    assert (finished.outcome, finished.error_kind) == ("error", "tool-result")


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_slow_iterator_costs_its_tool_the_time_limit_and_holds_up_nobody(is_async: bool) -> None:
    pulled: list[threading.Thread] = []

    def numbers() -> Iterator[int]:
        return map(_noted(pulled), _slowly())

    async def later() -> dict[str, Any]:
        return {"numbers": numbers()}

    tool = FunctionToolCallback.from_function(later if is_async else numbers, name="slow", timeout=0.3)
    finished = await only(("slow", ""), tools=[tool])
    assert finished.error_kind == "timeout"
    assert pulled
    assert threading.main_thread() not in pulled
    # The thread is left to itself; it must see by itself that nobody waits any more.
    seen = -1
    while seen != len(pulled):
        seen = len(pulled)
        await asyncio.sleep(0.2)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: map(str, range(3)), '["0","1","2"]'),
        (lambda: {"a": (n for n in range(2)), "b": iter("xy")}, '{"a":[0,1],"b":["x","y"]}'),
        (lambda: _Record(iter([iter([1])])), '{"numbers":[[1]]}'),
    ],
)
async def test_an_iterator_that_ends_is_an_array(make: Callable[[], Any], text: str) -> None:
    assert (await only(("made", ""), tools=[FunctionToolCallback.from_function(make, name="made")])).result == text


def _noted(pulled: list[threading.Thread]) -> Callable[[int], int]:
    def note(number: int) -> int:
        pulled.append(threading.current_thread())
        return number

    return note
