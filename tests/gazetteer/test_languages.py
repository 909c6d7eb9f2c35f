"""Languages by their codes and names."""

from collections import Counter

import pytest

from app.gazetteer.languages import language_of, languages, normalize_language


def test_no_name_belongs_to_two_languages() -> None:
    names = Counter(
        normalize_language(name) for each in languages() for name in {each.code.lower(), *each.names, *each.aliases}
    )
    assert [name for name, times in names.items() if times > 1] == []
    assert len(languages()) == 37


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ja", "ja"),
        ("jpn", "ja"),
        ("jp", "ja"),
        ("Japanese (ja)", "ja"),
        ("日文", "ja"),
        ("日本語", "ja"),
        ("韓國語", "ko"),
        ("  FRANÇAIS ", "fr"),
        ("francais", "fr"),
        ("Español", "es"),
        ("pt-BR", "pt"),
        ("pt_br", "pt"),
        ("zh-CN", "zh"),
        ("zh-Hans-HK", "zh"),
        ("zh-Hant-TW", "zh-TW"),
        ("繁體中文", "zh-TW"),
        ("yue", "yue"),
        ("文言文", "lzh"),
        ("ｅｎ", "en"),
    ],
)
def test_a_language_is_found_by_any_code_or_name(name: str, code: str) -> None:
    language = language_of(name)
    assert language is not None
    assert language.code == code


@pytest.mark.parametrize("name", ["", "Klingon", "x-en", "en-", "英", "-" * 100_000, "e" * 100_000, "语", "\ud800"])
def test_an_unknown_language_is_not_guessed(name: str) -> None:
    assert language_of(name) is None


def test_names_are_written_as_texts_are_folded() -> None:
    for each in languages():
        assert [name for name in each.names if normalize_language(name) != name] == []
        assert each.names[0] == each.english.lower()
        assert each.chinese in each.names
