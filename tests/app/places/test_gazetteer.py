"""Places by their names, and places in sentences."""

import zoneinfo
from collections import Counter

import pytest

from app.places.gazetteer import (
    find_place,
    known_places,
    lesser_places,
    mentions,
    place_in,
    zone_ids,
)
from toolchat.tool_calling.text_normalization import normalize_name, simplify

SHANGHAI = "Asia/Shanghai"
NEW_YORK = "America/New_York"
LOS_ANGELES = "America/Los_Angeles"
LONDON = "Europe/London"
TOKYO = "Asia/Tokyo"


def test_every_place_has_a_time_zone_of_the_tz_database() -> None:
    known = zoneinfo.available_timezones()
    assert [place for place in (*known_places(), *lesser_places()) if place.zone not in known] == []


def test_no_name_refers_to_two_places() -> None:
    lesser = (name for place in lesser_places() for name in place.names[1:])
    names = Counter(map(normalize_name, (*lesser, *(name for place in known_places() for name in place.names))))
    assert [name for name, times in names.items() if times > 1] == []


def test_every_place_is_found_by_each_of_its_names_and_by_its_english_form() -> None:
    for place in known_places():
        assert [find_place(name) for name in place.names] == [place] * len(place.names)
        assert find_place(place.english) == place


def test_names_are_listed_in_simplified_characters_alone() -> None:
    listed = [name for place in (*known_places(), *lesser_places()) for name in place.names]
    assert [name for name in listed if simplify(name) != name] == []


# In traditional and Japanese characters; the table has none of them.
TRADITIONAL = "中國 廣州 重慶 烏魯木齊 臺灣 橫濱 横浜 広島 沖縄 義大利 佛羅倫斯 巴塞隆納 舊金山 布宜諾斯艾利斯 紐西蘭"


def test_a_place_is_found_by_its_name_in_traditional_characters() -> None:
    found = {name: find_place(name) for name in TRADITIONAL.split()}
    assert [name for name, place in found.items() if place is None or place != find_place(simplify(name))] == []


def test_a_lesser_place_is_not_looked_for_in_sentences() -> None:
    names = [name for place in lesser_places() for name in place.names[1:]]
    assert [name for name in names if any(found.end - found.start == len(name) for found in mentions(name))] == []
    assert place_in("最新北京天气") == find_place("北京")


def test_the_list_of_ids_is_that_of_the_tz_database_without_ids_that_are_no_places() -> None:
    assert zone_ids() == zoneinfo.available_timezones() - {"Factory", "localtime", "posixrules"}


@pytest.mark.parametrize(
    ("name", "zone", "english"),
    [
        ("北京", SHANGHAI, "Beijing, China"),
        ("北京市", SHANGHAI, "Beijing, China"),
        ("廣州", SHANGHAI, "Guangzhou, China"),
        ("西安", SHANGHAI, "Xi'an, China"),
        ("xian", SHANGHAI, "Xi'an, China"),
        ("台州", SHANGHAI, "Taizhou, Zhejiang, China"),
        ("泰州", SHANGHAI, "Taizhou, Jiangsu, China"),
        ("香港", "Asia/Hong_Kong", "Hong Kong"),
        ("臺北", "Asia/Taipei", "Taipei, Taiwan"),
        ("東京", TOKYO, "Tokyo, Japan"),
        ("TOKYO", TOKYO, "Tokyo, Japan"),
        ("Ｔｏｋｙｏ", TOKYO, "Tokyo, Japan"),
        ("  tokyo ", TOKYO, "Tokyo, Japan"),
        ("Tokyo,Japan", TOKYO, "Tokyo, Japan"),
        ("日本", TOKYO, "Japan"),
        ("胡志明市", "Asia/Ho_Chi_Minh", "Ho Chi Minh City, Vietnam"),
        ("英国", LONDON, "United Kingdom"),
        ("München", "Europe/Berlin", "Munich, Germany"),
        ("纽约", NEW_YORK, "New York, USA"),
        ("NYC", NEW_YORK, "New York, USA"),
        ("New_York", NEW_YORK, "New York, USA"),
        ("华盛顿", NEW_YORK, "Washington, USA"),
        ("三藩市", LOS_ANGELES, "San Francisco, USA"),
        ("火奴鲁鲁", "Pacific/Honolulu", "Honolulu, USA"),
        ("São Paulo", "America/Sao_Paulo", "Sao Paulo, Brazil"),
        ("Yekaterinburg", "Asia/Yekaterinburg", "Yekaterinburg"),
        ("Punta_Arenas", "America/Punta_Arenas", "Punta Arenas"),
    ],
)
def test_a_place_is_found_by_the_names_that_people_use(name: str, zone: str, english: str) -> None:
    place = find_place(name)
    assert place is not None
    assert (place.zone, place.english) == (zone, english)


@pytest.mark.parametrize(
    "name", ["", " ", "市", "火星", "美国", "Wake", "印度尼西亚", "Asia/Tokyo", "\ud800", "x" * 5000]
)
def test_a_name_that_is_no_place_with_one_time_zone_is_not_guessed(name: str) -> None:
    assert find_place(name) is None


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("请告诉我现在北京时间几点了", "Beijing, China"),
        ("东京和巴黎现在几点", "Tokyo, Japan"),
        ("罗马尼亚的首都", "Romania"),
        ("北海道的天气", "Hokkaido, Japan"),
        ("what time is it in new york?", "New York, USA"),
        ("time in São Paulo", "Sao Paulo, Brazil"),
        ("在Tokyo的天气", "Tokyo, Japan"),
        ("weather in LA", "Los Angeles, USA"),
        ("Ｔｏｋｙｏ is far", "Tokyo, Japan"),
    ],
)
def test_a_sentence_names_the_first_place_in_it_and_the_longest_name_there(text: str, english: str) -> None:
    place = place_in(text)
    assert place is not None
    assert place.english == english


@pytest.mark.parametrize(
    "text",
    [
        "",
        "我想吃三明治",
        "大理石地板",
        "印度尼西亚",
        "汉堡包",
        "wake me up",
        "la la la",
        "parisian",
        "comparison",
        "nyc",
    ],
)
def test_a_word_that_only_holds_a_place_name_names_no_place(text: str) -> None:
    assert place_in(text) is None


def test_mentions_come_in_order_with_their_positions_in_the_text_as_it_was_written() -> None:
    text = "㎏ 从纽约到Ｔｏｋｙｏ, Zürich"
    found = [(text[each.start : each.end], each.place.zone) for each in mentions(text)]
    assert found == [("纽约", NEW_YORK), ("Ｔｏｋｙｏ", TOKYO), ("Zürich", "Europe/Zurich")]
