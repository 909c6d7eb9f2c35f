"""The playground's page, and what it requests and reports."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser import OpenPage, launched, pictured
from tests.players.openai_player import OpenAIPlayer
from tests.service.pages.page import Stage, Visit
from tests.serving import service
from tests.waiting import PATIENCE


@pytest.fixture(scope="package")
async def browser() -> AsyncGenerator[Browser, None]:
    async with launched() as started:
        yield started


@pytest.fixture(scope="package")
async def shared_page(browser: Browser) -> Page:
    """A page that tests use one after the other: it keeps the files of a service, and so loads in half the time."""
    context = await browser.new_context(locale="en-US")
    context.set_default_timeout(PATIENCE * 1000)
    return await context.new_page()


@pytest.fixture(scope="package")
async def stage() -> AsyncGenerator[Stage, None]:
    async with OpenAIPlayer() as player, service(OPENAI_BASE_URL=player.base_url, BREAKER_FAILURES="0") as client:
        yield Stage(client, player)


@pytest.fixture(scope="package")
async def offline() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service() as client:
        yield client


@asynccontextmanager
async def _cleared(page: Page, tmp_path: Path, width: int) -> AsyncGenerator[Page, None]:
    """The shared page, without anything that an earlier test did to it."""
    await page.set_viewport_size({"width": width, "height": 900})
    try:
        async with pictured(page, tmp_path):
            yield page
    finally:
        await page.unroute_all()
        for other in page.context.pages:
            if other != page:
                await other.close()
        if page.url.startswith("http"):
            await page.evaluate("localStorage.clear(); sessionStorage.clear();")
        await page.goto("about:blank")


@pytest.fixture
def visit(shared_page: Page, open_page: OpenPage, offline: httpx.AsyncClient, stage: Stage, tmp_path: Path) -> Visit:
    """Opens the page; in the end it must have asked this host alone, and left nothing unexpected on the console."""

    def page_for(width: int, options: dict[str, Any]) -> AbstractAsyncContextManager[Page]:
        if options:
            return open_page(viewport={"width": width, "height": 900}, **{"locale": "en-US"} | options)
        return _cleared(shared_page, tmp_path, width)

    @asynccontextmanager
    async def visited(
        url: object,
        *,
        place: str = "?view=compare",
        width: int = 1280,
        faults: str = "",
        ready: str = "#ask:enabled",
        **options: Any,
    ) -> AsyncGenerator[Page, None]:
        root = str(url).rstrip("/") + "/"
        requested: list[str] = []
        reported: list[str] = []
        listeners: dict[str, Any] = {
            "request": lambda request: requested.append(request.url),
            "console": lambda line: reported.append(line.text) if line.type in ("error", "warning") else None,
            "pageerror": lambda error: reported.append(str(error)),
            "dialog": lambda dialog: reported.append(f"dialog {dialog.message}"),
        }
        async with page_for(width, options) as page:
            for event, listener in listeners.items():
                page.on(event, listener)  # type: ignore[call-overload] # of any of these names
            try:
                await page.goto(f"{root}playground/{place}")
                await expect(page.locator(ready)).to_be_attached()
                yield page
            finally:
                for event, listener in listeners.items():
                    page.remove_listener(event, listener)
        assert [each for each in requested if not each.startswith(root)] == []
        assert {urlsplit(each).netloc for each in requested} == {urlsplit(root).netloc}
        assert [each for each in reported if not (faults and faults in each)] == []

    return Visit(visited, offline, stage)
