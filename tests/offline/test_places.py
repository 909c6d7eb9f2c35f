"""Which places a question names, and what is not taken for one."""

import pytest

from tests.offline.asking import CLOCK, WEATHER, asked, response, said
from toolchat.messages import UserMessage


@pytest.mark.parametrize(
    ("question", "zones"),
    [
        ("请告诉我现在北京时间几点了", ["Asia/Shanghai"]),
        ("纽约和东京现在分别是几点？", ["America/New_York", "Asia/Tokyo"]),
        ("現在倫敦幾點？", ["Europe/London"]),
        ("What time is it in New York?", ["America/New_York"]),
        ("what's the time in Asia/Tokyo", ["Asia/Tokyo"]),
        ("time in america/argentina/buenos_aires please", ["America/Argentina/Buenos_Aires"]),
        ("UTC+8 现在几点？", ["UTC+8"]),
        ("东八区现在几点", ["UTC+8"]),
        ("西五区现在几点", ["UTC-5"]),
        ("time in PST", ["PST"]),
        ("“东京”现在几点", ["Asia/Tokyo"]),
        ("帮我查一下：巴黎现在几点", ["Europe/Paris"]),
        ("北京、东京、伦敦、巴黎、纽约、开罗、悉尼的时间", 5),
    ],
)
async def test_a_time_zone_comes_from_the_place_or_from_the_zone_that_is_named(
    question: str, zones: list[str] | int
) -> None:
    found = [arguments["timeZoneId"] for _, arguments in await asked(question, CLOCK)]
    assert len(found) == zones if isinstance(zones, int) else found == zones


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("Time in Paris, Texas", "Paris, Texas"),
        ("time in paris, texas please", "paris, texas"),
        ("What time is it in Paris, TX?", "Paris, TX"),
        ("Time in London, Ontario", "London, Ontario"),
        ("London, Canada: time", "London, Canada"),
        ("Time in Birmingham, Alabama", "Birmingham, Alabama"),
        ("Time in Melbourne, Florida", "Melbourne, Florida"),
        ("Time in Portland, Maine", "Portland, Maine"),
        ("Time in San Jose, Costa Rica", "San Jose, Costa Rica"),
        ("Time in Paris, Japan", "Paris, Japan"),
        ("Time in Paris, Nowhereland", "Paris, Nowhereland"),
        ("德克萨斯州的巴黎现在几点", "德克萨斯州的巴黎"),
        ("安大略省的伦敦现在几点", "安大略省的伦敦"),
        ("美国的巴黎现在几点", "美国的巴黎"),
    ],
)
async def test_a_place_with_a_foreign_qualifier_is_an_unknown_place(question: str, place: str) -> None:
    answer = await response(UserMessage(question), tools=(CLOCK,))
    assert answer.message.tool_calls == ()
    assert place in answer.message.text


@pytest.mark.parametrize(
    ("question", "zones"),
    [
        ("Time in Paris, France", ["Europe/Paris"]),
        ("Time in Tokyo, Japan", ["Asia/Tokyo"]),
        ("Time in New York, USA", ["America/New_York"]),
        ("Time in New York, NY", ["America/New_York"]),
        ("Time in Seattle, Washington", ["America/Los_Angeles"]),
        ("Time in London, England", ["Europe/London"]),
        ("Time in Toronto, Ontario, please", ["America/Toronto"]),
        ("What time is it in Paris, please", ["Europe/Paris"]),
        ("In Paris, what time is it?", ["Europe/Paris"]),
        ("Time in Paris, London and Tokyo", ["Europe/Paris", "Europe/London", "Asia/Tokyo"]),
        ("Time in Tokyo, Singapore", ["Asia/Tokyo", "Asia/Singapore"]),
        ("法国巴黎现在几点", ["Europe/Paris"]),
        ("广东省深圳现在几点", ["Asia/Shanghai"]),
        ("吉林省长春现在几点", ["Asia/Shanghai"]),
        ("内蒙古呼和浩特现在几点", ["Asia/Shanghai"]),
        ("内蒙古包头市现在几点", ["Asia/Shanghai"]),
        ("加利福尼亚州的旧金山现在几点", ["America/Los_Angeles"]),
    ],
)
async def test_a_qualifier_that_belongs_to_the_place_and_a_list_of_places_change_nothing(
    question: str, zones: list[str]
) -> None:
    assert [arguments["timeZoneId"] for _, arguments in await asked(question, CLOCK)] == zones


@pytest.mark.parametrize(
    ("question", "cities"),
    [
        ("weather in Paris, Texas", ["Paris, Texas"]),
        ("weather in London, Ontario tomorrow", ["London, Ontario"]),
        ("weather in Blorptown and Paris", ["Blorptown", "Paris"]),
        ("布洛普镇和巴黎的天气", ["布洛普镇", "巴黎"]),
        ("东京和明天的天气", ["东京"]),
    ],
)
async def test_a_city_is_passed_as_it_is_named_whether_known_or_not(question: str, cities: list[str]) -> None:
    assert [arguments["city"] for _, arguments in await asked(question, WEATHER)] == cities


async def test_vancouver_in_washington_is_one_place_and_not_the_canadian_one() -> None:
    # The state is called like a city of the table, and qualifies the place all the same.
    assert "Vancouver, Washington" in await said("time in Vancouver, Washington", tools=(CLOCK,))
