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


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        pytest.param([[{"text": "a"}], [], [{"type": "text", "text": "b"}]], "ab", id="trap 11: lists"),
        pytest.param([[{"type": "thinking", "text": "x"}, {"text": 3}, 4, None, "b"]], "b", id="trap 11: odd parts"),
        pytest.param([{"text": "a"}, 3, True, 0.5], "", id="trap 11: neither text nor list"),
        pytest.param(["哈", "哈", "哈！"], "哈哈哈！", id="pieces that repeat, then more"),
        pytest.param(["ha", "haha", "!"], "hahaha!", id="a longer repetition"),
        pytest.param(["好", "好学习", "，天天向上"], "好好学习，天天向上", id="a doubled beginning"),
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
        pytest.param(["I guess so.\n</think>\n\nYes."], "Yes.", id="the end of reasoning alone"),
        pytest.param(["I guess so.</think>\nYes."], "Yes.", id="the end of reasoning at the end of a line"),
        pytest.param(["I guess so.</think>"], "", id="reasoning and no answer"),
        pytest.param(["</th", "ink>", "\n\n", "Yes."], "Yes.", id="an end without reasoning, in pieces"),
        pytest.param(["</thin"], "</thin", id="the beginning of the end and no more"),
        pytest.param(["a\n</think>\n<think>b</think>c"], "c", id="the end of reasoning, and a block"),
        pytest.param(["I guess", " so.\n</think>\n\nYes."], "I guess so.\n</think>\n\nYes.", id="what was shown stays"),
        pytest.param(["Split at `</think>`, once."], "Split at `</think>`, once.", id="an answer about the end"),
        pytest.param(
            ["So:\n<think>\nx\n</think>\nDone."], "So:\n<think>\nx\n</think>\nDone.", id="a block in the text"
        ),
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


def test_the_certain_part_of_an_ambiguous_piece_is_shown_at_once() -> None:
    shown, _ = show(["哈", "哈哈", "，", "好"])
    assert shown == ["哈", "哈", "哈，", "好", ""]


def test_after_some_doubtful_pieces_nothing_is_held_back_any_more() -> None:
    shown, _ = show(["-"] * 40)
    assert shown[20:40] == ["-"] * 20


def test_long_ambiguous_pieces_are_not_buffered() -> None:
    shown, _ = show(["-" * 10_000] * 3)
    assert shown == ["-" * 10_000, "-" * 10_000, "-" * 10_000, ""]


def test_after_many_blanks_nothing_is_held_back_any_more() -> None:
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


@pytest.mark.parametrize(
    "told",
    [
        {
            "prompt_tokens": 20,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 12},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
        {
            "input_tokens": 20,
            "output_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 12},
            "output_tokens_details": {"reasoning_tokens": 3},
        },
    ],
    ids=["OpenAI", "DashScope"],
)
def test_cached_and_reasoning_tokens_are_read_if_a_provider_reports_them(told: dict[str, object]) -> None:
    assert usage_from(told) == Usage(20, 5, 12, 3)


@pytest.mark.parametrize("details", [None, [], {}, {"cached_tokens": "12"}, {"cached_tokens": -1}])
def test_usage_details_without_counts_are_ignored(details: object) -> None:
    assert usage_from({"prompt_tokens": 20, "completion_tokens": 5, "prompt_tokens_details": details}) == Usage(20, 5)


def test_the_tokens_of_several_turns_are_summed() -> None:
    assert Usage(20, 5, 12, 3) + Usage(30, 6, 0, 1) == Usage(50, 11, 12, 4)
