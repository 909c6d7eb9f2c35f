"""The service mounted in somebody's own application, as ``docs/running.md`` shows it."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from tests.application import create_app
from tests.command_line import ROOT
from tests.serving import client_of, events_of, running

LINE = "FastAPI(lifespan=ai.lifespan)"


@pytest.fixture(autouse=True)
def _with_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLS_PATH", "app.tools")


@asynccontextmanager
async def served(outer: FastAPI) -> AsyncGenerator[httpx.AsyncClient, None]:
    """An application behind an ordinary uvicorn."""
    config = uvicorn.Config(outer, lifespan="on", log_config=None)
    async with running(uvicorn.Server(config)) as url, client_of(url) as client:
        yield client


def documented() -> FastAPI:
    """The outer application of the page, with a route of its own."""
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    (block,) = [each for each in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S) if ".mount(" in each]
    names: dict[str, FastAPI] = {}
    exec(block, names)
    outer = names["outer"]

    @outer.get("/hello")
    async def hello() -> str:
        return "hello"

    return outer


async def test_it_answers_and_streams_beside_the_routes_of_the_outer_application() -> None:
    async with served(documented()) as client:
        assert (await client.get("/hello")).json() == "hello"
        answer = await client.get("/ai/time/chat-tool-function")
        stream = await client.get("/ai/time/chat-tool-function", headers={"Accept": "text/event-stream"})
        asked = {"model": "toolchat", "messages": [{"role": "user", "content": "What time is it in Paris?"}]}
        completion = await client.post("/ai/v1/chat/completions", json=asked)
        assert (await client.get("/time/chat")).status_code == 404
    assert "北京" in answer.text
    assert [each.name for each in events_of(stream.text)][-1] == "done"
    assert "Paris" in completion.json()["choices"][0]["message"]["content"]


async def test_its_pages_and_its_document_are_below_the_path() -> None:
    async with served(documented()) as client:
        document = (await client.get("/ai/openapi.json")).json()
        for page in ("/ai/docs", "/ai/playground/"):
            shown = await client.get(page)
            linked = re.findall(r'(?:src|href)="(?!https?:|#|data:)([^"]+)"', shown.text)
            assert linked
            for each in linked:
                assert (await client.get(str(shown.url.join(each)))).status_code == 200, each
    assert document["servers"] == [{"url": "/ai"}]
    assert "/time/chat" in document["paths"]


async def test_a_lifespan_of_ones_own_can_enter_its() -> None:
    ai, seen = create_app(), []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None, None]:
        async with ai.lifespan():
            seen.append("open")
            yield
        seen.append("closed")

    outer = FastAPI(lifespan=lifespan)
    outer.mount("/ai", ai)
    async with served(outer) as client:
        assert (await client.get("/ai/health/ready")).status_code == 200
    assert seen == ["open", "closed"]


async def test_without_the_line_the_error_names_it() -> None:
    outer = FastAPI()
    outer.mount("/ai", create_app())
    async with served(outer) as client:
        answer = await client.get("/ai/time/chat")
    assert answer.status_code == 500
    assert LINE in answer.json()["detail"]
    assert "TestClient" not in answer.json()["detail"]
