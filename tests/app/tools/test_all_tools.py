"""What holds for every tool: names, titles of results, and upstreams that are away."""

from collections.abc import Callable
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from pydantic import TypeAdapter
from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.tools.baidu_translate.tools import BaiduTranslateService, BaiduTranslateTools
from app.tools.time.tools import GetCurrentTimeByTimeZoneIdService, TimeTools
from app.tools.weather.tools import WeatherService, WeatherTools
from tests.application import create_sandbox
from tests.service.observability.reading import figures_of, grown
from tests.serving import service, serving
from toolchat.service.settings.service_settings import Tuning
from toolchat.tool_calling.results import ToolAnswer

DOCUMENTED = {
    "getCityTimeFunction": ("Get the time of a specified city.", ["timeZoneId"]),
    "getCityTimeMethod": ("Get the time of a specified city.", ["timeZoneId"]),
    "getWeatherFunction": ("Use api.weather to get weather information.", ["city", "days"]),
    "getWeatherServiceMethod": ("Use api.weather to get weather information.", ["city", "days"]),
    "baiduTranslateFunction": ("Baidu translation function for general text translation", ["q", "from", "to"]),
    "baiduTranslateMethod": ("Baidu translation function for general text translation", ["q", "from", "to"]),
}


async def test_the_tools_of_the_documents_have_their_names_and_parameters() -> None:
    keys = {"WEATHER_API_KEY": "w", "BAIDU_TRANSLATE_APP_ID": "a", "BAIDU_TRANSLATE_SECRET_KEY": "s"}
    async with service(CHAT_PROVIDER="offline", **keys) as client:
        folders = (await client.get("/tools")).json()
    listed = {tool["name"]: tool for folder in folders for tool in folder["tools"] if tool["name"] in DOCUMENTED}
    schemas = {name: tool["input_schema"] for name, tool in listed.items()}
    assert {name: (listed[name]["description"], schemas[name]["required"]) for name in listed} == DOCUMENTED
    assert all(each["additionalProperties"] is False for each in schemas.values())


TOOLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "time": (GetCurrentTimeByTimeZoneIdService.__call__, TimeTools.get_city_time),
    "weather": (WeatherService.__call__, WeatherTools.get_weather),
    "translate": (BaiduTranslateService.__call__, BaiduTranslateTools.baidu_translate),
}


def result_of(function: Callable[..., Any]) -> TypeAdapter[Any]:
    returned = get_type_hints(function, include_extras=True)["return"]
    return TypeAdapter(get_args(returned)[0] if get_origin(returned) is ToolAnswer else returned)


# What a result has beyond its type would be dropped by the way there and back.
@pytest.mark.parametrize("tool", TOOLS)
async def test_a_result_has_no_field_without_a_name(tool: str) -> None:
    async with serving(create_sandbox()) as url, service(CHAT_PROVIDER="offline", SANDBOX_URL=url) as client:
        answer = await client.get(f"/{tool}/chat-tool-function", headers={"Accept": "application/json"})
    (call,) = answer.json()["tool_calls"]
    result = call.get("data") or from_json(call["result"])
    adapter = result_of(TOOLS[tool][0])
    assert adapter.dump_python(adapter.validate_python(result)) == result


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
        variables = {**variables, address: url, "BREAKER_FAILURES": "2"}
        async with service(Tuning(breaker_pause=600), **variables) as client:
            before = await figures_of(client)
            answers = [await client.post(f"/tools/{tool}", json=arguments) for _ in range(6)]
            after = await figures_of(client)
    assert [each.json()["outcome"] for each in answers] == ["error"] * 6
    assert asked == 2
    [(labels, opened)] = grown(before, after, "toolchat_breaker_openings_total").items()
    assert (name in dict(labels)["upstream"], opened) == (True, 1)
    assert grown(before, after, "toolchat_breaker_refusals_total")[labels] >= 4
