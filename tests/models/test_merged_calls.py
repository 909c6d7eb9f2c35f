"""Fragments of tool calls are put together, whatever dialect they are written in."""

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic_core import from_json

from toolchat.messages import ToolCall
from toolchat.models.tool_call_merging import ToolCallMerger

CITY = '{"city": "北京"}'
TOKYO = '{"city": "东京"}'


def call(
    index: int | str | None = None,
    key: str | None = None,
    name: str | None = None,
    arguments: object = None,
    **more: object,
) -> dict[str, Any]:
    """A fragment as it comes; ``None`` leaves a key out."""
    function = {key: value for key, value in {"name": name, "arguments": arguments}.items() if value is not None}
    fields = {"index": index, "id": key, "function": function or None, **more}
    return {key: value for key, value in fields.items() if value is not None}


def merge(*deltas: object) -> tuple[ToolCall, ...]:
    merger = ToolCallMerger()
    for fragments in deltas:
        merger.add(fragments)
    return merger.finish()


def seen(calls: tuple[ToolCall, ...]) -> list[tuple[str, str, str]]:
    return [(one.id, one.name, one.arguments) for one in calls]


# Fragments of the calls a and b: without an index, the first of two, the last of each, and all in one.
UNNUMBERED = call(None, "a", "w", '{"c":')
BEGUN = call(0, "a", "w", '{"c":')
ENDED = call(0, arguments="1}")
ENDED_B = call(1, arguments="2}")
WHOLE = call(0, "a", "w", CITY)

CASES: dict[str, tuple[Sequence[object], Sequence[tuple[str, str, str]]]] = {
    "trap 2: no index, DashScope's native form": (
        [[call(None, "a", "now", '{"z":')], [call(None, "", None, "1}")]],
        [("a", "now", '{"z":1}')],
    ),
    "trap 2: no index, whole calls with ids": (
        [[call(None, "a", "w", CITY)], [call(None, "b", "w", TOKYO)]],
        [("a", "w", CITY), ("b", "w", TOKYO)],
    ),
    "trap 2: no index, the id leads back to an earlier call": (
        [[call(None, "a", "w", '{"c')], [call(None, "b", "w", '{"d')], [call(None, "a", None, '":1}')]],
        [("a", "w", '{"c":1}'), ("b", "w", '{"d')],
    ),
    "trap 3: one index for all, a continuation goes to the newest": (
        [[call(0, "a", "w", '{"c')], [call(0, "b", "w", '{"d')], [call(0, "", None, '":2}')]],
        [("a", "w", '{"c'), ("b", "w", '{"d":2}')],
    ),
    "trap 3: one index for all, only a second object tells": (
        [[call(0, "a", "w", "")], [call(0, "", None, CITY)], [call(0, "", "v", TOKYO)]],
        [("a", "w", CITY), ("*", "v", TOKYO)],
    ),
    "trap 3: no ids, one name": (
        [[call(0, None, "w", CITY)], [call(0, None, "w", TOKYO)]],
        [("*", "w", CITY), ("*", "w", TOKYO)],
    ),
    "one list without ids, indexes and arguments": (
        [[call(None, None, "now"), call(None, None, "today")]],
        [("*", "now", ""), ("*", "today", "")],
    ),
    "one list, one name, nothing else to tell the calls apart": (
        [[call(None, None, "w"), call(None, None, "w", CITY)]],
        [("*", "w", ""), ("*", "w", CITY)],
    ),
    "one index, two names without arguments": (
        [[call(0, None, "now")], [call(0, None, "today")]],
        [("*", "now", ""), ("*", "today", "")],
    ),
    "parallel calls, interleaved": (
        [[call(0, "a", "w", "{")], [call(1, "b", "v", "{")], [call(0, arguments="}")], [call(1, arguments="}")]],
        [("a", "w", "{}"), ("b", "v", "{}")],
    ),
    "trap 7: name before id, no index": (
        [[call(name="w")], [call(key="a")], [call(arguments=CITY)]],
        [("a", "w", CITY)],
    ),
    "trap 8: objects under one index": (
        [[call(0, "a", "w", {"n": 1}), call(0, "b", "w", {"n": 2})]],
        [("a", "w", '{"n":1}'), ("b", "w", '{"n":2}')],
    ),
    "trap 9: arguments missing": ([[call(0, "a", "now")]], [("a", "now", "")]),
    "trap 16: snapshots of arguments": (
        [[call(0, "a", "w", '{"c')], [call(0, "a", "w", '{"c":1')], [call(0, "a", "w", '{"c":1}')]],
        [("a", "w", '{"c":1}')],
    ),
    "what looks like a snapshot but is an object within an object": (
        [[BEGUN], [call(0, "", None, '{"c":2}}')]],
        [("a", "w", '{"c":{"c":2}}')],
    ),
    "an empty object that only holds the place": (
        [[call(0, "a", "w", "{}")], [call(0, arguments='{"c":')], [ENDED]],
        [("a", "w", '{"c":1}')],
    ),
    "trap 26: no id": ([[call(0, None, "w", CITY)]], [("*", "w", CITY)]),
    "trap 26: one id for two indexes": ([[WHOLE, call(1, "a", "w", TOKYO)]], [("a", "w", CITY), ("*", "w", TOKYO)]),
    "trap 26: one id for two calls without an index": (
        [[call(None, "a", "w", CITY)], [call(None, "a", "v", TOKYO)]],
        [("a", "w", CITY), ("*", "v", TOKYO)],
    ),
    "trap 26: one id for two calls with the same arguments": (
        [[WHOLE], [call(0, "a", "v", CITY)]],
        [("a", "w", CITY), ("*", "v", CITY)],
    ),
    # charmbracelet/crush#3107, QwenLM/qwen-code#5014, agno-agi/agno#2336
    "one call twice in one list": ([[call(None, "a", "w", CITY), call(None, "a", "w", CITY)]], [("a", "w", CITY)]),
    "two equal calls of one list": (
        [[call(None, "a", "w", CITY), call(None, "b", "w", CITY)]],
        [("a", "w", CITY), ("b", "w", CITY)],
    ),
    "the whole again, then with its id": (
        [[call(0, None, "w", CITY)], [call(0, "a", "w", '{"city":"北京"}')]],
        [("a", "w", CITY)],
    ),
    "the id, the name and an index of its own again, without arguments": (
        [[WHOLE], [call(1, "a", "w", "")], [call(1, "other", None, "")]],
        [("a", "w", CITY)],
    ),
    "one id for two calls of one list, the first of which is no JSON": (
        [[call(0, "a", "w", "city"), call(1, "a", "w", CITY)]],
        [("a", "w", "city"), ("*", "w", CITY)],
    ),
    "the index comes late": ([[UNNUMBERED], [ENDED]], [("a", "w", '{"c":1}')]),
    "the indexes of two calls come late": (
        [[UNNUMBERED, call(None, "b", "v", '{"d":')], [ENDED], [ENDED_B]],
        [("a", "w", '{"c":1}'), ("b", "v", '{"d":2}')],
    ),
    "the index comes late, with the id or the name again": (
        [[UNNUMBERED], [call(0, "a", None, "1")], [call(0, None, "w", "}")]],
        [("a", "w", '{"c":1}')],
    ),
    "an index in the first pieces only, then the id": (
        [
            [BEGUN],
            [call(1, "b", "v", '{"d":')],
            [call(None, "a", None, "1}")],
            [ENDED_B],
            [call(None, "b", None, "")],
        ],
        [("a", "w", '{"c":1}'), ("b", "v", '{"d":2}')],
    ),
    "an index in some pieces only": (
        [[BEGUN], [call(None, None, None, "1}")], [call(1, "b", "v", "{}")]],
        [("a", "w", '{"c":1}'), ("b", "v", "{}")],
    ),
    "indexes as text": (
        [
            [call("0", "a", "w", '{"c":'), call("1", "b", "v", '{"d":')],
            [call("0", None, None, "1}")],
            [call(1, None, None, "2}")],
        ],
        [("a", "w", '{"c":1}'), ("b", "v", '{"d":2}')],
    ),
    "indexes that are none": (
        [[call("x", "a", "w", '{"c":')], [call("٣٣٣٣٣٣٣٣٣٣", arguments="1}")]],
        [("a", "w", '{"c":1}')],
    ),
    "braces within a string": (
        [[call(0, "a", "w", '{"c":"}')], [call(0, arguments="{")], [call(0, arguments='}"}')]],
        [("a", "w", '{"c":"}{}"}')],
    ),
    "a call that is not in a list": ([WHOLE], [("a", "w", CITY)]),
    "empty entries": ([[{"index": 0, "function": {"name": "", "arguments": ""}}], [{}], [{"index": 3}]], []),
    "nonsense of every type": (
        [None, "x", 3, {}, [None, "x", 3, [], {"function": "x"}, {"function": {"name": 3, "arguments": None}}]],
        [],
    ),
    "arguments that are a number": ([[call(0, "a", "w", 3)]], [("a", "w", "3")]),
}


@pytest.mark.parametrize("case", CASES)
def test_fragments_become_the_calls_that_the_model_meant(case: str) -> None:
    deltas, calls = CASES[case]
    merged = seen(merge(*deltas))
    assert [("*" if given[0] == "*" else one[0], *one[1:]) for one, given in zip(merged, calls, strict=True)] == calls
    assert len({one[0] for one in merged} - {""}) == len(merged)


def test_unknown_keys_of_a_call_are_kept_to_be_sent_back() -> None:
    (one,) = merge(
        [call(0, "a", "w", "", extra_content={"google": {"thought_signature": "s"}}, type="function")],
        [{"index": 0, "function": {"arguments": "{}", "signature": "t"}}],
        [call(0, "a", "w", "{}", again=True)],
    )
    assert one.extra == {
        "extra_content": {"google": {"thought_signature": "s"}},
        "function": {"signature": "t"},
        "again": True,
    }


@given(st.dictionaries(st.text(max_size=4), st.text(max_size=6) | st.integers(), max_size=4), st.data())
def test_arguments_cut_anywhere_come_out_whole(arguments: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps(arguments)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6).map(sorted))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    (one,) = merge([call(0, "a", "w")], *([call(0, "", None, piece)] for piece in pieces))
    assert from_json(one.arguments) == arguments


def cost_of_hostile_fragments(count: int) -> float:
    """CPU seconds of this process: what else the machine does is not counted."""
    merger = ToolCallMerger()
    merger.add([call(0, "a", "w", '{"c":"')])
    start = time.process_time()
    for _ in range(count):
        merger.add([call(0, "", None, "{}" * 8)])
    assert len(merger.finish()) == 1
    return time.process_time() - start


def test_hostile_fragments_cost_no_quadratic_time() -> None:
    few = min(cost_of_hostile_fragments(1_000) for _ in range(5))
    # Fifty times as many cost fifty times as much; if each cost as much as all before it, it would be 2,500 times.
    assert cost_of_hostile_fragments(50_000) < 250 * few
