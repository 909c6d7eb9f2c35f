"""A browser's EventSource reconnects by itself; it is told to stop, and the model is asked once."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page

from tests.browser import OpenPage
from tests.service.server.cutting_proxy import CuttingProxy
from tests.service.server.paced_model import PacedModel, text
from tests.serving import service
from tests.waiting import until

LISTEN = """path => {
    window.seen = [];
    window.source = new EventSource(path);
    for (const name of ["delta", "done", "error"]) source.addEventListener(name, event => seen.push(name));
}"""
STOPPED = "() => source.readyState === EventSource.CLOSED"


@asynccontextmanager
async def listening(
    model: PacedModel, path: str, open_page: OpenPage
) -> AsyncGenerator[tuple[Page, CuttingProxy], None]:
    """A page whose EventSource listens to a question, through a proxy that can cut it off."""
    async with (
        service(OPENAI_BASE_URL=model.base_url) as client,
        CuttingProxy(client.base_url.host, client.base_url.port or 80) as proxy,
        open_page() as page,
    ):
        await page.goto(f"{proxy.base_url}/playground/")  # whose policy lets it ask
        await page.evaluate(LISTEN, path)
        yield page, proxy


@pytest.mark.parametrize("path", ["/time/chat?query=one", "/chat/stream?query=one"])
async def test_an_event_source_that_was_cut_off_reconnects_and_gets_204(path: str, open_page: OpenPage) -> None:
    model = PacedModel(text(["one ", "two "], ends=False))
    async with model, listening(model, path, open_page) as (page, proxy):
        await page.wait_for_function("() => seen.length === 2")
        proxy.cut()
        await until(lambda: model.aborted == 1)
        await page.wait_for_function(STOPPED)
        assert b"HTTP/1.1 204 " in proxy.passed_to_client
        assert b"\r\nLast-Event-ID: " in proxy.passed_to_service
        assert model.asked == 1
        assert "done" not in await page.evaluate("() => seen")


async def test_an_event_source_that_has_the_whole_answer_gets_204_as_well(
    open_page: OpenPage,
) -> None:
    model = PacedModel(text(["one ", "two "]))
    async with model, listening(model, "/time/chat", open_page) as (page, proxy):
        await page.wait_for_function("() => seen.includes('done')")
        await page.wait_for_function(STOPPED)
        assert b"HTTP/1.1 204 " in proxy.passed_to_client
        assert (model.asked, model.finished) == (1, 1)
