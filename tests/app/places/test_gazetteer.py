"""Places by their names, and places in sentences."""

import zoneinfo
from collections import Counter

import pytest

from app.places.gazetteer import (
    Place,
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


def test_the_table_holds_a_hundred_chinese_cities_and_a_hundred_and_fifty_others() -> None:
    chinese = [place for place in known_places() if place.english.endswith(", China")]
    assert len(chinese) >= 100
    assert len(list(known_places())) - len(chinese) >= 150


def test_every_place_is_found_by_each_of_its_names_and_by_its_english_form() -> None:
    for place in known_places():
        assert [find_place(name) for name in place.names] == [place] * len(place.names)
        assert find_place(place.english) == place


def test_names_are_listed_in_simplified_characters_alone() -> None:
    listed = [name for place in (*known_places(), *lesser_places()) for name in place.names]
    assert [name for name in listed if simplify(name) != name] == []


# In traditional and Japanese characters; the table has none of them.
TRADITIONAL = """
中國 廣州 重慶 武漢 蘇州 長沙 鄭州 青島 濟南 瀋陽 大連 哈爾濱 長春 石家莊 廈門 寧波 溫州 嘉興 紹興 金華 義烏 無錫
揚州 鎮江 連雲港 鹽城 東莞 汕頭 江門 肇慶 韶關 南寧 三亞 貴陽 遵義 麗江 西雙版納 拉薩 蘭州 西寧 銀川 烏魯木齊 包頭
鄂爾多斯 呼倫貝爾 秦皇島 張家口 邯鄲 洛陽 開封 南陽 煙台 濰坊 臨沂 濟寧 蕪湖 黃山 贛州 景德鎮 襄陽 荊州 張家界 岳陽
衡陽 綿陽 樂山 宜賓 咸陽 寶雞 大慶 齊齊哈爾 丹東 澳門 台灣 臺灣 臺北 臺中 臺南 東京 福岡 橫濱 横浜 神戶 廣島 広島
沖繩 沖縄 韓國 首爾 濟州島 朝鮮 烏蘭巴托 馬來西亞 檳城 泰國 清邁 河內 西貢 峴港 金邊 萬象 緬甸 菲律賓 馬尼拉 宿霧
汶萊 雅加達 峇里島 孟買 班加羅爾 加爾各答 伊斯蘭堡 達卡 尼泊爾 加德滿都 斯里蘭卡 可倫坡 馬爾地夫 阿聯酋 阿布達比
沙烏地阿拉伯 麥加 卡達 巴格達 德黑蘭 特拉維夫 貝魯特 英國 倫敦 曼徹斯特 愛丁堡 劍橋 愛爾蘭 法國 馬賽 德國 法蘭克福
漢堡 義大利 羅馬 米蘭 佛羅倫斯 梵蒂岡 馬德里 巴塞隆納 蘇黎世 日內瓦 奧地利 維也納 荷蘭 比利時 布魯塞爾 盧森堡 丹麥
斯德哥爾摩 奧斯陸 芬蘭 赫爾辛基 冰島 波蘭 華沙 布達佩斯 羅馬尼亞 保加利亞 希臘 塞爾維亞 克羅埃西亞 烏克蘭 基輔
白俄羅斯 聖彼得堡 開羅 卡薩布蘭卡 約翰尼斯堡 開普敦 肯亞 奈及利亞 紐約 華盛頓 波士頓 費城 邁阿密 亞特蘭大 奧蘭多
休士頓 達拉斯 奧斯汀 紐奧良 聖路易斯 鹽湖城 鳳凰城 洛杉磯 舊金山 聖地牙哥 聖荷西 西雅圖 拉斯維加斯 火奴魯魯 多倫多
渥太華 蒙特婁 溫哥華 巴拿馬 聖保羅 里約熱內盧 布宜諾斯艾利斯 聖地亞哥 秘魯 利馬 哥倫比亞 委內瑞拉 烏拉圭 墨爾本
黃金海岸 阿德萊德 新西蘭 紐西蘭 奧克蘭 威靈頓 斐濟
"""


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
    assert find_place("东京") == Place(("Tokyo", "东京"), TOKYO, "Japan")
