"""The tools that the questions are asked with: the built-in ones, those of the documentation, invented ones."""

from pathlib import Path
from typing import Any

import yaml

from app.tools import baidu_translate, time, weather
from app.tools.baidu_translate.tools import BaiduTranslateTools
from app.tools.examples.tools import CurrentWeather, OrderQuery
from app.tools.time.tools import GetCurrentTimeByTimeZoneIdService
from app.tools.todo.tools import TodoRead, TodoUpdate
from app.tools.weather.tools import WeatherService
from app.user_clock import DateTimeTools
from tests.service.offline.asking import Declared, schema
from toolchat.chat.tool_module import ToolModule
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata
from toolchat.tool_calling.function_callback import FunctionToolCallback, to_callbacks

__all__ = ["CLOCK", "SETS", "TRANSLATE", "WEATHER"]


def _declared(entry: dict[str, Any]) -> ToolCallback:
    parameters = schema(*entry.get("required", ()), **entry["properties"])
    metadata = ToolMetadata(read_only=entry.get("reads", False), requires_approval=entry.get("waits", False))
    return Declared(ToolDefinition(entry["name"], entry["description"], parameters), metadata)


_ENTRIES = yaml.safe_load(Path(__file__).with_name("tools.yaml").read_text("utf-8"))
_OF_SETS = {
    name: tuple(_declared(each) for each in _ENTRIES if each.get("set") == name)
    for name in (None, "shop", "crm", "desk", "own")
}
_CLIENT: Any = None
_callback = FunctionToolCallback.from_function


def _shown(tool: Any, module: ToolModule) -> ToolCallback:
    """A tool with the examples of its module, as the service offers it."""
    callback: FunctionToolCallback = _callback(tool)
    return callback.with_examples((module.default_query, *module.examples.values()))


TRANSLATE = _shown(BaiduTranslateTools(_CLIENT).baidu_translate, baidu_translate.module)
CLOCK = _shown(GetCurrentTimeByTimeZoneIdService(), time.module)
WEATHER = _shown(WeatherService(_CLIENT), weather.module)
_BUILT_IN = (TRANSLATE, CLOCK, WEATHER)
SETS: dict[str, tuple[ToolCallback, ...]] = {
    "all": (*_BUILT_IN, *_OF_SETS[None]),
    "built_in": _BUILT_IN,
    "shop": (*_OF_SETS["shop"], *_BUILT_IN),
    "crm": _OF_SETS["crm"],
    "desk": _OF_SETS["desk"],
    "time": (CLOCK,),
    "todo": (*_BUILT_IN, _callback(TodoUpdate(_CLIENT)), _callback(TodoRead(_CLIENT))),
    "clock": tuple(to_callbacks([DateTimeTools()])),
    "trade": tuple(to_callbacks([OrderQuery()])),
    "currentWeather": (_callback(CurrentWeather()),),
    **{each.definition.name: (each, *_BUILT_IN) for each in _OF_SETS["own"]},
}
