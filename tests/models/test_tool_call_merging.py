"""Fragments of tool calls are put together, in every dialect and however a server cuts, repeats and relabels them."""

import json
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic_core import from_json

from tests.models.openai.playing import AT_ONCE, CITY, ONE_CALL, STREAMED, calls_of, tool_delta, turn
from tests.players.openai_player import bytewise, chunk, delta, finish, sse, whole
from toolchat.messages import ToolCall
from toolchat.models.base import Prompt
from toolchat.models.dashscope.mapping import DashScopeAnswer
from toolchat.models.openai.turn import OpenAITurn
from toolchat.models.tool_call_merging import ToolCallMerger

Fragment = dict[str, Any]


def call(
    index: object = None, key: str | None = None, name: str | None = None, arguments: object = None, **more: object
) -> Fragment:
    """A fragment as it comes; ``None`` leaves a key out."""
    function = {key: value for key, value in {"name": name, "arguments": arguments}.items() if value is not None}
    fields = {"index": index, "id": key, "function": function or None, **more}
    return {key: value for key, value in fields.items() if value is not None}


def fragment(given: object) -> object:
    return call(*given) if isinstance(given, tuple) else given


def merge(*deltas: object) -> tuple[ToolCall, ...]:
    merger = ToolCallMerger()
    for fragments in deltas:
        merger.add(fragments)
    return merger.finish()


TOKYO = '{"city": "东京"}'
WHOLE = (0, "a", "w", CITY)
FIRST, SECOND = ("a", "w", CITY), ("b", "w", TOKYO)
OTHER = ("*", "w", TOKYO)
"""Another call with an id of its own."""
ONE = ("a", "w", '{"c":1}')
TWO = [ONE, ("b", "v", '{"d":2}')]
BEGUN, UNNUMBERED = (0, "a", "w", '{"c":'), (None, "a", "w", '{"c":')
BEGUN_B, UNNUMBERED_B = (1, "b", "v", '{"d":'), (None, "b", "v", '{"d":')
END, END_B = (0, None, None, "1}"), (1, None, None, "2}")

CASES: dict[str, tuple[list[Any], list[tuple[str, str, str]]]] = {
    # Each tuple is a delta with one fragment, each list one with several: index, id, name, arguments.
    "DashScope's native form": ([UNNUMBERED, (None, "", None, "1}")], [ONE]),
    "no index, whole calls with ids": ([(None, "a", "w", CITY), (None, "b", "w", TOKYO)], [FIRST, SECOND]),
    "no index, the id leads back to an earlier call": (
        [(None, "a", "w", '{"c'), (None, "b", "w", '{"d'), (None, "a", None, '":1}')],
        [ONE, ("b", "w", '{"d')],
    ),
    "one index for all, a continuation goes to the newest": (
        [(0, "a", "w", '{"c'), (0, "b", "v", '{"d'), (0, "", None, '":2}')],
        [("a", "w", '{"c'), TWO[1]],
    ),
    "one index for all, only a second object tells": (
        [(0, "a", "w", ""), (0, "", None, CITY), (0, "", "w", TOKYO)],
        [FIRST, OTHER],
    ),
    "no ids, one name": ([(0, None, "w", CITY), (0, None, "w", TOKYO)], [("*", "w", CITY), OTHER]),
    "one list without ids, indexes and arguments": (
        [[(None, None, "w"), (None, None, "v")]],
        [("*", "w", ""), ("*", "v", "")],
    ),
    "one list, one name": ([[(None, None, "w"), (None, None, "w", TOKYO)]], [("*", "w", ""), OTHER]),
    "one index, two names without arguments": ([(0, None, "w"), (0, None, "v")], [("*", "w", ""), ("*", "v", "")]),
    "interleaved": (
        [(0, "a", "w", '{"c"'), (1, "b", "v", '{"d"'), (0, None, None, ":1}"), (1, None, None, ":2}")],
        TWO,
    ),
    "name before id, no index": ([(None, None, "w"), (None, "a"), (None, None, None, CITY)], [FIRST]),
    "no name": ([(0, "a", "", CITY)], [("a", "", CITY)]),
    "the name again, without arguments": ([WHOLE, (0, None, "w")], [FIRST]),
    "objects under one index": ([[(0, "a", "w", {"c": 1}), (0, "b", "v", {"d": 2})]], TWO),
    "arguments missing": ([(0, "a", "now")], [("a", "now", "")]),
    "snapshots of arguments": ([(0, "a", "w", '{"c'), (0, "a", "w", '{"c":1'), (0, "a", "w", '{"c":1}')], [ONE]),
    "an object within an object is no snapshot": ([BEGUN, (0, "", None, '{"c":2}}')], [("a", "w", '{"c":{"c":2}}')]),
    "an empty object that holds the place": ([(0, "a", "w", "{}"), (0, None, None, '{"c":'), END], [ONE]),
    "one id for two indexes": ([[WHOLE, (1, "a", "w", TOKYO)]], [FIRST, OTHER]),
    "one id for two calls without an index": (
        [(None, "a", "v", CITY), (None, "a", "w", TOKYO)],
        [("a", "v", CITY), OTHER],
    ),
    "one id for two calls with the same arguments": ([WHOLE, (0, "a", "v", CITY)], [FIRST, ("*", "v", CITY)]),
    # charmbracelet/crush#3107, QwenLM/qwen-code#5014, agno-agi/agno#2336
    "one call twice in one list": ([[(None, "a", "w", CITY)] * 2], [FIRST]),
    "the whole again, then with its id": ([(0, None, "w", CITY), (0, "a", "w", CITY.replace(" ", ""))], [FIRST]),
    "the id, the name and another index again": ([WHOLE, (1, "a", "w", ""), (1, "other", None, "")], [FIRST]),
    "one id for two, the first of which is no JSON": (
        [[(0, "a", "w", "city"), (1, "a", "w", TOKYO)]],
        [("a", "w", "city"), OTHER],
    ),
    "the indexes of two calls come late": ([[UNNUMBERED, UNNUMBERED_B], END, END_B], TWO),
    "the index comes late, with the id or the name again": (
        [UNNUMBERED, (0, "a", None, "1"), (0, None, "w", "}")],
        [ONE],
    ),
    "an index in the first pieces only, then the id": (
        [BEGUN, BEGUN_B, (None, "a", None, "1}"), END_B, (None, "b", None, "")],
        TWO,
    ),
    "an index in some pieces only": ([BEGUN, (None, None, None, "1}"), (1, "b", "v", '{"d":2}')], TWO),
    "indexes as text": ([[("0", "a", "w", '{"c":'), ("1", "b", "v", '{"d":')], ("0", None, None, "1}"), END_B], TWO),
    "indexes that are none": ([("x", "a", "w", '{"c":'), ("٣٣٣٣٣٣٣٣٣٣", None, None, "1}")], [ONE]),
    "braces within a string": (
        [(0, "a", "w", '{"c":"}'), (0, None, None, "{"), (0, None, None, '}"}')],
        [("a", "w", '{"c":"}{}"}')],
    ),
    "empty entries": ([(0, None, "", ""), [{}], [{"index": 3}]], []),
    "nonsense of every type": (
        [None, "x", 3, {}, [None, "x", 3, [], {"function": "x"}, {"function": {"name": 3}}]],
        [],
    ),
    "a call that is not in a list": ([call(*WHOLE)], [FIRST]),
    "arguments that are a number": ([(0, "a", "w", 3)], [("a", "w", "3")]),
}


@pytest.mark.parametrize("case", CASES)
def test_fragments_become_the_calls_that_the_model_meant(case: str) -> None:
    deltas, calls = CASES[case]
    lists = [[each] if isinstance(each, tuple) else each for each in deltas]
    merged = merge(*(list(map(fragment, each)) if isinstance(each, list) else each for each in lists))
    ids = ["*" if given[0] == "*" else one.id for one, given in zip(merged, calls, strict=True)]
    seen = [(key, one.name, one.arguments) for key, one in zip(ids, merged, strict=True)]
    assert seen == calls
    assert len({one.id for one in merged} - {""}) == len(merged)


def test_unknown_keys_of_a_call_are_kept_to_be_sent_back() -> None:
    (one,) = merge(
        [call(0, "a", "w", "", extra_content={"google": {"thought_signature": "s"}}, type="function")],
        [{"index": 0, "function": {"arguments": "{}", "signature": "t"}}],
        [call(0, "a", "w", "{}", again=True)],
    )
    extra = {"extra_content": {"google": {"thought_signature": "s"}}, "function": {"signature": "t"}, "again": True}
    assert one.extra == extra


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


def chat_completions(fragments: Sequence[Fragment]) -> tuple[ToolCall, ...]:
    answer = OpenAITurn("asked")
    for fragment in fragments:
        answer.add({"choices": [{"delta": {"tool_calls": [fragment]}}]})
    return answer.response().message.tool_calls


def dashscope(fragments: Sequence[Fragment]) -> tuple[ToolCall, ...]:
    answer = DashScopeAnswer("asked", stream=True)
    for fragment in fragments:
        output = {"choices": [{"message": {"tool_calls": [fragment]}, "finish_reason": "null"}]}
        answer.add(SimpleNamespace(status_code=200, usage=None, output=output))
    return answer.response().message.tool_calls


WIRES: dict[str, Callable[[Sequence[Fragment]], tuple[ToolCall, ...]]] = {
    "chat completions": chat_completions,
    "DashScope": dashscope,
}
ARGUMENTS = st.dictionaries(st.text(max_size=4), st.text(max_size=6) | st.dictionaries(st.text(max_size=2), st.none()))
Labels = tuple[int | None, str | None, str | None]
"""An index, an id and a name; a number and an id that are both new would be a call's own, so none has both."""
OPEN: list[Labels] = [(0, None, None), (0, "a", None), (None, None, None), (None, "other", None)]
CONTINUED: dict[Labels, list[Labels]] = {
    (0, "a", "w"): [*OPEN, (0, "a", "w"), (0, "other", None), (1, "a", "w"), (2, None, None)],
    (None, "a", "w"): [*OPEN, (0, "a", "w")],
    (0, None, "w"): [*OPEN, (2, None, None)],
}
"""How a call may go on, by the labels of its first fragment."""
AGAIN: list[Labels] = [(0, "a", "w"), (0, "a", None), (0, None, "w"), (0, None, None), (0, "other", None)]
AGAIN += [(None, "a", "w"), (None, None, None), (None, "other", None), (1, "a", "w"), (1, None, None)]


@st.composite
def cut(draw: st.DrawFn, arguments: object) -> list[str]:
    """The arguments as text, in pieces or as snapshots that grow."""
    text = json.dumps(arguments, separators=draw(st.sampled_from([(",", ":"), (", ", ": ")])))
    cuts = [0, *draw(st.lists(st.integers(0, len(text)), max_size=4).map(sorted)), len(text)]
    return [text[start:end] for start, end in zip([0, *cuts], cuts, strict=False)]


@st.composite
def one_call(draw: st.DrawFn, arguments: object) -> list[Fragment]:
    """One call under any labels, maybe again in whole or in pieces."""
    first, *rest = draw(cut(arguments))
    begun = draw(st.sampled_from(list(CONTINUED)))
    fragments = [call(*begun, first)]
    fragments += [call(*draw(st.sampled_from(CONTINUED[begun])), piece) for piece in rest]
    if begun[1] and draw(st.booleans()):
        labels = draw(st.sampled_from(AGAIN))
        fragments += [call(*labels, piece) for piece in draw(cut(arguments))]
    return fragments


@pytest.mark.parametrize("wire", WIRES)
@given(arguments=ARGUMENTS, data=st.data())
def test_every_way_to_cut_repeat_and_relabel_one_call_gives_one_call(
    wire: str, arguments: dict[str, object], data: st.DataObject
) -> None:
    (one,) = WIRES[wire](data.draw(one_call(arguments)))
    assert (one.name, from_json(one.arguments)) == ("w", arguments)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("indexes", [(0, 1), (0, 0), (None, None)], ids=["numbered", "one index", "no index"])
@given(arguments=st.tuples(ARGUMENTS, ARGUMENTS) | ARGUMENTS.map(lambda one: (one, one)), data=st.data())
def test_two_calls_with_ids_of_their_own_stay_two_even_if_they_are_equal(
    wire: str, indexes: tuple[int | None, ...], arguments: tuple[dict[str, object], ...], data: st.DataObject
) -> None:
    fragments: list[Fragment] = []
    for key, index, value in zip("ab", indexes, arguments, strict=True):
        first, *rest = data.draw(cut(value))
        later = data.draw(st.sampled_from([(index, None, None), (index, key, None), (index, key, "w")]))
        fragments += [call(index, key, "w", first), *(call(*later, piece) for piece in rest)]
    merged = [(one.id, one.name, from_json(one.arguments)) for one in WIRES[wire](fragments)]
    assert merged == [("a", "w", arguments[0]), ("b", "w", arguments[1])]


LOOKING = {"content": "我查一下。"}
CALLED = {"tool_calls": [call(0, "a", "get_weather", CITY)]}


@pytest.mark.parametrize("parts", [(LOOKING, CALLED), (CALLED, LOOKING), (LOOKING | CALLED,)], ids=str)
@pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED], ids=["whole", "streamed"])
async def test_text_and_calls_in_one_or_several_choices_are_one_message(parts: Sequence[Any], prompt: Prompt) -> None:
    key = "delta" if prompt.stream else "message"
    choices = [{"index": n, key: part, "finish_reason": "tool_calls"} for n, part in enumerate(parts)]
    response = await turn(sse(chunk() | {"choices": choices}) if prompt.stream else whole({"choices": choices}), prompt)
    assert (response.message.text, calls_of(response)) == ("我查一下。", ONE_CALL)


HALVES = [tool_delta(id="a", name="get_weather", arguments=CITY[:7]), tool_delta(arguments=CITY[7:])]
AT_THE_END = chunk({"index": 0, "delta": CALLED, "finish_reason": "tool_calls"})
DIALECTS: dict[str, list[Any]] = {
    "OpenAI": [delta(role="assistant", content=None), *HALVES, finish("tool_calls"), chunk(usage={"prompt_tokens": 7})],
    "Ollama: no index, then stop": [tool_delta(None, id="a", name="get_weather", arguments=CITY), finish("stop")],
    "GLM: the finish reason with the call, and again": [AT_THE_END, finish("tool_calls")],
    "the whole call again with the finish reason": [*HALVES, AT_THE_END],
    "cut by the token limit": [*HALVES, finish("length")],
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("pieces", [lambda answer: answer, bytewise], ids=["whole events", "byte by byte"])
async def test_a_streamed_call_arrives_whole_from_every_dialect(dialect: str, pieces: Any) -> None:
    response = await turn(pieces(sse(*DIALECTS[dialect])))
    assert (calls_of(response), response.message.text) == (ONE_CALL, "")
    assert response.finish_reason == ("length" if "limit" in dialect else "tool_calls")
