"""Which country or region a place belongs to, and how places, zones and languages are recognised in a question."""

from collections.abc import Callable, Iterable

import pytest

from app.places.gazetteer import belongs, chinese_countries, find_place, known_places, lesser_places, provinces
from app.places.recognizers import find_city, find_language, find_zone
from toolchat import Recognized


@pytest.mark.parametrize(
    ("name", "city"),
    [
        ("texas", "Houston"),
        ("usa", "Houston"),
        ("美国", "Houston"),
        ("united states", "Houston"),
        ("england", "London"),
        ("great britain", "London"),
        ("英国", "伦敦"),
        ("zhejiang", "台州"),
        ("中国", "Changsha"),
    ],
)
def test_a_place_belongs_to_its_region_and_its_country_by_any_of_their_names(name: str, city: str) -> None:
    place = find_place(city)
    assert place is not None
    assert belongs(name, place)


@pytest.mark.parametrize(("name", "city"), [("texas", "Paris"), ("france", "London"), ("anhui", "Suzhou")])
def test_a_place_belongs_nowhere_else(name: str, city: str) -> None:
    place = find_place(city)
    assert place is not None
    assert not belongs(name, place)


def test_every_region_of_a_chinese_city_is_a_province() -> None:
    regions = {place.region for place in (*known_places(), *lesser_places()) if place.country == "China"} - {""}
    assert regions <= set(provinces().values())
    assert len(provinces()) == 31


def test_no_country_is_listed_by_a_name_that_the_table_of_places_has() -> None:
    assert [name for name in chinese_countries() if find_place(name)] == []


@pytest.mark.parametrize(
    ("find", "question", "values"),
    [
        (find_zone, "time in Paris, France and 东京", ["Europe/Paris", "Asia/Tokyo"]),
        (find_zone, "time in Paris, Texas", []),
        (find_zone, "UTC+8 or europe/rome, GMT", ["UTC+8", "Europe/Rome", "GMT"]),
        (find_city, "weather in Springfield, Illinois and oslo", ["Springfield, Illinois", "oslo"]),
        (find_city, "weather in Paris in December", ["Paris"]),
        (find_city, "宿州和苏州哪里更热？", ["苏州", "宿州"]),
        (find_language, "into french and 日语", ["fr", "ja"]),
        (find_language, "a frenchman", []),
    ],
)
def test_a_question_names_values(find: Callable[[str], Iterable[Recognized]], question: str, values: list[str]) -> None:
    assert sorted(each.value for each in find(question)) == sorted(values)
