"""The whole service with a folder of forty tools: the model searches for the one that it needs."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.application import create_app, read_configuration
from tests.chat.played import EVENTS, JSON, asks, says, turns
from tests.players.openai_player import OpenAIPlayer, PlayedRequest
from tests.serving import client_of, events_of, serving
from toolchat.chat.advisors.tool_search import SEARCH_TOOL
from toolchat.service.tool_modules.discovery import ConfiguredModule, discover

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


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The name of a package in the working directory with the folder ``house``."""
    name = f"many_{abs(hash(request.node.nodeid))}"
    folder = tmp_path / name / "house"
    folder.mkdir(parents=True)
    (tmp_path / name / "__init__.py").touch()
    lamps = "".join(LAMP.format(number=number) for number in range(39))
    names = ", ".join(f"switchLamp{number}" for number in range(39))
    (folder / "__init__.py").write_text(HEAD + lamps + MODULE.format(names=names), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


@asynccontextmanager
async def serving_house(package: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    modules = tuple(ConfiguredModule.read(each) for each in discover([package]))
    app = create_app(replace(read_configuration(), modules=modules))
    async with serving(app) as url, client_of(url) as client:
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


async def test_a_stream_reports_the_search_like_any_other_call(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with OpenAIPlayer(finding_out()) as player:
        monkeypatch.setenv("OPENAI_BASE_URL", player.base_url)
        async with serving_house(package) as client:
            events = events_of((await client.get(PATH, headers=EVENTS)).text)
    started = [each.data["name"] for each in events if each.name == "tool_call_started"]
    assert started == [SEARCH_TOOL, "getTides"]
    assert events[-1].name == "done"


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
