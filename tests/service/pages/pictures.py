"""The pictures in docs/, taken of a demo service: ``python -m tests.service.pages.pictures [FOLDER]``.

They have always the same size; what they show follows the clock and the demo's invented weather.
"""

import asyncio
import sys
from base64 import b64decode
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import NamedTuple

from playwright.async_api import Browser, Page, async_playwright, expect

from tests.browser import FLAGS
from tests.command_line import ROOT, started
from tests.programs import CHROMIUM, find
from tests.service.pages.page import say

__all__ = ["PICTURES", "take"]


async def _swagger(page: Page) -> None:
    operation = page.locator(".opblock-get", has_text="/time/chat-tool-function").first
    await operation.click()
    await operation.get_by_role("button", name="Try it out").click()
    await operation.get_by_role("button", name="Execute").click()
    await expect(operation.locator(".live-responses-table .response").first).to_contain_text("200")
    await operation.scroll_into_view_if_needed()


async def _talk(page: Page, earlier: str, *questions: str) -> None:
    await say(page, earlier)
    await expect(page.locator(".turn .figures")).to_have_count(1)
    await page.locator("#new-conversation").click()
    for number, question in enumerate(questions, start=1):
        await say(page, question)
        await expect(page.locator(".turn .figures")).to_have_count(number)


_ENGLISH = (
    "How do you say “Where is the station?” in Chinese?",
    "What time is it in Paris and in Tokyo?",
    "And what is the weather in Oslo tomorrow?",
)
_CHINESE = ("“车站在哪里？”用英语怎么说？", "巴黎和东京现在几点？", "奥斯陆明天天气怎么样？")


class Picture(NamedTuple):
    """What is shown on a page of the service, and how high it is."""

    place: str
    height: int
    show: Callable[[Page], Coroutine[None, None, None]]
    locale: str = "en-US"


PICTURES = {
    "swagger-ui": Picture("docs", 1250, _swagger),
    "playground-conversation": Picture("playground/", 1080, lambda page: _talk(page, *_ENGLISH)),
    "playground-conversation.zh-CN": Picture("playground/", 1080, lambda page: _talk(page, *_CHINESE), "zh-CN"),
}


async def take(browser: Browser, url: str, folder: Path) -> None:
    """Take every picture of a demo service, each in a browser of its own."""
    for name, (place, height, show, locale) in PICTURES.items():
        context = await browser.new_context(viewport={"width": 1280, "height": height}, locale=locale)
        page = await context.new_page()
        await page.goto(f"{url}/{place}")
        await show(page)
        await page.mouse.move(0, 0)
        devtools = await context.new_cdp_session(page)  # Playwright's own screenshots are PNG or JPEG
        shot = await devtools.send("Page.captureScreenshot", {"format": "webp", "quality": 40})
        (folder / f"{name}.webp").write_bytes(b64decode(shot["data"]))
        await context.close()


async def _main(folder: Path) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find(*CHROMIUM), args=FLAGS)
        with started("demo", cwd=ROOT) as (_, url):
            await take(browser, url.rstrip("/"), folder)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs"))
