"""Pieces of text and of tool calls are put together, whatever dialect they are written in."""

import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_core import from_json

from app.chat_models.merging import TextMerger, ToolCallMerger, usage_from
from app.messages import ToolCall, Usage

CITY = '{"city": "北京"}'
TOKYO = '{"city": "东京"}'


def call(
    index: int | None = None, key: str | None = None, name: str | None = None, arguments: object = None, **more: object
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


@pytest.mark.parametrize(
    ("deltas", "calls"),
    [
        pytest.param(
            [[call(0, "a", "now", "")], [call(0, arguments='{"z":')], [call(0, arguments=" 1}")]],
            [("a", "now", '{"z": 1}')],
            id="OpenAI's own form",
        ),
        pytest.param(
            [[call(0, "a", "now", "")], [call(0, "", None, '{"z":')], [call(0, "", "", "1}")]],
            [("a", "now", '{"z":1}')],
            id="trap 1: continuations with an empty id",
        ),
        pytest.param(
            [[call(None, "a", "now", '{"z":')], [call(None, "", None, "1}")]],
            [("a", "now", '{"z":1}')],
            id="trap 2: no index, DashScope's native form",
        ),
        pytest.param(
            [[call(None, "a", "w", CITY)], [call(None, "b", "w", TOKYO)]],
            [("a", "w", CITY), ("b", "w", TOKYO)],
            id="trap 2: no index, whole calls with ids",
        ),
        pytest.param(
            [[call(None, "a", "w", '{"c')], [call(None, "b", "w", '{"d')], [call(None, "a", None, '":1}')]],
            [("a", "w", '{"c":1}'), ("b", "w", '{"d')],
            id="trap 2: no index, the id leads back to an earlier call",
        ),
        pytest.param(
            [[call(0, "a", "w", CITY)], [call(0, "b", "w", TOKYO)]],
            [("a", "w", CITY), ("b", "w", TOKYO)],
            id="trap 3: one index for all, another id",
        ),
        pytest.param(
            [[call(0, "a", "w", '{"c')], [call(0, "b", "w", '{"d')], [call(0, "", None, '":2}')]],
            [("a", "w", '{"c'), ("b", "w", '{"d":2}')],
            id="trap 3: one index for all, a continuation goes to the newest",
        ),
        pytest.param(
            [[call(0, "a", "w", "")], [call(0, "", None, CITY)], [call(0, "", "v", TOKYO)]],
            [("a", "w", CITY), ("*", "v", TOKYO)],
            id="trap 3: one index for all, only a second object tells",
        ),
        pytest.param(
            [[call(0, None, "w", CITY)], [call(0, None, "w", TOKYO)]],
            [("*", "w", CITY), ("*", "w", TOKYO)],
            id="trap 3: no ids, one name",
        ),
        pytest.param(
            [[call(None, None, "now"), call(None, None, "today")]],
            [("*", "now", ""), ("*", "today", "")],
            id="one list without ids, indexes and arguments",
        ),
        pytest.param(
            [[call(None, None, "w"), call(None, None, "w", CITY)]],
            [("*", "w", ""), ("*", "w", CITY)],
            id="one list, one name, nothing else to tell the calls apart",
        ),
        pytest.param(
            [[call(0, None, "now")], [call(0, None, "today")]],
            [("*", "now", ""), ("*", "today", "")],
            id="one index, two names without arguments",
        ),
        pytest.param(
            [[call(0, "a", "w", "{")], [call(1, "b", "v", "{")], [call(0, arguments="}")], [call(1, arguments="}")]],
            [("a", "w", "{}"), ("b", "v", "{}")],
            id="parallel calls, interleaved",
        ),
        pytest.param(
            [[call(None, "a", "w", CITY)], [call(None, "a", "w", CITY)]],
            [("a", "w", CITY)],
            id="trap 5: the whole call comes again with the finish reason",
        ),
        pytest.param([[call(None, "a", "w", CITY)]], [("a", "w", CITY)], id="trap 6: the whole call in one chunk"),
        pytest.param(
            [[{"index": 0, "id": "a", "type": "function"}], [call(0, name="w")], [call(0, arguments=CITY)]],
            [("a", "w", CITY)],
            id="trap 7: id, name and arguments apart",
        ),
        pytest.param(
            [[call(name="w")], [call(key="a")], [call(arguments=CITY)]],
            [("a", "w", CITY)],
            id="trap 7: name before id, no index",
        ),
        pytest.param(
            [[call(None, "a", "w", {"city": "北京"})]], [("a", "w", '{"city":"北京"}')], id="trap 8: an object"
        ),
        pytest.param(
            [[call(0, "a", "w", {"n": 1}), call(0, "b", "w", {"n": 2})]],
            [("a", "w", '{"n":1}'), ("b", "w", '{"n":2}')],
            id="trap 8: objects under one index",
        ),
        pytest.param(
            [[{"index": 0, "id": "a", "function": {"name": "now", "arguments": None}}]],
            [("a", "now", "")],
            id="trap 9: arguments null",
        ),
        pytest.param([[call(0, "a", "now", "")]], [("a", "now", "")], id="trap 9: arguments empty"),
        pytest.param([[call(0, "a", "now")]], [("a", "now", "")], id="trap 9: arguments missing"),
        pytest.param(
            [[call(0, "a", "w", '{"c')], [call(0, "a", "w", '{"c":1')], [call(0, "a", "w", '{"c":1}')]],
            [("a", "w", '{"c":1}')],
            id="trap 16: snapshots of arguments",
        ),
        pytest.param(
            [[call(0, "a", "w", '{"c":')], [call(0, "", None, '{"c":2}}')]],
            [("a", "w", '{"c":{"c":2}}')],
            id="what looks like a snapshot but is an object within an object",
        ),
        pytest.param(
            [[call(0, "a", "w", "{}")], [call(0, arguments='{"c":')], [call(0, arguments="1}")]],
            [("a", "w", '{"c":1}')],
            id="an empty object that only holds the place",
        ),
        pytest.param(
            [[call(0, "a", "w", '{"c":')], [call(0, "a", "w", "1}")], [call(0, "a", "w", "")]],
            [("a", "w", '{"c":1}')],
            id="trap 23: the name again in every chunk",
        ),
        pytest.param([[call(0, "a", "", CITY)]], [("a", "", CITY)], id="trap 23: a call without a name is kept"),
        pytest.param([[call(0, None, "w", CITY)]], [("*", "w", CITY)], id="trap 26: no id"),
        pytest.param(
            [[call(0, "a", "w", CITY), call(1, "a", "w", TOKYO)]],
            [("a", "w", CITY), ("*", "w", TOKYO)],
            id="trap 26: one id for two indexes",
        ),
        pytest.param(
            [[call(None, "a", "w", CITY)], [call(None, "a", "v", TOKYO)]],
            [("a", "w", CITY), ("*", "v", TOKYO)],
            id="trap 26: one id for two calls without an index",
        ),
        pytest.param(
            [[call(0, "a", "w", r'{"c":"\u53')], [call(0, arguments=r"57\ud83d")], [call(0, arguments=r'\ude00"}')]],
            [("a", "w", r'{"c":"\u5357\ud83d\ude00"}')],
            id="trap 27: cut within an escape and within a surrogate pair",
        ),
        pytest.param(
            [[call(None, "a", "w", '{"c":')], [call(0, arguments="1}")]],
            [("a", "w", '{"c":1}')],
            id="the index comes late",
        ),
        pytest.param(
            [[call(0, "a", "w", '{"c":"}')], [call(0, arguments="{")], [call(0, arguments='}"}')]],
            [("a", "w", '{"c":"}{}"}')],
            id="braces within a string",
        ),
        pytest.param([call(0, "a", "w", CITY)], [("a", "w", CITY)], id="a call that is not in a list"),
        pytest.param(
            [[{"index": 0, "function": {"name": "", "arguments": ""}}], [{}], [{"index": 3}]], [], id="empty entries"
        ),
        pytest.param(
            [None, "x", 3, {}, [None, "x", 3, [], {"function": "x"}, {"function": {"name": 3, "arguments": None}}]],
            [],
            id="nonsense of every type",
        ),
        pytest.param([[call(0, "a", "w", 3)]], [("a", "w", "3")], id="arguments that are a number"),
        pytest.param(
            [[call(0, "a", "w", {"c": "\ud800"})]], [("a", "w", "(not JSON)")], id="arguments with half a character"
        ),
    ],
)
def test_fragments_become_the_calls_that_the_model_meant(
    deltas: list[object], calls: list[tuple[str, str, str]]
) -> None:
    merged = seen(merge(*deltas))
    assert [("*" if given[0] == "*" else one[0], *one[1:]) for one, given in zip(merged, calls, strict=True)] == calls
    assert len({one[0] for one in merged} - {""}) == len(merged)


def test_a_merger_counts_its_calls() -> None:
    merger = ToolCallMerger()
    assert not merger
    merger.add([call(0, "a", "w"), call(1, "b", "v")])
    assert merger
    assert len(merger) == 2


def test_unknown_keys_of_a_call_are_kept_for_the_way_back() -> None:
    (one,) = merge(
        [call(0, "a", "w", "", extra_content={"google": {"thought_signature": "s"}}, type="function")],
        [{"index": 0, "function": {"arguments": "{}", "signature": "t"}}],
    )
    assert one.extra == {"extra_content": {"google": {"thought_signature": "s"}}, "function": {"signature": "t"}}


@given(st.dictionaries(st.text(max_size=4), st.text(max_size=6) | st.integers(), max_size=4), st.data())
def test_arguments_cut_anywhere_come_out_whole(arguments: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps(arguments)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6).map(sorted))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    (one,) = merge([call(0, "a", "w")], *([call(0, "", None, piece)] for piece in pieces))
    assert from_json(one.arguments) == arguments


def test_hostile_fragments_cost_no_quadratic_time() -> None:
    merger = ToolCallMerger()
    merger.add([call(0, "a", "w", '{"c":"')])
    start = time.process_time()
    for _ in range(50_000):
        merger.add([call(0, "", None, "{}" * 8)])
    assert len(merger) == 1
    assert time.process_time() - start < 5


def show(pieces: list[Any]) -> tuple[list[str], str]:
    merger = TextMerger()
    shown = [merger.add(piece) for piece in pieces]
    shown.append(merger.finish())
    assert "".join(shown) == merger.text
    return shown, merger.text


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        pytest.param(["Hel", "lo", " you"], "Hello you", id="pieces"),
        pytest.param(["Hello"], "Hello", id="one piece"),
        pytest.param([None, "", "a", None, ""], "a", id="trap 11: null and empty"),
        pytest.param([[{"text": "a"}], [], [{"type": "text", "text": "b"}]], "ab", id="trap 11: lists"),
        pytest.param([[{"type": "thinking", "text": "x"}, {"text": 3}, 4, None, "b"]], "b", id="trap 11: odd parts"),
        pytest.param([{"text": "a"}, 3, True, 0.5], "", id="trap 11: neither text nor list"),
        pytest.param(["哈", "哈哈"], "哈哈哈", id="a repetition is not a snapshot"),
        pytest.param(["哈", "哈", "哈！"], "哈哈哈！", id="pieces that repeat, then more"),
        pytest.param(["ha", "haha", "!"], "hahaha!", id="a longer repetition"),
        pytest.param(["好", "好学习", "，天天向上"], "好好学习，天天向上", id="a doubled beginning"),
        pytest.param(["我", "我是", "我是阿", "我是阿里", "我是阿里云"], "我是阿里云", id="trap 16: growing snapshots"),
        pytest.param(["Hello", "Hello world"], "Hello world", id="trap 16: two snapshots"),
        pytest.param(
            ["Hello", "Hello world", "Hello world!", "Hello world!"], "Hello world!", id="trap 16: the end twice"
        ),
        pytest.param(
            ["The weather ", "The weather is", "The wea", "The weather is fine"], "The weather is fine", id="stale"
        ),
        pytest.param(["The weather ", "The weather is", " fine"], "The weather is fine", id="snapshots, then pieces"),
        pytest.param(["-"] * 40, "-" * 40, id="a line, drawn piece by piece"),
        pytest.param(["<think>a", "<think>ab</think>c", "<think>ab</think>cd"], "cd", id="snapshots with reasoning"),
        pytest.param(["<think>no</think>\n\nyes"], "yes", id="trap 13: reasoning in the text"),
        pytest.param(["<think>no</think>", " ", "<think>no</think>yes"], "yes", id="trap 13: two blocks"),
        pytest.param(["\n <think>", "no", "</think>yes"], "yes", id="trap 13: blanks before the tag"),
        pytest.param(["<think>never closed", " and on"], "", id="trap 13: unclosed reasoning swallows the rest"),
        pytest.param(["<think>"], "", id="trap 13: the tag alone"),
        pytest.param(["<thi", "s>"], "<this>", id="not the tag"),
        pytest.param(["<thin"], "<thin", id="the beginning of the tag and no more"),
        pytest.param(["Use <think>x</think>."], "Use <think>x</think>.", id="an answer about the tag"),
        pytest.param(["Use ", "<think>"], "Use <think>", id="an answer about the tag, in pieces"),
        pytest.param(["<think>no</think>a<think>b</think>"], "a<think>b</think>", id="a tag after the answer began"),
        pytest.param(["<think>no</think>\n<th"], "<th", id="half a tag after a block"),
        pytest.param([" \n", "  "], "", id="blanks alone are no text"),
        pytest.param([" " * 3000, "a"], " " * 3000 + "a", id="many blanks"),
        pytest.param(["  a"], "  a", id="blanks before the first word stay"),
    ],
)
def test_pieces_become_the_text_that_the_model_meant(pieces: list[Any], text: str) -> None:
    assert show(pieces)[1] == text


@given(st.text(max_size=40), st.data())
@example("<think>a</think>b", None)
def test_reasoning_is_found_however_it_is_cut(text: str, data: st.DataObject | None) -> None:
    stream = "<think>" + text.replace("</think>", "") + "</think>" + "Answer."
    cuts = list(range(len(stream))) if data is None else data.draw(st.lists(st.integers(0, len(stream))).map(sorted))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert show(pieces)[1] == "Answer."


@given(st.text(alphabet="abcdefg", min_size=7, max_size=60).filter(lambda text: text[0] not in text[1:7]))
def test_growing_snapshots_of_any_text_are_shown_once(text: str) -> None:
    assert show([text[:end] for end in range(1, len(text) + 1)])[1] == text


def test_the_first_piece_and_all_later_ones_are_shown_at_once() -> None:
    shown, _ = show(["The", " weather", " is", " fine"])
    assert shown == ["The", " weather", " is", " fine", ""]


def test_of_a_doubtful_piece_what_is_certain_is_shown_at_once() -> None:
    shown, _ = show(["哈", "哈哈", "，", "好"])
    assert shown == ["哈", "哈", "哈，", "好", ""]


def test_after_some_doubtful_pieces_and_many_blanks_nothing_is_held_back_any_more() -> None:
    shown, _ = show(["-"] * 40)
    assert shown[20:40] == ["-"] * 20
    shown, _ = show([" " * 3000, "a"])
    assert shown == [" " * 3000, "a", ""]


@pytest.mark.parametrize(
    ("value", "usage"),
    [
        pytest.param({"prompt_tokens": 3, "completion_tokens": 4}, Usage(3, 4), id="OpenAI"),
        pytest.param({"input_tokens": 3, "output_tokens": 4}, Usage(3, 4), id="DashScope"),
        pytest.param({"prompt_tokens": 3, "completion_tokens": None}, Usage(3, 0), id="half"),
        pytest.param({"prompt_tokens": None}, None, id="null within"),
        pytest.param({"prompt_tokens": True, "completion_tokens": -1}, None, id="no numbers of tokens"),
        pytest.param({"prompt_tokens": 10**30, "completion_tokens": 2.5}, None, id="no numbers of tokens either"),
        pytest.param({"total_tokens": 0}, None, id="MiniMax's place holder"),
        pytest.param(None, None, id="trap 18: null"),
        pytest.param("3", None, id="text"),
    ],
)
def test_usage_is_read_in_both_spellings_and_never_guessed(value: object, usage: Usage | None) -> None:
    assert usage_from(value) == usage
