"""The list of conversations beside the one that is shown, in a real browser."""

import json
import re
from pathlib import Path
from typing import Any

from playwright.async_api import Page, expect

from tests.pages.page import CONVERSATION, Visit, played, say, streamed
from tests.players.openai_player import Answer, PlayedRequest, sensible_model
from tests.waiting import until

NAMES = "#conversation-list button"


def echo(request: PlayedRequest) -> Answer:
    return streamed(f"You asked: {request.body['messages'][-1]['content']}")


def document_in(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


async def ask(page: Page, question: str) -> None:
    await say(page, question)
    await expect(page.locator(".turn.assistant .text").last).to_have_text(f"You asked: {question}")


async def test_conversations_are_listed_and_opened_again(visit: Visit) -> None:
    # The one that was asked last stands first, each keeps its own turns, and the list outlives the tab.
    async with played(visit, echo, CONVERSATION) as (page, _, _):
        await expect(page.get_by_text("What you ask is listed here")).to_be_visible()
        await ask(page, "One")
        await page.get_by_role("button", name="New conversation").click()
        await expect(page.get_by_text("What would you like to know?")).to_be_visible()
        await expect(page.get_by_label("Message")).to_be_focused()
        await ask(page, "Two")
        await expect(page.locator(NAMES)).to_have_text(["Two", "One"])
        await page.get_by_role("button", name="One", exact=True).click()
        await expect(page.locator(".turn .text")).to_have_text(["One", "You asked: One"])
        await expect(page.get_by_role("heading", name="One", exact=True, level=1)).to_be_visible()
        await ask(page, "Three")
        await expect(page.locator(NAMES)).to_have_text(["One", "Two"])
        other = await page.context.new_page()
        await other.goto(page.url)
        await other.get_by_role("button", name="Two", exact=True).click()
        await expect(other.locator(".turn .text")).to_have_text(["Two", "You asked: Two"])


async def test_a_long_conversation_opens_at_its_end_unless_a_problem_stands_above_it(visit: Visit) -> None:
    async with played(visit, echo, CONVERSATION, faults="404 (Not Found)") as (page, _, _):
        for number in range(8):
            await ask(page, f"Question {number}")
        await page.reload()
        at_end = "scrollY > 300 && scrollY + innerHeight > document.documentElement.scrollHeight - 2"
        await until(lambda: page.evaluate(at_end))
        await page.goto(f"{page.url}&approval=gone")
        await expect(page.get_by_role("alert")).to_be_in_viewport()


async def test_a_conversation_is_renamed_with_the_keyboard(visit: Visit) -> None:
    # Escape leaves the name as it was, an empty one is none, and the new one outlives a reload.
    async with played(visit, echo, CONVERSATION) as (page, _, _):
        await ask(page, "One")
        for typed, key, name in (("No", "Escape", "One"), ("  Trip to <b>Oslo</b> ", "Enter", "Trip to <b>Oslo</b>")):
            await page.get_by_role("button", name="Rename").press("Enter")
            await expect(page.locator("#rename-field")).to_be_focused()
            await page.keyboard.type(typed)
            await page.keyboard.press(key)
            await expect(page.get_by_role("button", name="Rename")).to_be_focused()
            await expect(page.locator("#conversation-title")).to_have_text(name)
            await expect(page.locator(NAMES)).to_have_text([name])
        await page.reload()
        await expect(page.locator("#conversation-title")).to_have_text("Trip to <b>Oslo</b>")


async def test_a_conversation_is_exported_as_the_service_returns_it(visit: Visit) -> None:
    async with played(visit, echo, CONVERSATION) as (page, client, _):
        await ask(page, "One")
        async with page.expect_download() as downloaded:
            await page.get_by_role("button", name="Export").click()
        file = await downloaded.value
        session = await page.evaluate("sessionStorage.getItem('toolchat.session')")
        assert file.suggested_filename == f"conversation-{session}.json"
        assert document_in(await file.path()) == (await client.get(f"/chat/{session}")).json()
        await expect(page.locator("#announcer")).to_have_text("The conversation was exported.")


async def test_nothing_is_deleted_unless_it_is_confirmed(visit: Visit) -> None:
    async with played(visit, echo, CONVERSATION) as (page, _, _):
        for question in ("One", "Two"):
            await page.get_by_role("button", name="New conversation").click()
            await ask(page, question)
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.locator(NAMES)).to_have_text(["Two", "One"])
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.locator(NAMES)).to_have_text(["One"])
        await expect(page.locator(".turn")).to_have_count(0)
        await expect(page.get_by_label("Message")).to_be_focused()


async def test_an_expired_conversation_is_removed_from_the_list(visit: Visit) -> None:
    async with played(visit, echo, CONVERSATION, faults="404 (Not Found)") as (page, client, _):
        await ask(page, "One")
        session = await page.evaluate("sessionStorage.getItem('toolchat.session')")
        assert (await client.delete(f"/chat/{session}")).status_code == 204
        await page.reload()
        await expect(page.locator(".gone")).to_have_text("The conversation “One” is no longer stored.")
        await expect(page.locator(NAMES)).to_have_count(0)
        await ask(page, "Two")
        await expect(page.locator(NAMES)).to_have_text(["Two"])


async def test_the_list_folds_where_there_is_no_room_for_it(visit: Visit) -> None:
    async with played(visit, echo, CONVERSATION, width=390) as (page, _, _):
        await ask(page, "One")
        opener = page.get_by_role("button", name=re.compile("Conversations"))
        await expect(page.locator(NAMES)).to_be_hidden()
        await expect(opener).to_have_attribute("aria-expanded", "false")
        await opener.click()
        await expect(opener).to_have_attribute("aria-expanded", "true")
        await page.get_by_role("button", name="One", exact=True).click()
        await expect(page.locator(NAMES)).to_be_hidden()


async def test_invalid_browser_storage_does_no_harm(visit: Visit) -> None:
    # Another version of the page, or a person, may have written it.
    async with played(visit, sensible_model(), CONVERSATION) as (page, _, _):
        for kept in ("no { json", '"text"', '[1, null, {"id": 7}, {"id": "a"}]'):
            await page.evaluate("(kept) => localStorage.setItem('toolchat.conversations', kept)", kept)
            await page.reload()
            await expect(page.locator("#send")).to_be_enabled()
        await expect(page.locator(NAMES)).to_have_count(1)
