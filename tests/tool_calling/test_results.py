"""From what a tool returns to what a model is told: text, JSON, and never too much of it."""

import base64
import datetime
import decimal
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic_core import from_json

from app.tool_calling.function_callback import FunctionToolCallback, tool
from app.tool_calling.result_converter import convert_result, quoted_result, truncated
from tests.chat.scripted import calls, client_of, says
from tests.tool_calling.calling import only

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def _cycle() -> list[Any]:
    cycle: list[Any] = []
    cycle.append(cycle)
    return cycle


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, "Done"),
        ("北京", "北京"),
        ("\ud800", "?"),
        ({"城市": "北京"}, '{"城市":"北京"}'),
        ([1, 2.5, True, None], "[1,2.5,true,null]"),
        ({1}, "[1]"),
        (datetime.date(2026, 11, 20), '"2026-11-20"'),
        (decimal.Decimal("1.10"), '"1.10"'),
        (b"\xff", '"_w=="'),
        (float("nan"), '"NaN"'),
        ({"lock": threading.Lock()}, '{"lock":"<lock>"}'),
        (_cycle(), '"<list>"'),
        ({"bad": "\ud800"}, '"<dict>"'),
    ],
)
def test_whatever_a_tool_returns_becomes_text(result: object, text: str) -> None:
    assert convert_result(result) == text


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ("text", '"text"'),
        (None, '"Done"'),
        ({"a": 1}, '{"a":1}'),
        (datetime.date(2026, 11, 20), '"2026-11-20"'),
    ],
)
async def test_a_tool_may_quote_its_text_as_spring_ai_does(result: object, told: str) -> None:
    @tool(result_converter=quoted_result)
    async def give() -> object:
        return result

    assert (await only(("give", ""), tools=[give])).result == told


async def test_a_tool_may_bring_its_own_form_of_result() -> None:
    def as_table(result: Any) -> str:
        return "\n".join(f"{key} | {value}" for key, value in result.items())

    @tool(result_converter=as_table)
    async def give() -> Mapping[str, int]:
        return {"a": 1, "b": 2}

    assert (await only(("give", ""), tools=[give])).result == "a | 1\nb | 2"


async def test_a_converter_that_fails_is_a_tool_that_fails() -> None:
    @tool(result_converter=lambda result: result.nothing)
    async def give() -> int:
        return 1

    assert (await only(("give", ""), tools=[give])).error_kind == "failed"


async def test_the_bytes_of_an_image_become_its_type_and_data() -> None:
    async def draw() -> bytes:
        return PNG

    told = from_json((await only(("draw", ""), tools=[draw])).result)
    assert told["mimeType"] == "image/png"
    assert base64.b64decode(told["data"]) == PNG


def test_a_long_result_is_cut_in_the_middle_and_says_so() -> None:
    cut = truncated("长" * 1000, 256)
    assert cut.startswith("长" * 192)
    assert cut.endswith("长" * 32)
    assert "776 characters left out" in cut
    assert truncated("short", 256) == "short"


async def test_no_model_is_told_more_of_a_result_than_the_manager_allows() -> None:
    async def long() -> str:
        return "长" * 5_000_000

    assert len((await only(("long", ""), tools=[long], max_result_chars=1000)).result) < 1100


async def test_a_huge_result_is_cut_and_twenty_more_turns_stay_small() -> None:
    async def huge(page: int) -> str:
        return "长" * 5_000_000

    tools = [FunctionToolCallback.of(huge)]
    turns = [calls(("huge", f'{{"page": {page}}}')) for page in range(20)]
    client, model = client_of(*turns, says("read"), max_rounds=30, max_result_chars=1000)
    assert await client.prompt("?").tools(*tools).call().content() == "read"
    assert len(model.prompts) == 21
    assert len(repr(model.prompts[-1].messages).encode()) < 20 * 3 * 1100 + 5000
