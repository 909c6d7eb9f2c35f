"""Iterators within results: refused, since nothing says that one ends."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import attrs
import pytest
from pydantic import BaseModel, ConfigDict

from tests.tool_calling.calls import only
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.function_callback import FunctionToolCallback


class _Endless(Sequence[int]):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: Any) -> Any:
        return index


@dataclass(frozen=True, slots=True)
class _Record:
    numbers: Any


@attrs.define
class _Parcel:
    numbers: Any


class _Model(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    numbers: Any


class _Stream(BaseModel):
    numbers: Iterable[int]


ITERATORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: itertools.count(), "count"),
    (lambda: (number for number in itertools.count()), "generator"),
    (lambda: {"numbers": itertools.count()}, "count"),
    (lambda: {"numbers": (number for number in itertools.count())}, "generator"),
    (lambda: [(itertools.repeat("x"),)], "repeat"),
    (lambda: _Record(number for number in itertools.count()), "generator"),
    (lambda: [_Parcel(number for number in itertools.count())], "generator"),
    (lambda: _Model(numbers=(number for number in itertools.count())), "generator"),
    (lambda: _Stream(numbers=itertools.count()), "ValidatorIterator"),
    (lambda: {"one": {"range": range(10**12)}}, "range"),
    (lambda: map(str, range(3)), "map"),
]


@pytest.mark.parametrize(("make", "type_name"), ITERATORS)
@pytest.mark.parametrize("is_async", [False, True])
async def test_an_iterator_in_a_result_is_refused_and_logged_with_its_type(
    make: Callable[[], Any], type_name: str, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def later() -> Any:
        return make()

    tool = FunctionToolCallback.from_function(later if is_async else make, name="endless")
    finished = await only(("endless", ""), tools=[tool])
    assert (finished.outcome, finished.error_kind) == ("error", "tool-result")
    (record,) = caplog.records
    assert vars(record)["result_type"] == type_name


async def test_a_sequence_gives_no_more_items_than_its_length() -> None:
    async def count() -> Any:
        return _Endless()

    assert (await only(("count", ""), tools=[count])).result == "[0,1]"


def _numbers() -> Iterator[int]:
    return itertools.count()


async def _numbers_later() -> Annotated[Iterator[int], "Numbers"]:
    return itertools.count()


def _numbers_awaited() -> Awaitable[AsyncIterator[int]]:
    raise NotImplementedError


def _generated() -> Generator[int, None, None]:
    yield 1


@pytest.mark.parametrize("function", [_numbers, _numbers_later, _numbers_awaited, _generated])
def test_a_function_that_promises_an_iterator_is_refused_when_it_is_defined(function: Callable[..., Any]) -> None:
    with pytest.raises(ToolDefinitionError, match="since it may never end: return a list"):
        FunctionToolCallback.from_function(function)
