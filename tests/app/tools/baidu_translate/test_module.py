"""The translation tool's folder: its settings, its two forms, and how long translations are kept."""

import asyncio

import pytest
from pydantic_core import from_json

from app.tools.baidu_translate import module
from tests.app.tools.baidu_translate.baidu_player import APP_ID, SECRET_KEY, played, tools
from tests.serving import events_of, service
from toolchat.service.tool_modules.discovery import ConfiguredModule
from toolchat.tool_calling.context import ToolContext

FOLDER = module.in_folder("baidu_translate")


def test_both_secrets_are_required_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = "not configured: set BAIDU_TRANSLATE_APP_ID and BAIDU_TRANSLATE_SECRET_KEY"
    assert str(ConfiguredModule.read(FOLDER).fault).startswith(f"{wanted} or TRANSLATE_PROVIDER=libretranslate")
    monkeypatch.setenv("SANDBOX_URL", "http://127.0.0.1:1")
    assert ConfiguredModule.read(FOLDER).fault is None


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
