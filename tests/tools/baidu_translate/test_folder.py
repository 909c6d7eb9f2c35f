"""The translation tool's folder: its settings, its two forms, and how long translations are kept."""

import asyncio

import pytest
from pydantic_core import from_json

from app.tools.baidu_translate import module
from app.tools.baidu_translate.client import BaiduTranslateClient
from tests.serving import events_of, service
from tests.tools.baidu_translate.baidu_player import APP_ID, SECRET_KEY, played, settings, tools
from toolchat.errors import ConfigurationError
from toolchat.http.client import OutboundHttp
from toolchat.service.tool_modules.discovery import ConfiguredModule
from toolchat.tool_calling.context import ToolContext

FOLDER = module.in_folder("baidu_translate")


def test_both_secrets_are_required_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = "not configured: set BAIDU_TRANSLATE_APP_ID and BAIDU_TRANSLATE_SECRET_KEY"
    assert str(ConfiguredModule.read(FOLDER).fault).startswith(f"{wanted} or TRANSLATE_PROVIDER=libretranslate")
    monkeypatch.setenv("SANDBOX_URL", "http://127.0.0.1:1")
    assert ConfiguredModule.read(FOLDER).fault is None


@pytest.mark.parametrize(("name", "value"), [("REQUESTS_PER_SECOND", "0"), ("BASE_URL", "ftp://x")])
def test_a_setting_that_cannot_work_stops_the_start(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"BAIDU_TRANSLATE_{name}", value)
    with pytest.raises(ConfigurationError, match=f"BAIDU_TRANSLATE_{name}: "):
        ConfiguredModule.read(FOLDER)


def test_the_tools_are_named_and_described_as_documented() -> None:
    definitions = [each.definition for each in tools(BaiduTranslateClient(OutboundHttp(), settings()))]
    assert [each.name for each in definitions] == ["baiduTranslateFunction", "baiduTranslateMethod"]
    assert {each.description for each in definitions} == {"Baidu translation function for general text translation"}
    for schema in (each.input_schema for each in definitions):
        assert schema["required"] == ["q", "from", "to"]
        assert {name: each["description"] for name, each in schema["properties"].items()} == {
            "q": "Content that needs to be translated",
            "from": "Source language that needs to be translated",
            "to": "Target language to translate into",
        }
        assert schema["properties"]["from"]["default"] == "auto"
        assert schema["additionalProperties"] is False
    assert (module.path, module.default_query) == ("/translate", "帮我把以下内容翻译成英文：你好，世界。")


async def test_both_tools_answer_with_the_detected_language_and_the_text() -> None:
    async with played() as (client, _):
        results = [await tool.call('{"q":"你好","from":"auto","to":"英文"}', ToolContext()) for tool in tools(client)]
    assert [from_json(result) for result in results] == [{"from": "zh", "to": "en", "text": "<你好>"}] * 2


async def test_equal_questions_at_once_take_one_turn_at_baidu() -> None:
    # With one request per second, the later ones would else wait or be refused; the events say so too.
    async with played() as (_, player):
        environment = {"APP_ID": APP_ID, "SECRET_KEY": SECRET_KEY, "BASE_URL": player.url}
        async with service(**{f"BAIDU_TRANSLATE_{name}": value for name, value in environment.items()}) as http:
            path, wanted = "/translate/chat-tool-function", {"Accept": "text/event-stream"}
            replies = await asyncio.gather(*(http.get(path, headers=wanted) for _ in range(20)))
    ends = [event.data for each in replies for event in events_of(each.text) if event.name == "tool_call_finished"]
    assert [each["outcome"] for each in ends] == ["ok"] * 20
    assert sum(each.get("cached", False) for each in ends) == 19
    assert len(player.arrivals) == 1
