"""The documentation page in a real browser."""

import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Page, async_playwright, expect

from tests.serving import service

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@asynccontextmanager
async def browser_page(requested: list[str]) -> AsyncGenerator[Page, None]:
    """A page that notes every address it asks for."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = await browser.new_page(viewport={"width": 1200, "height": 1250})
        page.on("request", lambda request: requested.append(request.url))
        try:
            yield page
        finally:
            await browser.close()


@pytest.mark.parametrize(
    ("operation", "answered"), [("chat_chat_get", "Asia/Shanghai"), ("chat_stream_chat_stream_get", "done")]
)
async def test_swagger_ui_asks_in_a_session_with_the_example_as_it_stands(operation: str, answered: str) -> None:
    """Try it out and Execute fill the question in, and accept the form that the route gives."""
    async with service() as client, browser_page([]) as page:
        await page.goto(f"{client.base_url}/docs")
        shown = page.locator(f"#operations-Chat-{operation}")
        await shown.click()
        await shown.get_by_role("button", name="Try it out").click()
        await shown.get_by_role("button", name="Execute").click()
        response = shown.locator(".live-responses-table .response").first
        await expect(response).to_contain_text("200", timeout=10_000)
        await expect(response).to_contain_text(answered)


async def test_swagger_ui_asks_no_other_host_and_executes_a_question() -> None:
    requested: list[str] = []
    async with service() as client, browser_page(requested) as page:
        await page.goto(f"{client.base_url}/docs")
        operation = page.locator("#operations-Time-time_chat_tool_function")
        await operation.click()
        await operation.get_by_role("button", name="Try it out").click()
        await operation.get_by_role("button", name="Execute").click()
        answer = operation.locator(".live-responses-table .response-col_description .highlight-code").first
        await expect(answer).to_contain_text("Asia/Shanghai", timeout=10_000)
        if folder := os.environ.get("TOOLCHAT_SCREENSHOTS"):
            await operation.scroll_into_view_if_needed()
            await page.screenshot(path=Path(folder) / "swagger-ui.png")
        hosts = {urlsplit(url).netloc for url in requested if not url.startswith(("data:", "blob:"))}
        assert hosts == {client.base_url.netloc.decode()}
        assert any("/time/chat-tool-function" in url for url in requested)
