"""Pieces of a turn are put together: its text and its usage."""

from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from toolchat.messages import Usage
from toolchat.models.merging import TextMerger, usage_from


def show(pieces: list[Any]) -> tuple[list[str], str]:
    merger = TextMerger()
    shown = [merger.add(piece) for piece in pieces]
    shown.append(merger.finish())
    assert "".join(shown) == merger.text
    return shown, merger.text


IN_THE_TEXT = "So:\n<think>\nx\n</think>\nDone."
CASES: dict[str, tuple[list[Any], str]] = {
    "lists": ([[{"text": "a"}], [], [{"type": "text", "text": "b"}]], "ab"),
    "odd parts": ([[{"type": "thinking", "text": "x"}, {"text": 3}, 4, None, "b"]], "b"),
    "neither text nor list": ([{"text": "a"}, 3, True, 0.5], ""),
    "pieces that repeat, then more": (["哈", "哈", "哈！"], "哈哈哈！"),
    "a longer repetition": (["ha", "haha", "!"], "hahaha!"),
    "a doubled beginning": (["好", "好学习", "，天天向上"], "好好学习，天天向上"),
    "snapshots, the end twice": (["Hello", "Hello world", "Hello world!", "Hello world!"], "Hello world!"),
    "a stale snapshot": (["The weather ", "The weather is", "The wea", "The weather is fine"], "The weather is fine"),
    "snapshots, then pieces": (["The weather ", "The weather is", " fine"], "The weather is fine"),
    "a line, drawn piece by piece": (["-"] * 40, "-" * 40),
    "snapshots with reasoning": (["<think>a", "<think>ab</think>c", "<think>ab</think>cd"], "cd"),
    "two blocks": (["<think>no</think>", " ", "<think>no</think>yes"], "yes"),
    "blanks before the tag": (["\n <think>", "no", "</think>yes"], "yes"),
    "unclosed reasoning swallows the rest": (["<think>never closed", " and on"], ""),
    "the tag alone": (["<think>"], ""),
    "not the tag": (["<thi", "s>"], "<this>"),
    "the beginning of the tag and no more": (["<thin"], "<thin"),
    "an answer about the tag": (["Use <think>x</think>."], "Use <think>x</think>."),
    "an answer about the tag, in pieces": (["Use ", "<think>", "x</think>."], "Use <think>x</think>."),
    "a tag after the answer began": (["<think>no</think>a<think>b</think>"], "a<think>b</think>"),
    "half a tag after a block": (["<think>no</think>\n<th"], "<th"),
    "the end of reasoning alone": (["I guess so.\n</think>\n\nYes."], "Yes."),
    "the end of reasoning at the end of a line": (["I guess so.</think>\nYes."], "Yes."),
    "reasoning and no answer": (["I guess so.</think>"], ""),
    "an end without reasoning, in pieces": (["</th", "ink>", "\n\n", "Yes."], "Yes."),
    "the beginning of the end and no more": (["</thin"], "</thin"),
    "the end of reasoning, and a block": (["a\n</think>\n<think>b</think>c"], "c"),
    "what was shown stays": (["I guess", " so.\n</think>\n\nYes."], "I guess so.\n</think>\n\nYes."),
    "an answer about the end": (["Split at `</think>`, once."], "Split at `</think>`, once."),
    "a block in the text": ([IN_THE_TEXT], IN_THE_TEXT),
    "blanks alone are no text": ([" \n", "  "], ""),
    "blanks before the first word stay": (["  a"], "  a"),
}


@pytest.mark.parametrize("case", CASES)
def test_pieces_become_the_text_that_the_model_meant(case: str) -> None:
    pieces, text = CASES[case]
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


LONG = "-" * 10_000


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["The", " weather", " is", " fine"], ["The", " weather", " is", " fine", ""]),
        (["哈", "哈哈", "，", "好"], ["哈", "哈", "哈，", "好", ""]),
        ([LONG] * 3, [LONG, LONG, LONG, ""]),
        ([" " * 3000, "a"], [" " * 3000, "a", ""]),
    ],
    ids=["first and later ones", "the certain part of a doubtful one", "long doubtful ones", "very many blanks"],
)
def test_pieces_are_shown_at_once_unless_they_are_doubtful(pieces: list[str], expected: list[str]) -> None:
    assert show(pieces)[0] == expected


def test_after_some_doubtful_pieces_nothing_is_held_back_any_more() -> None:
    shown, _ = show(["-"] * 40)
    assert shown[20:40] == ["-"] * 20


GIVEN, WRITTEN = {"prompt_tokens": 20, "completion_tokens": 5}, {"input_tokens": 20, "output_tokens": 5}
NO_DETAILS: list[Any] = [None, [], {}, {"cached_tokens": "12"}, {"cached_tokens": -1}]
CACHED, THOUGHT = {"prompt_tokens_details": {"cached_tokens": 12}}, {"reasoning_tokens": 3}


@pytest.mark.parametrize(
    ("value", "usage"),
    [
        (GIVEN | CACHED | {"completion_tokens_details": THOUGHT}, Usage(20, 5, 12, 3)),
        (WRITTEN | CACHED | {"output_tokens_details": THOUGHT}, Usage(20, 5, 12, 3)),
        *((GIVEN | {"prompt_tokens_details": each}, Usage(20, 5)) for each in NO_DETAILS),
        ({"prompt_tokens": 3, "completion_tokens": None}, Usage(3, 0)),
        ({"prompt_tokens": None}, None),
        ({"prompt_tokens": True, "completion_tokens": -1}, None),
        ({"prompt_tokens": 10**30, "completion_tokens": 2.5}, None),
        ({"total_tokens": 0}, None),  # MiniMax's place holder
        (None, None),
        ("3", None),
    ],
    ids=str,
)
def test_usage_is_read_in_both_spellings_and_never_guessed(value: object, usage: Usage | None) -> None:
    assert usage_from(value) == usage
