"""The whole service with a folder of forty tools: the model searches for the one that it needs."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.chat.played import JSON, asks, says, turns
from tests.players.openai_player import OpenAIPlayer, PlayedRequest
from tests.service.tool_modules.test_folder_parts import serving_folders
from toolchat.chat.advisors.tool_search import SEARCH_TOOL

HEAD = '''
from typing import Annotated

from toolchat.tool_calling.function_callback import tool
from toolchat import ToolModule


@tool(read_only=True)
async def getTides(city: Annotated[str, "Name of the city"]) -> str:
    """Tell when it is high tide in a city (涨潮时间)."""
    return f"high tide in {city} at noon"
'''
LAMP = '''

async def switchLamp{number}(on: Annotated[bool, "Whether it is to be on"]) -> str:
    """Switch lamp {number}."""
    return "done"
'''
MODULE = """

module = ToolModule(functions=(getTides, {names}), default_query="When is high tide (涨潮时间) in Paris?")
"""
PATH = "/house/chat-tool-function"


def write(package: str) -> None:
    lamps = "".join(LAMP.format(number=number) for number in range(39))
    names = ", ".join(f"switchLamp{number}" for number in range(39))
    Path(package, "house.py").write_text(HEAD + lamps + MODULE.format(names=names), encoding="utf-8")


@asynccontextmanager
async def serving_house(package: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    write(package)
    async with serving_folders(package) as client:
        yield client


def offered(request: PlayedRequest) -> list[str]:
    return [each["function"]["name"] for each in request.body.get("tools", ())]


def finding_out() -> Callable[[PlayedRequest], Any]:
    return turns(
        asks((SEARCH_TOOL, {"query": "涨潮"})), asks(("getTides", {"city": "Hull"})), says("High tide is at noon.")
    )


async def test_a_question_with_forty_tools_is_answered_through_a_search_that_the_trace_shows(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with OpenAIPlayer(finding_out()) as player:
        monkeypatch.setenv("OPENAI_BASE_URL", player.base_url)
        async with serving_house(package) as client:
            document = (await client.get(PATH, headers=JSON)).json()
    assert [offered(each) for each in player.requests] == [[SEARCH_TOOL], *[[SEARCH_TOOL, "getTides"]] * 2]
    assert document["answer"] == "High tide is at noon."
    assert [(each["name"], each["arguments"], each["outcome"], each["round"]) for each in document["tool_calls"]] == [
        (SEARCH_TOOL, {"query": "涨潮"}, "ok", 1),
        ("getTides", {"city": "Hull"}, "ok", 2),
    ]
    assert document["tool_calls"][1]["result"] == "high tide in Hull at noon"


@pytest.mark.parametrize(("above", "told"), [("40", 40), ("0", 40), ("39", 1)])
async def test_the_setting_limits_the_tools_offered_without_a_search(
    above: str, told: int, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOL_SEARCH_ABOVE", above)
    async with OpenAIPlayer(turns(says("Hello."))) as player:
        monkeypatch.setenv("OPENAI_BASE_URL", player.base_url)
        async with serving_house(package) as client:
            assert (await client.get(PATH)).text == "Hello."
    assert [len(offered(each)) for each in player.requests] == [told]


async def test_the_offline_model_is_offered_all_tools(package: str) -> None:
    async with serving_house(package) as client:
        document = (await client.get(PATH, headers=JSON)).json()
    assert [each["name"] for each in document["tool_calls"]] == ["getTides"]
