"""The list of approvals on the page, for those who decide and for those who have asked."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.approvals.desk_service import Desk, desk_service, yes
from tests.pages.page import CONVERSATION, Visit, say, violations

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


async def test_a_tool_that_somebody_else_approves_says_so_when_it_is_run(visit: Visit, desk: Desk) -> None:
    async with visit(desk.client.base_url, place="?view=tools&tool=refund#key=asker") as page:
        await expect(page.locator(".consent-note")).to_contain_text("a person with the role manager approves")
        await page.get_by_label("amount required").fill("50")
        await page.get_by_role("button", name="Run", exact=True).click()
        await expect(page.locator(".run")).to_contain_text("A person with the role manager decides")


async def test_more_than_a_page_of_approvals_is_shown_on_demand(visit: Visit, desk: Desk) -> None:
    for amount in range(11, 33):
        await desk.ask(f"refund {amount}")
    async with visit(desk.client.base_url, place=f"{INBOX}#key=lead", **READY) as page:
        await expect(page.locator(".entry")).to_have_count(20)
        await expect(page.locator(COUNT)).to_have_text("20+")
        await page.get_by_role("button", name="Show more").click()
        await expect(page.locator(".entry")).to_have_count(22)
        await expect(page.locator(".entry .question").last).to_have_text("refund 11")
        await expect(page.get_by_role("button", name="Show more")).to_be_hidden()


async def test_a_key_that_only_decides_has_the_list_alone(visit: Visit, desk: Desk) -> None:
    await desk.ask("refund 5000")
    async with visit(desk.client.base_url, place="#key=chief", **READY) as page:
        await expect(page.get_by_role("tab")).to_have_text(["Approvals 1"])
        await expect(page.get_by_role("tabpanel", name="Approvals")).to_contain_text("Your decision, as director")
        await expect(page.locator("#only-decides")).to_be_visible()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
async def test_the_list_fits_and_violates_no_rule(visit: Visit, desk: Desk, width: int, scheme: str) -> None:
    await desk.decide((await desk.ask("refund 20"))["id"], "lead")
    await desk.ask("payOut 50")
    fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    place = f"{INBOX}#key=lead"
    async with visit(
        desk.client.base_url, place=place, width=width, color_scheme=scheme, locale="zh-CN", **READY
    ) as page:
        await expect(page.get_by_role("button", name="批准")).to_be_visible()
        assert await page.evaluate(fits)
        assert await violations(page) == []
