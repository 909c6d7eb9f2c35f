"""A browser that every test of the playground shares."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.playground.page import Visit
from tests.test_browser import CHROMIUM, FLAGS


@pytest.fixture(scope="package")
async def browser() -> AsyncGenerator[Browser, None]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        await launched.close()


@pytest.fixture
def visit(browser: Browser) -> Visit:
    """Opens the page; in the end it must have asked this host alone, and left nothing unexpected on the console."""

    @asynccontextmanager
    async def visited(
        url: object, *, place: str = "", width: int = 1280, faults: str = "", **options: Any
    ) -> AsyncGenerator[Page, None]:
        root = str(url).rstrip("/") + "/"
        context = await browser.new_context(viewport={"width": width, "height": 900}, **{"locale": "en-US"} | options)
        page = await context.new_page()
        requested: list[str] = []
        told: list[str] = []
        page.on("request", lambda request: requested.append(request.url))
        page.on("console", lambda message: told.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("dialog", lambda dialog: told.append(f"dialog {dialog.message}"))
        try:
            await page.goto(f"{root}playground/{place}")
            await expect(page.locator("#ask")).to_be_enabled()
            yield page
        finally:
            await context.close()
        assert [each for each in requested if not each.startswith(root)] == []
        assert {urlsplit(each).netloc for each in requested} == {urlsplit(root).netloc}
        assert [each for each in told if not (faults and faults in each)] == []

    return visited
