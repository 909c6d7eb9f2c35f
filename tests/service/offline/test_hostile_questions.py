"""Nothing that the offline model is given makes it raise, hang or fall silent."""

import json
import time

import pytest
from hypothesis import given, settings, strategies as st

from tests.service.offline.asking import Declared, answered, response
from tests.service.offline.tools import SETS
from toolchat.messages import UserMessage
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata


async def cost_of(question: str) -> float:
    """CPU seconds of this process: what else the machine does is not counted."""
    started = time.process_time()
    await response(UserMessage(question), tools=SETS["all"])
    return time.process_time() - started


@pytest.mark.parametrize(
    "unit",
    [
        *("a", " ", "一", "1", "“", "「", "\n", "和", "点", "在", "查询", "北京", "把", "'a ", "0.", "\ud800", "，"),
        *("UTC+", "A/", "translate ", "译成", "Paris and ", "at 7:", "http://", "11月", "half an hour "),
        *("12:30 ", "2026-11-21 ", "北京，", "“a”", "日本語"),
    ],
)
@pytest.mark.parametrize("form", ["天气{}", "translate {} x", "delete file {}"])
async def test_a_long_monotonous_question_takes_linear_time(form: str, unit: str) -> None:
    short, long = (form.format((unit * length)[:length]) for length in (150, 1200))
    # Eight times as long, it costs at most eight times as much; backtracking would make that 64 times.
    for _ in range(3):  # a machine that does other things, too, may disturb one
        if await cost_of(long) < 24 * await cost_of(short):
            return
    raise AssertionError("the cost grows faster than the length")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
KEYWORDS = st.sampled_from(
    [
        *("type", "properties", "required", "enum", "const", "items", "anyOf", "$ref", "default", "minimum"),
        *("description", "pattern", "format", "title", "examples", "$defs"),
    ]
)
WORDS = st.sampled_from(
    ["city", "days", "time", "北京", "天气", "翻译", "3", "to", "in", "：", "“x”", "#/$defs/A", "string"]
)
SCHEMA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYWORDS, inner, max_size=5)
        | st.dictionaries(st.text(max_size=9) | WORDS, inner, max_size=4)
    ),
    max_leaves=25,
)
PARAMETER = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object", ["null", "integer"], 7]),
    },
    optional={
        "pattern": st.text(max_size=9) | st.sampled_from(["^[A-Z]{3}$", "(a+)+$", "("]),
        "items": SCHEMA,
        "properties": SCHEMA,
        "enum": SCHEMA,
        "default": JSON,
        "minimum": JSON,
        "maximum": JSON,
    },
)
DEFINITION = st.builds(
    ToolDefinition,
    st.just("weather") | st.text(min_size=1, max_size=20).filter(str.strip),
    st.just("天气 time translate") | st.text(min_size=1, max_size=40).filter(str.strip),
    st.dictionaries(KEYWORDS, SCHEMA, max_size=5)
    | st.fixed_dictionaries(
        {
            "properties": st.dictionaries(st.text(max_size=9) | WORDS, PARAMETER | SCHEMA, max_size=5),
            "required": st.lists(WORDS, max_size=4) | SCHEMA,
        }
    ),
    st.dictionaries(KEYWORDS, SCHEMA, max_size=5)
    | st.fixed_dictionaries({"properties": st.dictionaries(st.text(max_size=9), SCHEMA, max_size=5)}),
)
TOOL = st.builds(Declared, DEFINITION, st.builds(ToolMetadata, read_only=st.booleans()))
QUESTION = st.lists(st.text(max_size=30) | WORDS, max_size=12).map("".join)


@pytest.mark.slow
@settings(max_examples=30, deadline=None, database=None)
@given(question=QUESTION, tools=st.lists(TOOL, max_size=3))
async def test_no_question_and_no_schema_makes_it_raise(question: str, tools: list[Declared]) -> None:
    answer = await response(UserMessage(question), tools=tuple(tools))
    assert answer.message.text.strip() or answer.message.tool_calls
    for call in answer.message.tool_calls:
        assert isinstance(json.loads(call.arguments), dict)


@settings(max_examples=30, deadline=None, database=None)
@given(question=QUESTION, result=st.text(max_size=60) | JSON.map(json.dumps), tool=TOOL | st.sampled_from(SETS["all"]))
async def test_no_result_makes_it_raise_or_fall_silent(question: str, result: str, tool: Declared) -> None:
    assert (await answered(question, result, tool)).strip()
