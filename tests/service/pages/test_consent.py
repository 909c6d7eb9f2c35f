"""Deciding about a call that waits, in a real browser: where it was asked, by its link, and in the list."""

import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, delta, finish, sse
from tests.service.api.approvals.desk_service import Desk, desk_service, yes
from tests.service.pages.page import CONVERSATION, Visit, say, streamed, violations
from tests.service.pages.workshop.printer import PRINTED
from tests.serving import service
from toolchat.service.access.keys import digest_of


def model(*arguments: str) -> Any:
    """Asks for one page with each of the arguments, and repeats what it was told."""

    def script(request: PlayedRequest) -> Answer:
        told = [each["content"] for each in request.body["messages"] if each["role"] == "tool"]
        if told:
            return streamed(f"Told: {'; '.join(told)}")
        calls = [
            {"index": at, "id": f"c{at}", "type": "function", "function": {"name": "printPage", "arguments": each}}
            for at, each in enumerate(arguments)
        ]
        return sse(delta(tool_calls=calls), finish("tool_calls"))

    return script


async def decided(page: Page) -> Any:
    async with page.expect_request("**/approvals/*") as asked:
        await page.get_by_role("button", name="Approve").last.click()
    return json.loads((await asked.value).post_data or "")["decisions"]


async def test_arguments_are_changed_before_a_call_is_approved(visit: Visit) -> None:
    # An invalid JSON object is reported and nothing is sent; the call runs once the text is valid.
    async with (
        OpenAIPlayer(model('{"text": "A page"}')) as player,
        service("tests.service.pages.workshop", OPENAI_BASE_URL=player.base_url) as client,
        visit(client.base_url, place=CONVERSATION) as page,
    ):
        before = len(PRINTED)
        await say(page, "Print")
        await expect(page.locator("#conversation-list .badge")).to_have_text("needs approval")
        await page.get_by_role("button", name="Edit").click()
        editor = page.get_by_label("Arguments of printPage, as JSON")
        await expect(editor).to_be_focused()
        await expect(editor).to_have_value('{\n  "text": "A page"\n}')
        for wrong in ("{", "[1]", "7"):
            await editor.fill(wrong)
            await page.get_by_role("button", name="Approve").click()
            await expect(editor).to_be_focused()
            assert await editor.evaluate("(each) => each.validationMessage")
        await editor.fill('{"text": "Another page"}')
        assert await decided(page) == {"c0": {"approved": True, "arguments": {"text": "Another page"}}}
        await expect(page.locator(".turn.assistant .text")).to_contain_text("Told: printed")
        assert PRINTED[before:] == ["Another page"]


async def test_the_model_receives_the_reason_of_a_rejection(visit: Visit) -> None:
    # Calls are decided one by one, and sent together.
    async with (
        OpenAIPlayer(model('{"text": "One"}', '{"text": "Two"}')) as player,
        service("tests.service.pages.workshop", OPENAI_BASE_URL=player.base_url) as client,
        visit(client.base_url, place=CONVERSATION) as page,
    ):
        await say(page, "Print")
        first = page.locator(".waiting-call").first
        await first.get_by_label("Reason").fill("Paper is out")
        await first.get_by_role("button", name="Reject").click()
        await expect(page.get_by_role("button", name="Approve")).to_be_focused()
        assert await decided(page) == {"c0": {"approved": False, "reason": "Paper is out"}, "c1": {"approved": True}}
        await expect(page.locator(".turn.assistant .text")).to_contain_text("Paper is out")
        await expect(page.locator(".turn summary .badge")).to_have_text(["rejected", "ok"])


@pytest.mark.parametrize("variables", [{}, {"API_KEYS": f"alice={digest_of('secret')}"}], ids=["no keys", "keys"])
async def test_an_answer_to_another_client_is_decided_by_the_link_that_it_names(
    variables: dict[str, str], visit: Visit
) -> None:
    async with (
        OpenAIPlayer(model('{"text": "A page"}')) as player,
        service("tests.service.pages.workshop", OPENAI_BASE_URL=player.base_url, **variables) as client,
    ):
        asked = {"model": "toolchat", "stream": True, "messages": [{"role": "user", "content": "Print"}]}
        answer = await client.post("/v1/chat/completions", json=asked, headers={"X-API-Key": "secret"})
        (place,) = re.findall(rf"{client.base_url}/playground/(\?approval=[\w-]+#token=[\w-]+)", answer.text)
        before = len(PRINTED)
        async with visit(client.base_url, place=place, ready="#approval:not([hidden])") as page:
            assert "token" not in page.url
            waiting = page.get_by_role("region", name="Approvals of other answers")
            assert PRINTED[before:] == []
            await waiting.get_by_role("button", name="Approve").click()
            await expect(waiting).to_contain_text("Told: printed")
            await expect(page.locator("#key-dialog[open]")).to_have_count(0)
        assert PRINTED[before:] == ["A page"]
        async with visit(client.base_url, place=place, ready="#approval:not([hidden])") as page:
            told = page.get_by_role("region", name="Approvals of other answers")
            await expect(told).to_contain_text("Approved by")
            await expect(told.get_by_role("button", name="Approve")).to_have_count(0)


INBOX = "?view=inbox"
READY = {"ready": "#inbox-lead:not(:empty)"}
COUNT = "#inbox-count"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk, None]:
    async with desk_service(tmp_path, STATE_URL="memory://") as desk:
        yield desk


def entry(page: Page, question: str) -> Locator:
    return page.locator(".entry", has=page.get_by_text(question, exact=True))


async def test_a_manager_sees_what_a_decision_needs_and_decides(visit: Visit, desk: Desk) -> None:
    earlier = await desk.ask("refund 20")
    await desk.decide(earlier["id"], "lead")
    await desk.ask("refund 50")
    async with visit(desk.client.base_url, place=f"{INBOX}#key=lead", **READY) as page:
        shown = entry(page, "refund 50")
        for text in (
            "Your decision, as manager",
            "Refund an order.",
            '"amount": 50',
            "Asked by asker",
            "acme",
            "h left",
        ):
            await expect(shown).to_contain_text(text)
        await expect(page.locator("#inbox-decided .entry")).to_contain_text(["Approved by lead"])
        await expect(page.locator(COUNT)).to_have_text("1")
        await shown.get_by_role("button", name="Approve").click()
        await expect(shown).to_contain_text("Done: 50 refunded by asker of acme")
        await expect(shown).to_be_focused()
        await expect(page.locator(COUNT)).to_have_text("")


async def test_arguments_can_be_changed_where_the_tool_allows_it_and_a_rejection_has_a_reason(
    visit: Visit, desk: Desk
) -> None:
    await desk.ask("payOut 50")
    await desk.ask("refund 60")
    async with visit(desk.client.base_url, place=f"{INBOX}#key=lead", **READY) as page:
        paid, refund = entry(page, "payOut 50"), entry(page, "refund 60")
        await expect(refund.get_by_role("button", name="Edit")).to_have_count(0)
        await refund.get_by_label("Reason").fill("Too late")
        await refund.get_by_role("button", name="Reject").click()
        await expect(refund).to_contain_text("Too late")
        await paid.get_by_role("button", name="Edit").click()
        await paid.get_by_label("Arguments of payOut, as JSON").fill('{"amount": 40}')
        await paid.get_by_role("button", name="Approve").click()
        await expect(paid).to_contain_text("Done: 40 paid")


async def test_the_list_updates_by_itself_and_the_loser_of_two_sees_who_decided(visit: Visit, desk: Desk) -> None:
    faults = {"faults": "404"}
    async with visit(desk.client.base_url, place=f"{INBOX}#key=lead", **READY, **faults) as page:
        await expect(page.locator(COUNT)).to_have_text("")
        asked = await desk.ask("refund 50")
        shown = entry(page, "refund 50")
        await shown.get_by_label("Reason").fill("half a reas")
        await desk.ask("refund 70")
        await expect(page.locator(COUNT)).to_have_text("2")
        await expect(shown.get_by_label("Reason")).to_have_value("half a reas")
        await page.route("**/approvals?*", lambda route: route.abort())
        await page.route("**/approvals", lambda route: route.abort())
        await desk.decide(asked["id"], "chief", yes())
        await shown.get_by_role("button", name="Reject").click()
        await expect(shown).to_contain_text("Approved by chief")
        await expect(shown.locator(".problem")).to_have_count(0)


async def test_who_asked_sees_whose_decision_it_is_and_then_the_answer(visit: Visit, desk: Desk) -> None:
    async with visit(desk.client.base_url, place=f"{CONVERSATION}#key=asker") as page:
        await say(page, "refund 50")
        turn = page.locator(".turn.assistant")
        await expect(turn).to_contain_text("A person with the role manager decides")
        await expect(turn.get_by_role("button", name="Approve")).to_have_count(0)
        (waiting,) = (await desk.inbox("lead"))["approvals"]
        await desk.decide(waiting["id"], "lead")
        await expect(turn.locator(".text")).to_have_text("Done: 50 refunded by asker of acme")
        await expect(turn.locator("summary")).to_contain_text("approved by lead")


async def test_a_key_that_only_decides_has_the_list_alone(visit: Visit, desk: Desk) -> None:
    await desk.ask("refund 5000")
    async with visit(desk.client.base_url, place="#key=chief", **READY) as page:
        await expect(page.get_by_role("tab")).to_have_text(["Approvals 1"])
        await expect(page.get_by_role("tabpanel", name="Approvals")).to_contain_text("Your decision, as director")
        await expect(page.locator("#only-decides")).to_be_visible()


async def test_the_list_fits_a_phone_and_violates_no_rule(visit: Visit, desk: Desk) -> None:
    await desk.decide((await desk.ask("refund 20"))["id"], "lead")
    await desk.ask("payOut 50")
    fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    place = f"{INBOX}#key=lead"
    async with visit(desk.client.base_url, place=place, width=390, locale="zh-CN", **READY) as page:
        await expect(page.get_by_role("button", name="批准")).to_be_visible()
        assert await page.evaluate(fits)
        assert await violations(page) == []
