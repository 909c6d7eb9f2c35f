"""The official JavaScript client on a page of another origin that the service allows."""

from collections.abc import AsyncGenerator, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from playwright.async_api import Page

from tests.browser import OpenPage
from tests.clients.conftest import PATIENCE, ROOT, TIME, Model, bundled, calls, says, started
from tests.players.openai_player import chunk, delta, finish, sse, whole

MAIN = """import OpenAI from "openai";

window.client = (baseURL) => new OpenAI({ baseURL, apiKey: "unused", dangerouslyAllowBrowser: true });
"""
PAGE = b'<!doctype html><meta charset="utf-8"><title>Page</title><body><script src="/main.js"></script>'
ASKED = '{ model: "toolchat", messages: [{ role: "user", content: "What time is it?" }] }'


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page on a server of its own: to one that is made up a browser grants no way to this machine."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "main.jsx").write_text(MAIN, encoding="utf-8")
    (folder / "main.js").write_text(bundled(folder), encoding="utf-8")
    (folder / "index.html").write_bytes(PAGE)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://page.example:{server.server_port}"
        server.shutdown()
        thread.join(PATIENCE)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def url(_played: tuple[Model, str], origin: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a service that allows the page's origin."""
    with started(ROOT, tmp_path_factory.mktemp("service"), _played[1], CORS_ORIGINS=origin) as url:
        yield f"{url}/v1"


@pytest.fixture
async def page(origin: str, open_page: OpenPage) -> AsyncGenerator[Page, None]:
    async with open_page() as page:
        await page.goto(f"{origin}/")
        yield page


async def done(page: Page, url: str, code: str) -> Any:
    """What JavaScript gives that has the client as ``client``."""
    return await page.evaluate(f"async (url) => {{ const client = window.client(url); {code} }}", url)


async def test_a_page_of_an_allowed_origin_lists_the_models_and_gets_a_whole_answer(
    page: Page, url: str, model: Model
) -> None:
    model.plays(calls(TIME), says("It is noon."))
    code = f"""
      const names = (await client.models.list()).data.map((each) => each.id);
      const {{ data, request_id }} = await client.chat.completions.create({ASKED}).withResponse();
      return [names[0], data.choices[0].message.content, !!request_id];
    """
    assert await done(page, url, code) == ["toolchat", "It is noon.", True]


async def test_the_stream_helper_hears_the_text_and_the_tokens(page: Page, url: str, model: Model) -> None:
    tokens = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    model.plays(calls(TIME), sse(delta(content="It is "), delta(content="noon."), finish("stop"), chunk(usage=tokens)))
    code = f"""
      const heard = [];
      const stream = client.chat.completions.stream({{ ...{ASKED}, stream_options: {{ include_usage: true }} }});
      stream.on("content", (text) => heard.push(text));
      const final = await stream.finalChatCompletion();
      return [heard, final.choices[0].finish_reason, final.usage.total_tokens > 0];
    """
    assert await done(page, url, code) == [["It is ", "noon."], "stop", True]


async def test_an_error_is_the_clients_own_and_can_be_read_by_the_page(page: Page, url: str, model: Model) -> None:
    model.plays(whole({"error": {"message": "no"}}, 401), says("never asked"))
    code = f"""
      try {{ await client.chat.completions.create({ASKED}) }} catch (error) {{
        return [error.constructor.name !== "Error", error.status, error.code, !!error.requestID];
      }}
    """
    assert await done(page, url, code) == [True, 503, "provider_auth", True]
    assert len(model.requests) == 1
