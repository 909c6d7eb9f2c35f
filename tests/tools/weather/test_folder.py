"""The weather tool's folder: its settings, its questions, and what the container makes of it."""

import pytest
from starlette.applications import Starlette

from app.composition.container import instances, make_container
from app.composition.wiring import module_providers
from app.sandbox.weatherapi import routes
from app.tools.discovery import ConfiguredModule
from app.tools.weather import module
from app.tools.weather.client import WeatherSettings
from app.tools.weather.tools import WeatherTools
from tests.serving import serving
from tests.tools.weather.weatherapi_player import KEY, called, settings
from toolchat.http.client import OutboundHttp
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.function_callback import MethodToolCallbackProvider


def test_the_module_has_the_title_and_question_of_the_documents() -> None:
    folder = module.in_folder("weather")
    assert (folder.path, folder.title) == ("/weather", "Weather")
    assert folder.default_query == "请告诉我北京1天以后的天气"
    assert folder.function_names() == ("getWeatherFunction",)


def fault(chosen: WeatherSettings) -> str | None:
    return ConfiguredModule(module.in_folder("weather"), chosen).fault


def test_the_settings_are_read_under_their_own_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"API_KEY": f" {KEY} ", "BASE_URL": "http://here/v1/", "TIMEOUT": "3"}.items():
        monkeypatch.setenv(f"WEATHER_{name}", value)
    read = settings()
    assert read.api_key is not None
    assert (read.api_key.get_secret_value(), read.base_url, read.timeout) == (KEY, "http://here/v1", 3)
    assert KEY not in repr(read)


async def test_the_container_makes_both_forms_from_the_settings() -> None:
    folder = module.in_folder("weather")
    async with serving(Starlette(routes=routes)) as url:
        http = OutboundHttp()
        configured = ConfiguredModule(folder, settings(SANDBOX_URL=url))
        container = make_container([instances(http), *module_providers(configured)])
        callback = await container.get(ToolCallback, component="getWeatherFunction")
        tools = await container.get(WeatherTools)
        (method,) = MethodToolCallbackProvider(tools).tool_callbacks()
        assert callback.metadata.sandbox
        assert await called(callback, city="Paris", days=1) == await called(method, city="Paris", days=1)
        await container.close()
        await http.aclose()
