"""What pages of others, answers that are HTML and users who close a tab do in a real browser."""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from tests.browser import FLAGS
from tests.faults.fault import fault, held
from tests.faults.service import Service
from tests.faults.stage import Stage, installed
from tests.faults.upstream import playing, saying, speaking
from tests.faults.waiting import until
from tests.players.openai_player import delta, finish, sse
from tests.programs import CHROMIUM

if TYPE_CHECKING:
    from playwright.async_api import Page

_PAGE = "<!doctype html><title>A page</title><p>Of somebody else."
_HOSTILE = """<img src=x onerror=alert(1)><script>alert(2)</script>
[x](javascript:alert(3)) ![x](https://elsewhere.example/pixel.png) <iframe srcdoc='<script>alert(4)</script>'></iframe>
<form action='https://elsewhere.example'><button>x</button></form>
```html"><script>alert(5)</script>
"""
_FETCH = """async ([urls, init]) => {
    const told = [];
    for (const url of urls) {
        try {
            const response = await fetch(url, init);
            told.push(response.type === "opaque" ? "opaque" : await response.text());
        } catch (error) { told.push("refused"); }
    }
    return told;
}"""
_LOAD = """async (urls) => {
    for (const url of urls) for (const kind of ["img", "script", "iframe"]) await new Promise((done) => {
        document.body.append(Object.assign(document.createElement(kind), { onload: done, onerror: done, src: url }));
    });
}"""
_INLINE = """() => {
    window.ran = 0;
    document.body.append(Object.assign(document.createElement("script"), { textContent: "window.ran += 1" }));
    const image = document.createElement("div");
    image.innerHTML = "<img src=x onerror='window.ran += 1'>";
    document.body.append(image);
    return new Promise((done) => setTimeout(() => done(window.ran), 300));
}"""
_LISTEN = """(url) => new Promise((done) => {
    const source = new EventSource(url);
    source.onerror = () => { if (source.readyState === EventSource.CLOSED) done(); };
})"""


async def _opened(stage: Stage) -> "Page":
    """An empty page in a browser of the row; names that end in ``.example`` lead to this machine."""
    from playwright.async_api import async_playwright

    playwright = await stage.row.enter_async_context(async_playwright())
    browser = await playwright.chromium.launch(executable_path=installed(*CHROMIUM), args=FLAGS)
    stage.row.push_async_callback(browser.close)
    return await browser.new_page()


async def _foreign(stage: Stage) -> "Page":
    """A page of another site."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(_PAGE)}\r\nConnection: close\r\n\r\n"
        )
        writer.write((head + _PAGE).encode())
        await writer.drain()
        writer.close()

    site = stage.kept["site"] = AsyncExitStack()
    server = await site.enter_async_context(await asyncio.start_server(serve, "127.0.0.1", 0))
    stage.row.push_async_callback(site.aclose)
    page = await _opened(stage)
    await page.goto(f"http://evil.example:{server.sockets[0].getsockname()[1]}/")
    return page


async def _asked_on_the_page(page: "Page", service: Service, text: str) -> None:
    await page.goto(f"{service.url}/playground/?view=conversation")
    await page.locator("#message").fill(text)
    await page.locator("#send").click()  # which waits for the button: until the page is ready, Enter is a new line


async def _fetched(page: "Page", urls: list[str], **init: Any) -> list[str]:
    return list(await page.evaluate(_FETCH, [urls, init]))


def _asking(service: Service) -> list[str]:
    return [f"{service.url}{path}" for path in ("/chat?userInput=hi", "/time/chat?query=hi", "/todo/chat?query=hi")]


@fault(users="the answer as text", figure="scripts that ran, and requests to other hosts", at_most=0)
async def html_in_an_answer(stage: Stage) -> float:
    """The model answers with scripts, images of elsewhere, frames and links that run; the service's page shows it."""
    service = await stage.service()
    stage.upstream.behave = playing(sse(delta(content=_HOSTILE), finish("stop")))
    page, seen = await _opened(stage), list[str]()
    page.on("dialog", lambda dialog: seen.append(dialog.message))
    page.on("request", lambda request: seen.append(request.url) if not request.url.startswith(service.url) else None)
    await _asked_on_the_page(page, service, "Show me")
    await page.locator(".turn.assistant .figures").wait_for(state="attached")
    held("alert(5)" in await page.locator(".turn.assistant .text").inner_text(), "the answer is not shown")
    return len(seen)


@fault(users="the page works", figure="scripts that ran", at_most=0)
async def a_script_in_the_page(stage: Stage) -> float:
    """Scripts are put into the page and into Swagger UI, as if markup had slipped through (CSP)."""
    service = await stage.service()
    page, ran = await _opened(stage), 0
    for path in ("/playground/", "/docs"):
        await page.goto(f"{service.url}{path}")
        ran += await page.evaluate(_INLINE)
    return ran


@fault(users="the page is refused", figure="questions that reached the model", at_most=0)
async def a_foreign_page_fetches(stage: Stage) -> float:
    """A page of another site fetches questions by GET and POST, with CORS and without."""
    service = await stage.service()
    page = await _foreign(stage)
    told = await _fetched(page, _asking(service))
    told += await _fetched(page, _asking(service), mode="no-cors")
    body = {"method": "POST", "body": '{"userInput": "hi"}'}
    told += await _fetched(
        page, [f"{service.url}/chat"], mode="no-cors", headers={"Content-Type": "text/plain"}, **body
    )
    told += await _fetched(page, [f"{service.url}/chat"], headers={"Content-Type": "application/json"}, **body)
    held(set(told) <= {"refused", "opaque"}, f"it could read {told}")
    return len(stage.upstream.calls)


@fault(users="nothing is shown", figure="questions that reached the model", at_most=0)
async def a_foreign_page_embeds(stage: Stage) -> float:
    """A page of another site has images, scripts and frames whose addresses ask questions."""
    service = await stage.service()
    page = await _foreign(stage)
    await page.evaluate(_LOAD, _asking(service))
    return len(stage.upstream.calls)


@fault(users="421", figure="questions that reached the model, and answers that could be read", at_most=0)
async def a_name_that_was_rebound(stage: Stage) -> float:
    """A page's own name now leads to the service (DNS rebinding), so that the browser takes it for the same site."""
    page = await _foreign(stage)
    evil = page.url.rstrip("/")
    await stage.kept.pop("site").aclose()  # and now the name and the port are the service's
    await stage.own(SERVER_PORT=evil.rsplit(":", 1)[1])
    paths = ("/chat?userInput=hi", "/time/chat?query=hi", "/tools", "/metrics", "/openapi.json")
    told = await _fetched(page, [f"{evil}{path}" for path in paths])
    return len(stage.upstream.calls) + sum('"misdirected"' not in each for each in told)


@fault(users="the frame stays empty", figure="frames that show the service's page", at_most=0)
async def a_foreign_page_frames_ours(stage: Stage) -> float:
    """A page of another site shows the playground in a frame, for users to click into."""
    service = await stage.service()
    page = await _foreign(stage)
    await page.evaluate(_LOAD.replace('["img", "script", "iframe"]', '["iframe"]'), [f"{service.url}/playground/"])
    return sum([await frame.locator("#ask").count() for frame in page.frames[1:]])


@fault(users="no task is left behind", figure="s until the request to the provider was cancelled", at_most=3)
async def a_closed_tab(stage: Stage) -> float:
    """A user closes the tab in the middle of an answer."""
    service = await stage.service()
    stage.upstream.behave = speaking(lambda _: "word " * 2000, pieces=2000, pause=0.02)
    page = await _opened(stage)
    await _asked_on_the_page(page, service, "Tell me")
    await page.locator(".turn.assistant .text", has_text="word").wait_for()
    await page.close()
    began = time.monotonic()
    await until(lambda: stage.upstream.aborts == 1)
    return time.monotonic() - began


@fault(users="one answer", figure="times that the model was asked", at_least=1, at_most=1)
async def an_event_source_that_reconnects(stage: Stage) -> float:
    """An `EventSource` asks; when its stream is over it asks again by itself, as browsers do."""
    service = await stage.service()
    stage.upstream.behave = saying("Once.")
    page = await _opened(stage)
    await page.goto(f"{service.url}/playground/")
    await page.evaluate(_LISTEN, f"{service.url}/chat/stream?userInput=hi")
    return len(stage.upstream.calls)
