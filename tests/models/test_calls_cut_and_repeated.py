"""One call stays one however a server cuts, repeats and relabels it, and two calls stay two."""

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic_core import from_json

from tests.models.openai.playing import AT_ONCE, CITY, ONE_CALL, STREAMED, calls_of, tool_delta, turn
from tests.models.openai.test_responses import CALL, OTHER_CALL, REASONING, response
from tests.models.test_merged_calls import call
from tests.players.openai_player import chunk, sse, whole
from toolchat.messages import ToolCall
from toolchat.models.base import Prompt
from toolchat.models.dashscope.mapping import DashScopeAnswer
from toolchat.models.openai.responses_wire import ResponsesTurn
from toolchat.models.openai.turn import OpenAITurn

Fragment = dict[str, Any]
Wire = Callable[[Sequence[Fragment]], tuple[ToolCall, ...]]


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


WIRES: dict[str, Wire] = {"chat completions": chat_completions, "DashScope": dashscope}
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
    merged = WIRES[wire](fragments)
    assert [(one.id, one.name, from_json(one.arguments)) for one in merged] == [
        ("a", "w", arguments[0]),
        ("b", "w", arguments[1]),
    ]


FRAGMENT = {"index": 0, "id": "a", "function": {"name": "get_weather", "arguments": CITY}}
LOOKING = {"content": "我查一下。"}


@pytest.mark.parametrize("places", [(0, 1), (1, 0)], ids=["text first", "call first"])
@pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED], ids=["whole", "streamed"])
async def test_text_and_calls_in_several_choices_are_one_message(places: tuple[int, int], prompt: Prompt) -> None:
    key = "delta" if prompt.stream else "message"
    parts = [LOOKING, {"tool_calls": [FRAGMENT]}]
    choices = [{"index": n, key: parts[place], "finish_reason": "tool_calls"} for n, place in enumerate(places)]
    response = await turn(sse(chunk() | {"choices": choices}) if prompt.stream else whole({"choices": choices}), prompt)
    assert (response.message.text, calls_of(response)) == ("我查一下。", ONE_CALL)


async def test_the_whole_call_again_with_the_finish_reason_is_no_second_call() -> None:
    halves = [tool_delta(id="a", name="get_weather", arguments=CITY[:7]), tool_delta(arguments=CITY[7:])]
    again = chunk({"index": 0, "delta": {"tool_calls": [FRAGMENT]}, "finish_reason": "tool_calls"})
    assert calls_of(await turn(sse(*halves, again))) == ONE_CALL


def test_an_item_of_a_response_that_comes_again_is_no_second_call() -> None:
    answer = ResponsesTurn("asked")
    answer.add(response(REASONING, CALL, OTHER_CALL, CALL | {"id": "fc_3"}))
    message = answer.response().message
    assert [one.id for one in message.tool_calls] == ["call_1", "call_2"]
    assert message.extra["response_output"] == [REASONING, "call_1", "call_2", "call_1"]
