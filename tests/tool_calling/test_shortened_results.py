"""Results that are longer than a model is told: JSON stays JSON, and what cannot be cut is left out whole."""

import base64
import random
import string
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pydantic_core import from_json, to_json

from tests.tool_calling.calls import only
from tests.tool_calling.test_results import PNG
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.results import shorten

LIMIT = 1000
DATA = base64.b64encode(bytes(range(256)) * 400).decode()
IMAGE = {"mimeType": "image/png", "data": DATA}
URL = f"data:image/png;base64,{DATA}"


async def told(result: Any) -> Any:
    """What a model is told of a result, read as JSON."""

    async def give() -> Any:
        return result

    text = (await only(("give", ""), tools=[FunctionToolCallback.from_function(give)], max_result_chars=LIMIT)).result
    assert len(text) <= LIMIT
    return from_json(text, allow_inf_nan=False)


LARGE_PNG = PNG + bytes(90_000)
WITHOUT_DATA = {"mimeType": "image/png", "data": f"[{len(DATA)} characters left out]"}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (LARGE_PNG, WITHOUT_DATA | {"data": f"[{len(base64.b64encode(LARGE_PNG))} characters left out]"}),
        (IMAGE, WITHOUT_DATA),
        ([IMAGE, {"text": "two", "image": IMAGE}], [WITHOUT_DATA, {"text": "two", "image": WITHOUT_DATA}]),
        ({"picture": URL, "title": "a"}, {"picture": f"[{len(URL)} characters left out]", "title": "a"}),
        (bytes(9_000), "[12000 characters left out]"),
        ([10**1500], ["[1501 characters left out]"]),
        ({"a" * 2000: 1}, {"...": "[1 fields left out]"}),
    ],
    ids=["image", "image as JSON", "images", "data URL", "bytes", "number", "name"],
)
async def test_values_that_cannot_be_shortened_are_left_out(result: Any, expected: Any) -> None:
    assert await told(result) == expected


async def test_long_texts_within_json_are_cut_and_short_ones_are_kept() -> None:
    result = await told({"title": "Rome", "text": "a word " * 1000, "more": "another " * 1000, "found": True})
    assert (result["title"], result["found"]) == ("Rome", True)
    for name, start, end in (("text", "a word a", " word "), ("more", "another ", "another ")):
        assert result[name].startswith(start)
        assert result[name].endswith(end)
        assert "characters left out" in result[name]


async def test_a_list_and_an_object_keep_their_first_entries_and_count_the_others() -> None:
    rows = await told([{"number": number} for number in range(500)])
    assert rows[:-1] == [{"number": number} for number in range(len(rows) - 1)]
    assert rows[-1] == f"[{500 - len(rows) + 1} entries left out]"
    fields = await told({f"field {number}": "a short text" for number in range(500)})
    assert len(fields) > 10
    assert fields.pop("...") == f"[{500 - len(fields)} fields left out]"
    assert list(fields) == [f"field {number}" for number in range(len(fields))]


async def test_the_json_text_of_a_tool_is_json_for_it_too() -> None:
    assert await told(to_json(IMAGE).decode()) == WITHOUT_DATA


@pytest.mark.parametrize("words", ["[links](x) ", "{not json} ", '"quoted" words ', "1, 2, "])
def test_text_that_only_begins_like_json_is_cut_as_text(words: str) -> None:
    text = words * 1000
    cut = shorten(text, LIMIT)
    assert cut.startswith(text[: LIMIT * 3 // 4])
    assert cut.endswith(text[-LIMIT // 8 :])


async def test_a_long_error_stays_an_error_that_a_model_can_read() -> None:
    async def fails() -> None:
        raise ToolExecutionError("no such place " * 1000, kind="no-such-place")

    finished = await only(("fails", ""), tools=[fails], max_result_chars=LIMIT)
    assert from_json(finished.result)["error"]["kind"] == "no-such-place"


def _any_json(seed: int) -> Any:
    chance = random.Random(seed)

    def value(depth: int) -> Any:
        kind = chance.random()
        if depth > 3 or kind < 0.4:
            letters = string.printable + "长\x00\\"
            return "".join(chance.choices(letters, k=chance.choice([3, 50, 900, 4000])))
        if kind < 0.5:
            return chance.choice([1.5, None, True, 10**400, DATA[:3000]])
        if kind < 0.75:
            return [value(depth + 1) for _ in range(chance.randrange(8))]
        return {chance.choice(["a", "b" * 200]) + str(n): value(depth + 1) for n in range(chance.randrange(8))}

    return value(0)


@settings(max_examples=settings().max_examples // 3)
@given(st.integers(0), st.sampled_from([256, 1000, 4000]))
def test_every_shortened_json_stays_json_within_the_limit(seed: int, limit: int) -> None:
    text = to_json([_any_json(seed)]).decode()
    short = shorten(text, limit)
    from_json(short)
    assert len(short) <= limit
    assert short == text if len(text) <= limit else "left out" in short
