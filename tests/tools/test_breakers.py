"""A tool's upstream that is away: it is left alone for a while, and the model is told so at once."""

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.observability.reading import figures_of, grown
from tests.serving import service, serving

UPSTREAMS = {
    "WeatherAPI": (
        {"WEATHER_API_KEY": "k" * 31},
        "WEATHER_BASE_URL",
        "getWeatherFunction",
        {"city": "Paris", "days": 1},
    ),
    "Baidu": (
        {
            "BAIDU_TRANSLATE_APP_ID": "1",
            "BAIDU_TRANSLATE_SECRET_KEY": "s",
            "BAIDU_TRANSLATE_REQUESTS_PER_SECOND": "100",
        },
        "BAIDU_TRANSLATE_BASE_URL",
        "baiduTranslateFunction",
        {"q": "good morning", "from": "en", "to": "zh"},
    ),
}


@pytest.mark.parametrize("name", UPSTREAMS)
async def test_a_failing_upstream_is_not_called_every_time(name: str) -> None:
    variables, address, tool, arguments = UPSTREAMS[name]
    asked = 0

    async def away(_: Request) -> Response:
        nonlocal asked
        asked += 1
        return Response(status_code=500)

    async with serving(Starlette(routes=[Route("/{path:path}", away, methods=["GET", "POST"])])) as url:
        variables = {**variables, address: url, "BREAKER_FAILURES": "2", "BREAKER_PAUSE": "600"}
        async with service(**variables) as client:
            before = await figures_of(client)
            answers = [await client.post(f"/tools/{tool}", json=arguments) for _ in range(6)]
            after = await figures_of(client)
    assert [each.json()["outcome"] for each in answers] == ["error"] * 6
    assert asked == 2
    [(labels, opened)] = grown(before, after, "toolchat_breaker_openings_total").items()
    assert (name in dict(labels)["upstream"], opened) == (True, 1)
    assert grown(before, after, "toolchat_breaker_refusals_total")[labels] >= 4
