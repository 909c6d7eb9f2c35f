"""Whatever a model writes as a tool call, it gets one answer, and nothing escapes."""

import datetime
import enum
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, Field
from pydantic_core import from_json, to_json

from tests.tool_calling.calls import only, run
from toolchat.messages import ToolCall, ToolResponseMessage
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.events import ToolCallFinished
from toolchat.tool_calling.function_callback import FunctionToolCallback, MethodToolCallbackProvider

pytestmark = pytest.mark.slow


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Node(BaseModel):
    value: Any = None
    children: list["Node"] = []


async def plain(text: str, number: int = 0, ratio: float = 0.5) -> list[object]:
    return [text, number, ratio]


async def rich(
    day: datetime.date | None = None,
    wait: datetime.timedelta | None = None,
    size: Size | Literal["any"] = "any",
    words: Annotated[set[str], Field(max_length=5)] = frozenset(),  # type: ignore[assignment]
    pair: tuple[int, str] | None = None,
    table: dict[str, list[int]] | None = None,
) -> dict[str, object]:
    return {"day": day, "wait": wait, "size": size, "words": words, "pair": pair, "table": table}


async def tree(node: Node) -> Node:
    return node


async def anything(value: Any, context: ToolContext) -> Any:
    return value


async def nothing() -> None: ...


async def breaks(value: Any = None) -> None:
    raise RuntimeError(str(value))


class Shelf:
    @tool(name="\u4e66\u67b6")
    async def find(self, title: Annotated[str, Field(pattern="^[a-z]*$", max_length=9)] = "") -> str:
        return title


FUNCTIONS: tuple[Callable[..., Any], ...] = (plain, rich, tree, anything, nothing, breaks)
TOOLS: list[ToolCallback] = [
    *(FunctionToolCallback.from_function(each) for each in FUNCTIONS),
    *MethodToolCallbackProvider(Shelf()).tool_callbacks(),
]
KNOWN = [each.definition.name for each in TOOLS]
FIELDS = [
    "text",
    "number",
    "ratio",
    "day",
    "wait",
    "size",
    "words",
    "pair",
    "table",
    "value",
    "children",
    "title",
    "no",
]


# Text with lone surrogates and control characters in it, unlike Hypothesis' own.
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
HUGE = st.sampled_from(["9" * 400, "9" * 5_000, "1e999", "-1e999", "NaN", "Infinity", "-0", "1E-400", "0x1", "01"])
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT
    | st.sampled_from(["2026-11-20", "PT10M", "P1Y", "small", "\ud800", "\x00", "-1e9999"])
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS) | ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


def _as_json(value: Any) -> str:
    """JSON as a model may write it: every character escaped, lone surrogates too, NaN as it is."""
    return json.dumps(value)


def _nested(shape: tuple[str, str, str], depth: int, closed: bool) -> str:
    opening, inner, closing = shape
    return opening * depth + inner + (closing * depth if closed else "")


WELL_FORMED = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5).map(_as_json)
DEEP = st.builds(
    _nested,
    st.sampled_from([
        ("[", "", "]"), ('{"value":', "1", "}"), ('{"children":[', "", "]}"), ('{"node":{"children":[', "", "]}}"),
    ]),
    st.integers(1, 300) | st.sampled_from([1_100, 20_000]),
    st.booleans(),
)  # fmt: skip
NUMBERS = st.builds('{{"{}": {}}}'.format, st.sampled_from(FIELDS), HUGE)
BROKEN = st.builds(lambda text, at: text[: at % (len(text) + 1)], WELL_FORMED, st.integers(0, 500))
MANGLED = st.builds(
    lambda text, junk, at: text[: (at := at % (len(text) + 1))] + junk + text[at:],
    WELL_FORMED,
    ANY_TEXT,
    st.integers(0, 500),
)
WRAPPED = st.builds(
    lambda wrap, text: wrap(text),
    st.sampled_from([_as_json, "```json\n{}\n```".format, "\ufeff{}".format, "{},".format, " {} {{}}".format]),
    WELL_FORMED,
)
ARGUMENTS = st.one_of(WELL_FORMED, VALUES.map(_as_json), DEEP, NUMBERS, BROKEN, MANGLED, WRAPPED, ANY_TEXT)
NAMES = st.sampled_from(KNOWN) | st.sampled_from(["", "default_api:plain", "PLAIN", "plain\n", "x" * 300]) | ANY_TEXT
CALLS = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]) | ANY_TEXT, NAMES, ARGUMENTS), min_size=1, max_size=4)
LONG_TEXTS = {
    "a fence of blanks": "```" + "\n " * 250_000 + "x",
    "quotes without an end": '"' + '\\"' * 250_000 + "\\",
    "commas before blanks": '{"text": 1' + ", " * 100_000 + " " * 100_000,
    "items that do not fit": '{"text": [' + "1," * 250_000 + "1]}",
    "JSON within JSON": to_json(to_json('{"text": [' + "1," * 20_000 + "1]}").decode()).decode(),
}


@pytest.mark.parametrize("arguments", LONG_TEXTS.values(), ids=LONG_TEXTS)
async def test_a_long_invalid_text_is_rejected_quickly(arguments: str) -> None:
    # A pattern that goes back over what it has read takes hours for these.
    assert (await only(("plain", arguments), tools=TOOLS)).error_kind == "invalid-arguments"


def _check(finished: ToolCallFinished) -> None:
    assert (finished.outcome == "error") == (finished.error_kind is not None)
    if finished.outcome == "error":
        assert finished.error_kind in ("unknown-tool", "invalid-arguments", "failed", "repeated-call")
        assert from_json(finished.result)["error"]["kind"] == finished.error_kind
    assert (finished.error_kind == "unknown-tool") == (finished.call.name not in KNOWN) or (
        finished.error_kind == "repeated-call"
    )
    assert finished.call.name != "breaks" or finished.error_kind is not None
    assert (finished.error_kind == "failed") <= (finished.call.name == "breaks")
    finished.result.encode()
    to_json(finished.to_dict(), inf_nan_mode="constants")


@given(CALLS)
async def test_every_hostile_call_gets_one_answer_in_its_place(hostile: list[tuple[str, str, str]]) -> None:
    calls = [ToolCall(*each) for each in hostile]
    result = await run(*calls, tools=TOOLS)
    *_, responses = result.conversation_history
    assert isinstance(responses, ToolResponseMessage)
    assert [(each.id, each.name) for each in responses.responses] == [(each.id, each.name) for each in calls]
    assert [each.call for each in result.executions] == calls
    for finished in result.executions:
        _check(finished)
