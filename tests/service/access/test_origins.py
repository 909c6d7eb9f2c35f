"""What pages of other origins can do, in a real browser: names that end in ``.example`` lead to this machine there."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Page
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.application import create_app, read_configuration
from tests.browser import OpenPage
from tests.serving import client_of, service, serving
from toolchat.service.access.keys import digest_of

KEY = "toolchat_right"
ALICE = f"alice={digest_of(KEY)}"
BEARING = {"Authorization": f"Bearer {KEY}"}
QUESTION = {"userInput": "What time is it in Tokyo?", "sessionId": "foreign"}
NO_ANSWER = "TypeError: Failed to fetch"
FETCH = """async ([url, init]) => {
    try {
        const response = await fetch(url, init);
        const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
        let body = "";
        for (let piece; reader && !(piece = await reader.read()).done;) body += piece.value;
        return [response.type === "opaque" ? "opaque" : response.status, response.headers.get("x-request-id"), body];
    } catch (error) {
        return [String(error)];
    }
}"""
"""What a page learns of an answer, read piece by piece."""
LOADED = """([kind, url]) => new Promise((done) => {
    document.body.append(Object.assign(document.createElement(kind), { onload: done, onerror: done, src: url }));
})"""
"""How a page can have something asked for without reading it."""


async def homepage(_: Request) -> HTMLResponse:
    return HTMLResponse("<!doctype html><title>A page</title><p>Of somebody else.</p>")


SITE = Starlette(routes=[Route("/", homepage)])


@asynccontextmanager
async def site(open_page: OpenPage, name: str) -> AsyncGenerator[tuple[Page, str], None]:
    """Open the page of a site of this name; gives it and its origin."""
    async with serving(SITE) as url, open_page() as page:
        origin = f"http://{name}:{url.rpartition(':')[2]}"
        await page.goto(origin)
        yield page, origin


def named(name: str, url: object) -> str:
    """The address of a service by one of its names."""
    return f"http://{name}:{str(url).rstrip('/').rpartition(':')[2]}"


def watched(app: ASGIApp, statuses: list[int]) -> ASGIApp:
    """A service that notes what it answers about conversations; browsers do not tell that of everything they load."""

    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start" and scope["path"].startswith("/chat"):
                statuses.append(message["status"])
            await send(message)

        await app(scope, receive, noted)

    return noting


async def learned(page: Page, url: str, **init: Any) -> list[Any]:
    return list(await page.evaluate(FETCH, [url, init]))


def body_of(**init: Any) -> dict[str, Any]:
    """A question that is posted, as a page sends it."""
    return {"method": "POST", "body": '{"userInput": "Hello", "sessionId": "foreign"}', **init}


async def test_a_page_of_an_allowed_origin_can_ask_with_a_key_and_read_streams(
    open_page: OpenPage,
) -> None:
    async with (
        site(open_page, "friend.example") as (page, origin),
        service(API_KEYS=ALICE, CORS_ORIGINS=origin) as client,
    ):
        as_json = BEARING | {"Accept": "application/json", "Content-Type": "application/json"}
        stream = f"{client.base_url}/chat/stream?userInput=Hello"
        answers = [
            await learned(page, f"{client.base_url}/chat", **body_of(headers=as_json)),
            await learned(page, stream, headers=BEARING),
            await learned(page, stream, headers={"X-API-Key": KEY}),
        ]
        refused = await learned(page, stream)
    assert [(status, bool(request_id)) for status, request_id, _ in answers] == [(200, True)] * 3
    assert ['"answer":' in body or "event: done" in body for _, _, body in answers] == [True] * 3
    assert (refused[0], '"unauthorized"' in refused[2]) == (401, True)


@pytest.mark.parametrize("name", ["127.0.0.1", "toolchat.example"])
async def test_where_no_key_is_needed_a_page_of_another_site_still_causes_nothing(
    name: str, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By an address of this machine the browser tells the site by Fetch Metadata; by a name and over plain HTTP it
    # sends none, and the page is known by Origin or Referer.
    monkeypatch.setenv("ALLOWED_HOSTS", "toolchat.example")
    statuses: list[int] = []
    app = create_app(read_configuration())
    async with serving(watched(app, statuses)) as url, site(open_page, "evil.example") as (page, _):
        chat = f"{named(name, url)}/chat"
        question = f"{chat}?userInput=Hello&sessionId=foreign"
        posted = body_of(mode="no-cors", headers={"Content-Type": "text/plain"})
        assert await learned(page, question) == [NO_ANSWER]
        assert (await learned(page, question, mode="no-cors"))[0] == "opaque"
        assert (await learned(page, chat, **posted))[0] == "opaque"
        # What seems to be a key lets programs pass; a browser asks before it sends one, or sends none.
        assert await learned(page, question, headers=BEARING) == [NO_ANSWER]
        assert await learned(page, question, headers={"X-API-Key": KEY}) == [NO_ANSWER]
        assert (await learned(page, question, mode="no-cors", headers=BEARING))[0] == "opaque"
        for kind in ("img", "iframe", "script"):
            await page.evaluate(LOADED, [kind, question])
        await page.evaluate("url => { location = url }", question)
        await page.wait_for_url(question)
        async with client_of(url) as client:
            left = await client.get("/chat/foreign")
    assert statuses == [403, 403, 415, 405, 405, 403, 403, 403, 403, 403, 404]
    assert left.status_code == 404


async def test_dns_rebinding_is_rejected_by_the_host_check(open_page: OpenPage) -> None:
    app = create_app(read_configuration())

    async def rebound(scope: Scope, receive: Receive, send: Send) -> None:
        # The page itself came while its name still led to its own server.
        await (SITE if scope.get("path") == "/" else app)(scope, receive, send)

    async with serving(rebound) as url, open_page() as page:
        evil = named("evil.example", url)
        await page.goto(evil)
        asked = [
            await learned(page, f"{evil}/chat?userInput=Hello&sessionId=foreign"),
            await learned(page, f"{evil}/chat/stream?userInput=Hello"),
            await learned(page, f"{evil}/chat", **body_of(headers={"Content-Type": "application/json"})),
            await learned(page, f"{evil}/playground/"),
        ]
    assert {(status, '"misdirected"' in body) for status, _, body in asked} == {(421, True)}
