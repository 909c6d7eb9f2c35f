"""Which calls of a tool that may repeat are equal."""

from typing import Annotated

import pytest
from pydantic import BaseModel, Field

from tests.tool_calling.calls import PARIS, Atlas, called
from toolchat.tool_calling.caching import call_key
from toolchat.tool_calling.function_callback import FunctionToolCallback


class Forecast(BaseModel):
    """A whole input."""

    city: Annotated[str, Field(alias="q")]
    days: int = 3


def forecast(request: Forecast) -> None: ...


SCHEMA = FunctionToolCallback.from_function(forecast).definition.input_schema


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
def test_values_that_differ_in_json_have_different_call_keys(one: str, two: str) -> None:
    assert call_key(f'{{"q": {one}}}', {}) != call_key(f'{{"q": {two}}}', {})


async def test_a_default_is_filled_in_before_calls_are_compared() -> None:
    atlas = Atlas().open()
    callback = atlas.callback()
    for arguments in (PARIS, '{"detail": 1, "city": "Paris"}', '```json\n{"city": "Paris"}\n```', '{"city":"Paris",}'):
        assert (await called(callback, arguments, times=2)).cached
    assert len(atlas.runs) == 3


async def test_invalid_arguments_run_nothing_and_are_not_cached() -> None:
    atlas = Atlas().open()
    last = await called(atlas.callback(), '{"city": []}', times=2)
    assert (last.error_kind, last.cached, atlas.runs) == ("invalid-arguments", False, [])
