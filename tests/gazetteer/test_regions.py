"""Which place a name means by what stands beside it."""

import pytest

from toolchat.service.gazetteer.gazetteer import find_place, known_places, lesser_places
from toolchat.service.gazetteer.regions import (
    belongs,
    chinese_countries,
    is_country,
    is_region,
    provinces,
    resolve_place,
)
from toolchat.tool_calling.text_normalization import fold


@pytest.mark.parametrize(
    ("name", "city"),
    [
        ("texas", "Houston"),
        ("tx", "Houston"),
        ("德州", "Houston"),
        ("usa", "Houston"),
        ("美国", "Houston"),
        ("united states", "Houston"),
        ("加州", "Los Angeles"),
        ("夏威夷", "Honolulu"),
        ("wa", "Seattle"),
        ("wa", "Perth"),
        ("england", "London"),
        ("great britain", "London"),
        ("英国", "伦敦"),
        ("provence", "Nice, Provence"),
        ("zhejiang", "台州"),
        ("jiangsu", "Suzhou"),
        ("hunan", "Changsha"),
        ("内蒙古", "呼和浩特"),
        ("中国", "Changsha"),
    ],
)
def test_a_place_belongs_to_its_region_and_its_country_by_any_of_their_names(name: str, city: str) -> None:
    place = find_place(city)
    assert place is not None
    assert belongs(name, place)


@pytest.mark.parametrize(
    ("name", "city"),
    [
        ("texas", "Paris"),
        ("tx", "Chicago"),
        ("france", "London"),
        ("anhui", "Suzhou"),
        ("beijing", "Shanghai"),
        ("tokyo", "Japan"),
        ("nobody", "Beijing"),
        ("hunan", "Tokyo"),
    ],
)
def test_a_place_belongs_nowhere_else(name: str, city: str) -> None:
    place = find_place(city)
    assert place is not None
    assert not belongs(name, place)


@pytest.mark.parametrize(
    ("name", "english", "region"),
    [
        ("Suzhou, Jiangsu, China", "Suzhou, China", "Jiangsu"),
        ("Suzhou, Anhui, China", "Suzhou, China", "Anhui"),
        ("suzhou,  anhui ,china", "Suzhou, China", "Anhui"),
        ("宿州", "Suzhou, China", "Anhui"),
        ("Chaoyang, China", "Chaoyang, China", ""),
        ("Chaoyang, Beijing, China", "Chaoyang, China", "Beijing"),
        ("Xian, Shaanxi, China", "Xi'an, China", "Shaanxi"),
        ("Huaian, China", "Huai'an, China", ""),
        ("Changsha, Hunan, China", "Changsha, China", ""),
        ("Portland, OR", "Portland, USA", "Oregon"),
        ("London, England", "London, UK", "England"),
        ("Taipei, Taiwan", "Taipei, Taiwan", ""),
        ("花蓮", "Hualien, Taiwan", ""),
        ("北京", "Beijing, China", ""),
        ("Yekaterinburg", "Yekaterinburg", ""),
    ],
)
def test_a_place_is_found_by_its_name_with_region_and_country(name: str, english: str, region: str) -> None:
    place = resolve_place(name)
    assert place is not None
    assert (place.english, place.region) == (english, region)


@pytest.mark.parametrize(
    "name", ["Atlantis", "Paris, Texas", "Suzhou, Hubei, Japan", "Fuyang, China", "", ",", "39.9,116.4"]
)
def test_a_place_in_no_table_or_beside_a_wrong_region_is_unknown(name: str) -> None:
    assert resolve_place(name) is None


def test_every_place_is_found_by_its_weatherapi_query() -> None:
    for place in (*known_places(), *lesser_places()):
        in_full = ", ".join(filter(None, (place.name, place.region, place.country)))
        assert resolve_place(in_full) == place


def test_every_region_of_a_city_abroad_has_its_names() -> None:
    regions = {place.region for place in known_places() if place.country != "China"} - {"", "Provence"}
    assert [region for region in regions if not is_region(fold(region))] == []


def test_every_region_of_a_chinese_city_is_a_province() -> None:
    regions = {place.region for place in (*known_places(), *lesser_places()) if place.country == "China"} - {""}
    assert regions <= set(provinces().values())
    assert len(provinces()) == 31


@pytest.mark.parametrize("name", ["france", "法国", "usa", "us", "厄瓜多尔", "蒙古", "jordan", "england"])
def test_a_country_is_known_as_one(name: str) -> None:
    assert is_country(name)


@pytest.mark.parametrize("name", ["paris", "singapore", "yekaterinburg", "texas", "内蒙古", "湖南", ""])
def test_a_city_or_a_region_is_no_country(name: str) -> None:
    assert not is_country(name)


def test_no_country_is_listed_by_a_name_that_the_table_of_places_has() -> None:
    assert [name for name in chinese_countries() if find_place(name)] == []
