"""Places by their names, and places in sentences."""

import zoneinfo
from collections import Counter

import pytest

from app.gazetteer import Place, find_place, folded, mentions, place_in, table, zone_ids

SHANGHAI = "Asia/Shanghai"
NEW_YORK = "America/New_York"
LOS_ANGELES = "America/Los_Angeles"
LONDON = "Europe/London"
TOKYO = "Asia/Tokyo"


def test_every_place_has_a_time_zone_of_the_tz_database() -> None:
    known = zoneinfo.available_timezones()
    assert [place for place in table() if place.zone not in known] == []


def test_no_name_stands_for_two_places() -> None:
    names = Counter(folded(name) for place in table() for name in place.names)
    assert [name for name, times in names.items() if times > 1] == []


def test_the_table_holds_a_hundred_chinese_cities_and_a_hundred_and_fifty_others() -> None:
    chinese = [place for place in table() if place.english.endswith(", China")]
    assert len(chinese) >= 100
    assert len(list(table())) - len(chinese) >= 150


def test_every_place_is_found_by_each_of_its_names_and_by_its_english_form() -> None:
    for place in table():
        assert [find_place(name) for name in place.names] == [place] * len(place.names)
        assert find_place(place.english) == place


def test_the_list_of_ids_is_that_of_the_tz_database_without_what_is_no_place() -> None:
    assert zone_ids() == zoneinfo.available_timezones() - {"Factory", "localtime", "posixrules"}


@pytest.mark.parametrize(
    ("name", "zone", "english"),
    [
        ("北京", SHANGHAI, "Beijing, China"),
        ("北京市", SHANGHAI, "Beijing, China"),
        ("上海", SHANGHAI, "Shanghai, China"),
        ("廣州", SHANGHAI, "Guangzhou, China"),
        ("深圳市", SHANGHAI, "Shenzhen, China"),
        ("重慶", SHANGHAI, "Chongqing, China"),
        ("西安", SHANGHAI, "Xi'an, China"),
        ("xian", SHANGHAI, "Xi'an, China"),
        ("乌鲁木齐", SHANGHAI, "Urumqi, China"),
        ("拉萨", SHANGHAI, "Lhasa, China"),
        ("呼和浩特", SHANGHAI, "Hohhot, China"),
        ("台州", SHANGHAI, "Taizhou, Zhejiang, China"),
        ("泰州", SHANGHAI, "Taizhou, Jiangsu, China"),
        ("香港", "Asia/Hong_Kong", "Hong Kong"),
        ("澳門", "Asia/Macau", "Macau"),
        ("台北", "Asia/Taipei", "Taipei, Taiwan"),
        ("臺北", "Asia/Taipei", "Taipei, Taiwan"),
        ("东京", TOKYO, "Tokyo, Japan"),
        ("東京", TOKYO, "Tokyo, Japan"),
        ("TOKYO", TOKYO, "Tokyo, Japan"),
        ("Ｔｏｋｙｏ", TOKYO, "Tokyo, Japan"),
        ("  tokyo ", TOKYO, "Tokyo, Japan"),
        ("Tokyo,Japan", TOKYO, "Tokyo, Japan"),
        ("日本", TOKYO, "Japan"),
        ("北海道", TOKYO, "Hokkaido, Japan"),
        ("首尔", "Asia/Seoul", "Seoul, South Korea"),
        ("新加坡", "Asia/Singapore", "Singapore"),
        ("河内", "Asia/Ho_Chi_Minh", "Hanoi, Vietnam"),
        ("胡志明市", "Asia/Ho_Chi_Minh", "Ho Chi Minh City, Vietnam"),
        ("曼谷", "Asia/Bangkok", "Bangkok, Thailand"),
        ("吉隆坡", "Asia/Kuala_Lumpur", "Kuala Lumpur, Malaysia"),
        ("新德里", "Asia/Kolkata", "New Delhi, India"),
        ("孟买", "Asia/Kolkata", "Mumbai, India"),
        ("加德满都", "Asia/Kathmandu", "Kathmandu, Nepal"),
        ("迪拜", "Asia/Dubai", "Dubai, United Arab Emirates"),
        ("伊斯坦布尔", "Europe/Istanbul", "Istanbul, Turkey"),
        ("伦敦", LONDON, "London, UK"),
        ("倫敦", LONDON, "London, UK"),
        ("英国", LONDON, "United Kingdom"),
        ("巴黎", "Europe/Paris", "Paris, France"),
        ("法国", "Europe/Paris", "France"),
        ("柏林", "Europe/Berlin", "Berlin, Germany"),
        ("慕尼黑", "Europe/Berlin", "Munich, Germany"),
        ("München", "Europe/Berlin", "Munich, Germany"),
        ("德国", "Europe/Berlin", "Germany"),
        ("米兰", "Europe/Rome", "Milan, Italy"),
        ("罗马", "Europe/Rome", "Rome, Italy"),
        ("罗马尼亚", "Europe/Bucharest", "Romania"),
        ("维也纳", "Europe/Vienna", "Vienna, Austria"),
        ("zürich", "Europe/Zurich", "Zurich, Switzerland"),
        ("基辅", "Europe/Kyiv", "Kyiv, Ukraine"),
        ("莫斯科", "Europe/Moscow", "Moscow, Russia"),
        ("开罗", "Africa/Cairo", "Cairo, Egypt"),
        ("开普敦", "Africa/Johannesburg", "Cape Town, South Africa"),
        ("纽约", NEW_YORK, "New York, USA"),
        ("NYC", NEW_YORK, "New York, USA"),
        ("New_York", NEW_YORK, "New York, USA"),
        ("华盛顿", NEW_YORK, "Washington, USA"),
        ("芝加哥", "America/Chicago", "Chicago, USA"),
        ("达拉斯", "America/Chicago", "Dallas, USA"),
        ("旧金山", LOS_ANGELES, "San Francisco, USA"),
        ("三藩市", LOS_ANGELES, "San Francisco, USA"),
        ("洛杉矶", LOS_ANGELES, "Los Angeles, USA"),
        ("西雅图", LOS_ANGELES, "Seattle, USA"),
        ("檀香山", "Pacific/Honolulu", "Honolulu, USA"),
        ("火奴鲁鲁", "Pacific/Honolulu", "Honolulu, USA"),
        ("温哥华", "America/Vancouver", "Vancouver, Canada"),
        ("多伦多", "America/Toronto", "Toronto, Canada"),
        ("圣保罗", "America/Sao_Paulo", "Sao Paulo, Brazil"),
        ("São Paulo", "America/Sao_Paulo", "Sao Paulo, Brazil"),
        ("悉尼", "Australia/Sydney", "Sydney, Australia"),
        ("奥克兰", "Pacific/Auckland", "Auckland, New Zealand"),
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


def test_a_place_is_a_value() -> None:
    assert find_place("东京") == Place(("Tokyo", "东京", "東京"), "Tokyo, Japan", TOKYO)
