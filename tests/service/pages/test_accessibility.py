"""The page as axe-core judges it, in every state that it has."""

import json
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, delta, finish, sse
from tests.service.pages.page import Visit, say, streamed, violations
from tests.serving import service

DOCUMENT = (
    "### Deep\n\n# High\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\ncode\n```\n\n[link](https://e.org) `x`\n\n> said"
)
CALLS: dict[str, tuple[str, Any]] = {
    "Plan": ("todoUpdate", {"items": [{"id": "1", "text": "Look", "status": "in_progress"}]}),
    "Print": ("printPage", {"text": "A page"}),
}


def model(request: PlayedRequest) -> Answer:
    """Writes a todo list, asks for consent, or answers with everything that Markdown has."""
    question = request.body["messages"][-1]["content"]
    if question not in CALLS:
        return streamed(DOCUMENT)
    name, arguments = CALLS[question]
    call = {"name": name, "arguments": json.dumps(arguments)}
    return sse(delta(tool_calls=[{"index": 0, "id": "a", "type": "function", "function": call}]), finish("tool_calls"))


LOOKS = [(390, "light"), (1280, "dark")]


async def faults(page: Page) -> list[object]:
    """The rules that the page violates, light on a phone and dark on a desk."""
    found: list[object] = []
    for width, scheme in LOOKS:
        await page.set_viewport_size({"width": width, "height": 900})
        await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        found += [(width, scheme, each) for each in await violations(page)]
    return found


@pytest.mark.slow(seconds=15)
async def test_no_state_of_the_page_violates_a_rule(visit: Visit) -> None:
    async with (
        OpenAIPlayer(model) as player,
        service("tests.service.pages.workshop", OPENAI_BASE_URL=player.base_url) as client,
        visit(client.base_url) as page,
    ):
        assert await faults(page) == []
        await page.get_by_role("button", name="Ask").click()
        await expect(page.locator("#panes .figures")).to_have_count(3)
        assert await faults(page) == []
        await page.get_by_role("tab", name="Conversation").click()
        assert await faults(page) == []
        for question in ("Plan", "Print"):
            await say(page, question)
            await expect(page.locator(".turn.assistant").last.locator(".figures")).to_be_attached()
            assert await faults(page) == []
        await page.get_by_role("button", name="Edit").click()
        assert await faults(page) == []
        await page.get_by_role("button", name="Rename").click()
        assert await faults(page) == []
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Delete").click()
        assert await faults(page) == []
        await page.get_by_role("button", name="Cancel").click()
        await page.get_by_role("tab", name="Tools").click()
        for tool in ("printPage", "bookTable"):
            await page.get_by_role("button", name=tool).click()
            await page.get_by_label("required").first.fill("A page")
            if tool == "bookTable":
                await page.get_by_label("day required").fill("2030-01-31")
            await page.get_by_role("button", name="Run", exact=True).click()
            await expect(page.locator(".run .ms")).to_be_visible()
            assert await faults(page) == []
