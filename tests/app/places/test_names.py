"""Names of places and languages in every spelling."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from app.places.gazetteer import known_places, lesser_places
from app.places.languages import language_of, languages, normalize_language
from app.places.pinyin import find_chinese_place, romanize
from app.tools.weather.places import is_chinese, place_query
from tests.command_line import environment


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
        ("Japanese (ja)", "ja"),
        ("日文", "ja"),
        ("日本語", "ja"),
        ("韓國語", "ko"),
        ("francais", "fr"),
        ("pt-BR", "pt"),
        ("zh-CN", "zh"),
        ("zh-Hant-TW", "zh-TW"),
        ("繁體中文", "zh-TW"),
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


NAMES = Path(__file__).with_name("chinese_names.txt")


@pytest.mark.parametrize(("name", "written"), [("六合", "Liuhe"), ("天长", "Tianchang"), ("绿春", "Luchun")])
def test_a_name_is_written_as_one_word_without_tones(name: str, written: str) -> None:
    assert romanize(name) == written


@pytest.mark.parametrize(
    ("name", "english", "region"), [("和田", "Hotan", ""), ("宿州", "Suzhou", "Anhui"), ("西安", "Xi'an", "Shaanxi")]
)
def test_names_that_pinyin_gets_wrong_are_in_the_tables(name: str, english: str, region: str) -> None:
    place = find_chinese_place(name)
    assert place is not None
    assert (place.name, place.region) == (english, region)


@pytest.mark.parametrize("name", ["阜阳", "东京", "中国", "吉林", "吉林市", "山西", ""])
def test_provinces_and_places_abroad_or_in_no_table_have_no_spelling(name: str) -> None:
    assert find_chinese_place(name) is None


def test_pypinyin_is_imported_for_a_name_in_no_table_and_not_before() -> None:
    code = (
        "import sys; from app.tools.weather.places import place_query; "
        "asked = ('北京', '东莞市', '宿州', '台北', '东京', '美国'); "
        "print(*(place_query(name).q for name in asked), 'pypinyin' in sys.modules, sep='; '); "
        "print(place_query('阜阳').q, 'pypinyin' in sys.modules, sep='; ')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment({}), capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.splitlines() == [
        "Beijing, China; Dongguan, China; Suzhou, Anhui, China; Taipei, Taiwan; Tokyo, Japan; USA; False",
        "Fuyang, China; True",
    ]


def test_without_its_phrases_pypinyin_reads_no_name_of_china_otherwise() -> None:
    # The service does without them for the memory that they take; the reader here has them, being imported before.
    code = (
        "import sys, pypinyin; from app.tools.weather.places import place_query; "
        "print(*(place_query(name).q for name in sys.stdin.read().split()), sep='\\n')"
    )
    own = [name for place in (*known_places(), *lesser_places()) for name in place.names if is_chinese(name)]
    listed = NAMES.read_text().partition("\n")[2].split()
    names = [*own, *listed, *(f"{name}{rank}" for name in listed if name != "重庆" for rank in "市县区")]
    assert len(own) > 400
    assert len(listed) > 800
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=environment({"PYPINYIN_NO_PHRASES": ""}),
        input=" ".join(names),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert [place_query(name).q for name in names] == ran.stdout.splitlines()
