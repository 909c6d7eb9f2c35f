"""How many days of weather a question asks about."""

import pytest

from tests.offline.asking import FORECAST, WEATHER, answered, asked


@pytest.mark.parametrize(
    ("question", "city", "days"),
    [
        ("请告诉我北京1天以后的天气", "北京", 2),
        ("上海未来三天天气怎么样", "上海", 3),
        ("上海3天天气", "上海", 3),
        ("三亚一周的天气", "三亚", 7),
        ("广州两周天气预报", "广州", 14),
        ("北京明天会下雨吗", "北京", 2),
        ("后天深圳天气", "深圳", 3),
        ("大后天深圳天气", "深圳", 4),
        ("今天杭州气温", "杭州", 1),
        ("杭州天气", "杭州", 1),
        ("北京100天的天气", "北京", 14),
        ("weather in Paris for the next 5 days", "Paris", 5),
        ("Will it rain in London tomorrow?", "London", 2),
        ("weather at Xiamen in 3 days", "Xiamen", 4),
        ("New York weather", "New York", 1),
        ("weather in Springfield tomorrow", "Springfield", 2),
        ("weather in little rock today", "little rock", 1),
        ("查一下阿克苏今天的天气", "阿克苏", 1),
        ("What's the temperature in 北京", "北京", 1),
        ("Weather in Paris: will it rain tomorrow?", "Paris", 2),
    ],
)
async def test_a_city_and_a_number_of_days_come_from_the_question_within_the_bounds(
    question: str, city: str, days: int
) -> None:
    assert await asked(question, WEATHER) == [("getWeatherFunction", {"city": city, "days": days})]


@pytest.mark.parametrize(
    ("question", "days", "said"),
    [
        ("weather in Paris for -3 days", 1, None),
        ("weather in Paris for 1.5 days", 1, None),
        ("weather in Paris for 0 days", 1, None),
        ("weather in Paris for 100 days", 14, "The limit is 14 days"),
        ("weather in Paris for 12345678 days", 14, "The limit is 14 days"),
        ("北京未来一百天的天气", 14, "最多 14 天"),
        ("北京20天以后的天气", 14, "最多 14 天"),
        ("weather in Paris yesterday", 1, "cannot look back"),
        ("weather in Paris 3 days ago", 1, "cannot look back"),
        ("weather in Paris last week", 1, "cannot look back"),
        ("北京一个月的天气", 14, "最多 14 天"),
        ("weather in Paris for 2-3 days", 3, None),
        ("北京昨天天气", 1, "过去的日子查不到"),
        ("北京下周一天气", 14, None),
        ("weather in Paris next weekend", 14, None),
        ("weather in Paris next week", 14, None),
        ("weather in Paris on Monday", 7, None),
    ],
)
async def test_days_beyond_the_forecast_are_reported(question: str, days: int, said: str | None) -> None:
    ((_, arguments),) = await asked(question, WEATHER)
    answer = await answered(question, FORECAST, WEATHER)
    assert arguments["days"] == days
    assert (said or "2026-11-20") in answer
