"""What the fields of the tools' results are called."""

import re
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest
from pydantic import TypeAdapter
from pydantic_core import from_json

from app.sandbox import create_sandbox
from app.tools.baidu_translate.tools import BaiduTranslateService, BaiduTranslateTools
from app.tools.time.tools import GetCurrentTimeByTimeZoneIdService, TimeTools
from app.tools.weather.tools import WeatherService, WeatherTools
from tests.serving import service, serving

TOOLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "time": (GetCurrentTimeByTimeZoneIdService.__call__, TimeTools.get_city_time),
    "weather": (WeatherService.__call__, WeatherTools.get_weather),
    "translate": (BaiduTranslateService.__call__, BaiduTranslateTools.baidu_translate),
}


def result_of(function: Callable[..., Any]) -> TypeAdapter[Any]:
    return TypeAdapter(get_type_hints(function, include_extras=True)["return"])


@pytest.mark.parametrize("tool", TOOLS)
def test_every_field_of_a_result_has_a_chinese_and_an_english_name(tool: str) -> None:
    function, method = map(result_of, TOOLS[tool])
    schema = function.json_schema()
    assert method.json_schema() == schema
    fields = [field for each in (schema, *schema.get("$defs", {}).values()) for field in each["properties"].items()]
    assert fields
    for name, field in fields:
        assert re.fullmatch(r"[\u4e00-\u9fffUTC ]+ / [A-Za-z ]+", field["title"]), name


# What a result has beyond its type would be dropped by the way there and back.
@pytest.mark.parametrize("tool", TOOLS)
async def test_a_result_has_no_field_without_a_name(tool: str) -> None:
    async with serving(create_sandbox()) as url, service(CHAT_PROVIDER="offline", SANDBOX_URL=url) as client:
        answer = await client.get(f"/{tool}/chat-tool-function", headers={"Accept": "application/json"})
    result = from_json(answer.json()["tool_calls"][0]["result"])
    adapter = result_of(TOOLS[tool][0])
    assert adapter.dump_python(adapter.validate_python(result)) == result
