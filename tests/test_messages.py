"""What messages count: tokens of texts and of images, what is an image, and usage."""

import pytest
from hypothesis import given, strategies as st

from toolchat.messages import (
    ToolResponse,
    ToolResponseMessage,
    Usage,
    UserMessage,
    estimate_size,
    estimate_tokens,
    is_image,
)

URL = "https://a.example/b.png"
ASKED = UserMessage("What is it?", (URL,))
DRAWN = ToolResponseMessage((ToolResponse("1", "draw", "a house", images=(URL,)), ToolResponse("2", "look", "seen")))
ODD = ["", "\u2028", "\ud800", "\x00", "长" * 200]
TEXTS = st.text(st.characters(exclude_categories=()), max_size=12) | st.sampled_from(ODD)


@given(TEXTS, TEXTS)
def test_the_estimate_of_tokens_grows_with_the_text(one: str, other: str) -> None:
    # It is none only for no text, and two texts together count about as much as each alone.
    assert (estimate_tokens(one) == 0) == (one == "")
    assert estimate_tokens(one) >= 0
    assert abs(estimate_tokens(one + other) - estimate_tokens(one) - estimate_tokens(other)) <= 1


@pytest.mark.parametrize(
    ("text", "tokens"), [("现在几点？", 5), ("what time is it?", 4), ("a", 1), ("GPT 是什么", 4), ("привет", 5)]
)
def test_the_token_estimate_is_close_to_real_tokenizers(text: str, tokens: int) -> None:
    # A Chinese character counts as one token, four Latin letters count as one together.
    assert abs(estimate_tokens(text) - tokens) <= 1


IMAGES = [URL, "http://a.example/b", *(f"data:image/{kind};base64,AA==" for kind in ("png", "jpeg", "gif", "webp"))]
OTHERS = ["data:image/svg+xml;base64,AA==", "data:image/png,AA", "file:///etc/passwd", "https://a.example/b c", ""]
OTHERS += ["https://a.example/\n", f"https://a.example/{'a' * 2049}"]


@pytest.mark.parametrize("url", [*IMAGES, *OTHERS])
def test_what_is_an_image(url: str) -> None:
    assert is_image(url) is (url in IMAGES)


def test_an_image_counts_as_many_tokens_as_a_page() -> None:
    assert estimate_size((ASKED,)) - estimate_size((UserMessage("What is it?"),)) == 800
    assert estimate_size((DRAWN,)) > 800


def test_the_tokens_of_several_turns_are_summed() -> None:
    assert Usage(20, 5, 12, 3) + Usage(30, 6, 0, 1) == Usage(50, 11, 12, 4)
