"""A pytest plugin: one browser for each test module, and a screenshot of the page when a test fails."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.programs import CHROMIUM, require
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page


FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-proxy-server",
         "--host-resolver-rules=MAP *.example 127.0.0.1"]  # fmt: skip

OpenPage = Callable[..., AbstractAsyncContextManager["Page"]]
"""Opens an empty page; takes the arguments of ``Browser.new_context``."""


@asynccontextmanager
async def launched() -> AsyncGenerator[Browser, None]:
    """A running browser; the test is skipped where none is installed."""
    from playwright.async_api import async_playwright, expect  # slow to import, and most modules need no browser

    chromium = require(*CHROMIUM)
    expect.set_options(timeout=PATIENCE * 1000)
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield started
        await started.close()


@pytest.fixture(scope="module")  # a wider scope shares its event loop between modules
async def browser() -> AsyncGenerator[Browser, None]:
    async with launched() as started:
        yield started


@asynccontextmanager
async def pictured(page: Page, folder: Path) -> AsyncGenerator[None, None]:
    """Take a screenshot of the page when its test fails."""
    try:
        yield
    except Exception as error:
        picture = folder / "page.png"
        await page.screenshot(path=picture, full_page=True)
        error.add_note(f"Screenshot: {picture}")
        raise


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> OpenPage:
    """Opens pages, each in a browser context of its own."""

    @asynccontextmanager
    async def opened(**options: Any) -> AsyncGenerator[Page, None]:
        context = await browser.new_context(**options)
        context.set_default_timeout(PATIENCE * 1000)
        page = await context.new_page()
        try:
            async with pictured(page, tmp_path):
                yield page
        finally:
            await context.close()

    return opened
