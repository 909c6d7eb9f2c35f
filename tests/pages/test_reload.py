"""What a reload shows is what stood there."""

import re

from playwright.async_api import Page, expect

from app.sandbox import create_sandbox
from tests.pages.page import CONVERSATION, Visit, say
from tests.serving import service, serving


async def figures(page: Page) -> list[str]:
    """Tokens and model: a reload does not tell the rounds, and the time was read a moment earlier."""
    shown = await page.locator(".turn .figures").all_inner_texts()
    return [re.sub(r"(Rounds|Total)\s*\S+( ms)?\s*", "", each) for each in shown]


async def test_a_reload_shows_the_cards_and_the_figures_that_stood_there(visit: Visit) -> None:
    async with (
        serving(create_sandbox()) as sandbox,
        service(SANDBOX_URL=sandbox) as client,
        visit(client.base_url, place=CONVERSATION) as page,
    ):
        await say(page, "What is the weather in Oslo?")
        await expect(page.locator(".turn .figures")).to_be_visible()
        await say(page, "And what time is it in Oslo?")
        await expect(page.locator(".turn .figures")).to_have_count(2)
        cards = await page.locator(".turn summary").all_inner_texts()
        texts = await page.locator(".turn .text").all_inner_texts()
        before = await figures(page)
        assert len(cards) == 2
        await page.reload()
        await expect(page.locator(".turn summary")).to_have_count(2)
        assert await page.locator(".turn summary").all_inner_texts() == cards
        assert await page.locator(".turn .text").all_inner_texts() == texts
        assert await figures(page) == before
