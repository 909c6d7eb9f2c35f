"""What the page shows of a service's own tools: before the example application's, and without its words."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.pages.page import CONVERSATION, Visit, say
from tests.serving import service, serving
from toolchat.service.composition.configuration import read_configuration
from toolchat.service.main import create_app

DESK = '''
from typing import Annotated

from toolchat import ToolModule, tool


@tool(read_only=True)
async def search_faq(query: Annotated[str, "Words to search for"]) -> str:
    """Search the FAQ about returns, shipping countries and payment."""
    return "You may return an item within 30 days."


@tool
async def refund(amount: Annotated[int, "Amount"]) -> str:
    """Refund an amount."""
    raise RuntimeError("the bank is closed")


module = ToolModule(functions=(search_faq, refund), default_query="How long may I return an item?", title="Desk")
'''


@pytest.fixture
def tools(tmp_path: Path) -> str:
    (tmp_path / "desk.py").write_text(DESK, encoding="utf-8")
    return str(tmp_path)


async def titles(page: Page) -> list[str]:
    return await page.locator("#tool-list > .group > .group-title").all_inner_texts()


async def test_own_tools_and_their_questions_come_first(visit: Visit, tools: str) -> None:
    # What the offline model would refuse is not proposed; what it proposes instead is answered.
    async with service(TOOLS_PATH=tools) as client, visit(client.base_url, place=CONVERSATION) as page:
        starters = page.locator("#starters button")
        await expect(starters.first).to_have_text("Search faq: hello")
        assert "How long may I return an item?" not in await starters.all_inner_texts()
        await starters.first.click()
        await expect(page.locator(".turn.assistant .text")).to_contain_text("within 30 days")
        await page.locator("#tools-tab").click()
        assert (await titles(page))[0] == "Desk"
        await expect(page.locator("#tool-title")).to_have_text("search_faq")
        await expect(page.locator(".missing .group").first).to_be_hidden()


async def test_a_service_of_own_tools_alone_compares_nothing(
    visit: Visit, tools: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLS_PATH", tools)
    read = read_configuration(serving=False)
    async with (
        serving(create_app(read), read.settings) as url,
        visit(url, place="?view=compare", ready="#send:enabled") as page,
    ):
        await expect(page.get_by_role("tab")).to_have_text(["Conversation", "Tools"])
        await expect(page.get_by_role("tab", selected=True)).to_have_text("Conversation")
        await page.locator("#tools-tab").click()
        assert await titles(page) == ["Desk"]
        words = await page.locator("body").inner_text()
        assert [each for each in ("ompare", "function", "method", "Plan first") if each in words] == []


async def test_a_failed_tool_is_not_called_a_failed_look_up(visit: Visit, tools: str) -> None:
    async with service(TOOLS_PATH=tools) as client, visit(client.base_url, place=CONVERSATION) as page:
        await say(page, "Refund amount 50")
        await expect(page.locator(".turn.assistant .text")).to_contain_text("refund failed:")
        await expect(page.locator(".turn.assistant .text")).not_to_contain_text("look-up")
