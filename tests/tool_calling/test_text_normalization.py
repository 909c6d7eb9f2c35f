"""Ways of writing a name or a question that mean the same."""

import pytest

from toolchat.tool_calling.text_normalization import fold, normalize_name, simplify


@pytest.mark.parametrize(
    ("text", "plain"), [("Zürich", "zurich"), ("Ｔｏｋｙｏ", "tokyo"), ("tiếng Việt", "tieng viet"), ("廣州", "廣州")]
)
def test_width_case_and_latin_accents_are_folded_and_nothing_else(text: str, plain: str) -> None:
    assert fold(text) == plain


@pytest.mark.parametrize(
    ("name", "plain"), [("廣州", "广州"), ("広島", "广岛"), ("Île-de-France", "ile-de-france"), ("韓國語", "韩国语")]
)
def test_all_ways_of_writing_a_name_become_one(name: str, plain: str) -> None:
    assert normalize_name(name) == plain


@pytest.mark.parametrize("text", ["ß", "İstanbul", "ﷺ", "㎏ 从纽约", "Ⅷ ﬁ", "臺灣", "e\u0301", "\ud800", "👩‍👩‍👧"])
def test_folding_keeps_every_position(text: str) -> None:
    assert len(fold(text)) == len(simplify(text)) == len(normalize_name(text)) == len(text)
