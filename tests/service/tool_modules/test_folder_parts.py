"""What a tool folder has beside its tools: settings, routes, advisors."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tests.application import create_app, read_configuration
from tests.command_line import run, with_tools
from tests.documented import problems_of
from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.serving import client_of, serving
from toolchat import ToolModule, ToolSettings
from toolchat.service.tool_modules.discovery import ConfiguredModule, discover

STOCKS = '''
from typing import Annotated, ClassVar

from dishka.integrations.fastapi import DishkaRoute, FromDishka, inject
from fastapi import APIRouter, HTTPException, WebSocket
from pydantic import Field

from toolchat import Secret
from toolchat.tool_calling.function_callback import tool
from toolchat import ToolModule, ToolSettings


class StockSettings(ToolSettings):
    """Where prices come from."""

    required: ClassVar[tuple[str, ...]] = ("api_key",)
    api_key: Secret | None = Field(None, description="Key")
    market: str = Field("XSHG", description="Market")


@tool(description="Tell the price of a stock")
class StockPrice:
    def __init__(self, settings: StockSettings) -> None:
        self.settings = settings

    def __call__(self, name: Annotated[str, "Name"]) -> str:
        return f"{name}: 1 at {self.settings.market}"


router = APIRouter(prefix="/stocks", route_class=DishkaRoute)


@router.get("/market")
async def market(settings: FromDishka[StockSettings]) -> str:
    return settings.market


@router.websocket("/ticker")
@inject
async def ticker(socket: WebSocket, settings: FromDishka[StockSettings]) -> None:
    await socket.accept()
    await socket.send_text(settings.market)
    await socket.close()


@router.get("/refused/{status}")
async def refused(status: int, detail: str | None = None) -> str:
    raise HTTPException(status, detail)


module = ToolModule(functions=(StockPrice,), settings=StockSettings, router=router, default_query="What is ACME worth?")
'''
ADVISOR = "from toolchat.chat.advisors.base import Advisor, BaseAdvisor\nfrom toolchat import ToolModule\n"


@pytest.fixture
def stocks(package: str) -> str:
    """The package with the folder ``stocks``."""
    Path(package, "stocks").mkdir()
    Path(package, "stocks", "__init__.py").write_text(STOCKS, encoding="utf-8")
    return package


@pytest.fixture
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOCKS_API_KEY", "k")


def with_folders(package: str) -> FastAPI:
    """The application with the folders of a package instead of its own."""
    modules = tuple(ConfiguredModule.read(each) for each in discover([package]))
    return create_app(replace(read_configuration(), modules=modules))


@asynccontextmanager
async def serving_folders(package: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    """The same, served; gives a client for it."""
    async with serving(with_folders(package)) as url, client_of(url) as client:
        yield client


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({}, "not configured: set STOCKS_API_KEY"),
        ({"API_KEY": "k"}, "not configured: set STOCKS_API_KEY"),
        ({"STOCKS_API_KEY": "k", "STOCKS_ENABLED": "false"}, "switched off: set STOCKS_ENABLED=true"),
    ],
)
async def test_the_routes_of_an_unregistered_module_answer_503(
    variables: Mapping[str, str], reason: str, stocks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its settings need no ``model_config``: the variables begin with the folder's name.
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    async with serving_folders(stocks) as client:
        answers = [await client.get(path) for path in ("/stocks/market", "/stocks/chat-tool-function")]
        document = (await client.get("/openapi.json")).json()
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (503, "not-configured")
        assert answer.json()["detail"] == f"Stocks: {reason}"
    if "STOCKS_ENABLED" in variables:
        assert "/stocks/market" not in document["paths"]  # nobody expects what was switched off
    else:
        assert problems_of(document["paths"]["/stocks/market"]["get"])[503] == ["not-configured"]


async def test_a_tool_and_a_route_get_the_settings_by_the_class_that_the_folder_wrote(
    stocks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Read from the folder's own variables, and not from those of the same name without the prefix.
    for name, value in {"STOCKS_API_KEY": "k", "STOCKS_MARKET": "XNAS", "MARKET": "wrong"}.items():
        monkeypatch.setenv(name, value)
    async with OpenAIPlayer(sensible_model({"name": "ACME"})) as player, AsyncExitStack() as stack:
        monkeypatch.setenv("OPENAI_BASE_URL", player.base_url)
        client = await stack.enter_async_context(serving_folders(stocks))
        assert (await client.get("/stocks/market")).json() == "XNAS"
        (listed,) = (await client.get("/tools")).json()
        assert listed["registered"] is True
        answer = await client.get("/stocks/chat-tool-function", headers={"Accept": "application/json"})
    (call,) = answer.json()["tool_calls"]
    assert call["result"] == "ACME: 1 at XNAS"


@pytest.mark.parametrize(
    ("parameter", "told"),
    [
        (
            "feed: Feed",
            "stocks.Watcher: nothing provides stocks.Feed",
        ),
        (
            "feed",
            "Failed to analyze `stocks.Watcher.__init__`. Some parameters do not have type hints: feed",
        ),
        ("again: 'Watcher'", "stocks.Watcher needs stocks.Watcher"),
    ],
    ids=["not provided", "without a type", "a circle"],
)
def test_an_advisor_with_an_unknown_dependency_stops_the_start_with_one_line(
    parameter: str, told: str, tmp_path: Path
) -> None:
    # It names the class with its folder, whichever command is given.
    stocks = (
        f"{ADVISOR}\nclass Feed: ...\n\nclass Watcher(BaseAdvisor):\n    def __init__(self, {parameter}): ...\n\n"
        "module = ToolModule(advisors=(Watcher,))\n"
    )
    variables = with_tools(tmp_path, {"stocks": stocks})
    for command in ("tools", "serve"):
        done = run(command, cwd=tmp_path, SERVER_PORT="0", **variables)
        assert (done.returncode, done.stderr) == (2, f"toolchat: tools/stocks/__init__.py: {told}\n")


def test_a_tool_without_a_stand_in_needs_its_key_beside_the_sandbox_too() -> None:
    # Only modules with ``has_sandbox`` are marked; the others still call their real upstreams.

    class Own(ToolSettings):
        required = ("api_key",)
        api_key: str | None = None

    class Played(Own):
        has_sandbox = True

    module = ToolModule(name="own", settings=Own)
    beside = {"SANDBOX_URL": "http://127.0.0.1:9"}
    own, played = Own.model_validate(beside), Played.model_validate(beside)
    assert (own.in_sandbox, ConfiguredModule(module, own).fault) == (False, "not configured: set OWN_API_KEY")
    assert (played.in_sandbox, ConfiguredModule(module, played).fault) == (True, None)


@pytest.mark.usefixtures("_registered")
def test_a_websocket_route_receives_objects_from_the_container(stocks: str) -> None:
    with TestClient(with_folders(stocks)) as client, client.websocket_connect("/stocks/ticker") as socket:
        assert socket.receive_text() == "XSHG"


def test_a_websocket_route_of_a_folder_that_is_not_registered_is_refused(stocks: str) -> None:
    with (
        TestClient(with_folders(stocks)) as client,
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("/stocks/ticker"),
    ):
        pass


@pytest.mark.usefixtures("_registered")
@pytest.mark.parametrize(
    ("path", "status", "code", "detail"),
    [
        ("/stocks/refused/404?detail=no such city: Pariss", 404, "not-found", "no such city: Pariss"),
        ("/stocks/refused/404", 404, "not-found", "GET /stocks/refused/404: not found; GET / lists all routes"),
        ("/stocks/refused/499?detail=gone", 499, "status-499", "gone"),
        ("/stocks/refused/402?detail=pay first", 402, "payment-required", "pay first"),
    ],
)
async def test_an_http_exception_keeps_its_status_and_its_detail(
    path: str, status: int, code: str, detail: str, stocks: str
) -> None:
    async with serving_folders(stocks) as client:
        answer = await client.get(path)
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (status, code, detail)
