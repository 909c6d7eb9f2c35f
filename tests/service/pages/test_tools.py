"""Running tools on the page, in a real browser; and those of a service of one's own."""

import json
import re
import shlex
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.service.pages.page import CONVERSATION, Visit, say
from tests.service.pages.workshop.printer import PRINTED
from tests.serving import service, serving
from toolchat.service.access.keys import digest_of
from toolchat.service.composition.configuration import read_configuration
from toolchat.service.main import create_app

WORKSHOP = "tests.service.pages.workshop"


Shown = Callable[..., AbstractAsyncContextManager[Page]]
"""Opens the page with one tool of the workshop."""


@pytest.fixture(scope="module")
async def workshop() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service(WORKSHOP) as client:
        yield client


@pytest.fixture
def shown(visit: Visit, workshop: httpx.AsyncClient) -> Shown:
    @asynccontextmanager
    async def opened(tool: str, **options: Any) -> AsyncGenerator[Page, None]:
        async with visit(workshop.base_url, place=f"?view=tools&tool={tool}", **options) as page:
            await expect(page.get_by_role("heading", name=tool)).to_be_visible()
            yield page

    return opened


def field(page: Page, name: str) -> Locator:
    return page.get_by_label(re.compile(rf"^{name} "))


async def run(page: Page) -> Any:
    """Run the tool; gives the arguments that were sent."""
    async with page.expect_request(lambda request: request.method == "POST") as asked:
        await page.get_by_role("button", name="Run", exact=True).click()
    return (await asked.value).post_data


async def test_the_form_values_are_sent_as_arguments(shown: Shown) -> None:
    # A long number as it was written, a moment in UTC.
    async with shown("bookTable", timezone_id="Asia/Shanghai") as page:
        for name, value in (
            ("restaurant", 'The "Löwe"'),
            ("day", "2030-12-24"),
            ("seats", "4"),
            ("arrival", "19:30"),
            ("until", "2030-12-24T22:30"),
            ("deposit", "12345678901234567890.25"),
            ("guests", '[{"name": "Li Wei"}]'),
        ):
            await field(page, name).fill(value)
        await field(page, "area").select_option("terrace")
        await field(page, "quiet").check()
        sent = await run(page)
        assert '"deposit":12345678901234567890.25' in sent
        assert json.loads(sent) | {"deposit": 0} == {
            "restaurant": 'The "Löwe"',
            "day": "2030-12-24",
            "seats": 4,
            "area": "terrace",
            "quiet": True,
            "arrival": "19:30:00",
            "until": "2030-12-24T14:30:00.000Z",
            "deposit": 0,
            "guests": [{"name": "Li Wei"}],
        }
        await expect(page.locator(".run pre").last).to_contain_text('"name": "Li Wei"')


async def test_invalid_values_are_reported_before_anything_is_sent(shown: Shown) -> None:
    async with shown("bookTable") as page:
        for name, value in (
            ("day", ""),
            ("seats", "13"),
            ("seats", ""),
            ("guests", "[{"),
            ("guests", '{"name": "Li"}'),
        ):
            await field(page, "day").fill("" if name == "day" else "2030-01-31")
            if name != "day":
                await field(page, name).fill(value or "2.5")
            await page.get_by_role("button", name="Run", exact=True).click()
            await expect(field(page, name)).to_be_focused()
            assert await field(page, name).evaluate("(each) => each.validationMessage")
            await page.get_by_role("button", name="Reset").click()
        await expect(page.locator(".run")).to_have_count(0)


async def test_a_failure_is_shown_as_the_model_receives_it(shown: Shown) -> None:
    async with shown("bookTable") as page:
        await field(page, "restaurant").fill("closed")
        await field(page, "day").fill("2030-01-31")
        await run(page)
        await expect(page.locator(".run summary")).to_contain_text("bookTableerror")
        await expect(page.locator(".run pre").last).to_contain_text("the restaurant is closed on that day")
        await expect(page.locator("#announcer")).to_have_text("bookTable: error")


async def test_progress_is_shown_and_stop_ends_the_run(shown: Shown) -> None:
    async with shown("printBook") as page:
        await run(page)
        await expect(page.locator(".run summary")).to_have_text("printBookrunning3 of 8 · page 3")
        await expect(page.get_by_role("progressbar", name="3 of 8")).to_have_attribute("value", "3")
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator(".run summary")).to_have_text("printBookstopped")
        await expect(page.get_by_role("button", name="Run", exact=True)).to_be_focused()


async def test_a_tool_that_needs_approval_is_marked_and_runs_once_per_run(shown: Shown) -> None:
    async with shown("printPage") as page:
        await expect(page.get_by_text("Running it here counts as approval")).to_be_visible()
        before = len(PRINTED)
        for times in (1, 2):
            await field(page, "text").fill("A page")
            await run(page)
            await expect(page.locator(".run summary .badge.ok")).to_have_count(times)
        assert PRINTED[before:] == ["A page", "A page"]


async def without_its_end(route: Route) -> None:
    """Let the service answer, and lose the end on the way."""
    answer = await route.fetch()
    body, _, end = (await answer.text()).partition("event: done")
    assert end
    await route.fulfill(response=answer, body=body)


async def test_a_run_with_a_lost_response_is_not_repeated(shown: Shown) -> None:
    # The same arguments, run again after the connection was lost, carry the same key.
    async with shown("printPage") as page:
        await page.route("**/tools/printPage", without_its_end, times=1)
        before = len(PRINTED)
        await field(page, "text").fill("Once")
        await run(page)
        await expect(page.locator(".run .problem")).to_contain_text("connection-lost")
        await run(page)
        await expect(page.locator(".run").first).to_contain_text("nothing was run again")
        await expect(page.locator(".run").first.locator("pre").last).to_contain_text("printed")
        assert PRINTED[before:] == ["Once"]


async def test_a_run_is_copied_for_a_shell(shown: Shown, workshop: httpx.AsyncClient) -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    async with shown("printPage", permissions=permissions) as page:
        await field(page, "text").fill('It\'s "1"')
        await page.get_by_role("button", name="Copy as curl").click()
        await expect(page.get_by_role("button", name="Copied")).to_be_visible()
        words = shlex.split(await page.evaluate("navigator.clipboard.readText()"))
    assert words[:4] == ["curl", "-X", "POST", f"{workshop.base_url}/tools/printPage"]
    assert words[4:7:2] == ["-H", "-H"]
    assert re.fullmatch("Idempotency-Key: [0-9a-f]{32}", words[7])
    assert words[8:] == ["-d", '{"text":"It\'s \\"1\\""}']


async def test_a_tool_is_chosen_and_run_with_the_keyboard(shown: Shown) -> None:
    # Its form and its results are still there when one comes back to it, and its address leads to it.
    async with shown("printPage") as page:
        await field(page, "text").fill("Keep me")
        await page.get_by_role("button", name="listPrices").press("Enter")
        await expect(page.get_by_role("button", name="listPrices")).to_have_attribute("aria-current", "true")
        await expect(page).to_have_url(re.compile(r"view=tools&tool=listPrices$"))
        await page.get_by_role("button", name="printPage").press("Enter")
        await expect(field(page, "text")).to_have_value("Keep me")
        await field(page, "text").press("Control+Enter")
        await expect(page.locator(".run summary .badge.ok")).to_be_visible()


async def test_a_tool_that_keeps_something_of_a_conversation_does_so_in_the_one_that_is_shown(shown: Shown) -> None:
    async with shown("todoUpdate") as page:
        await page.get_by_role("tab", name="Conversation").click()
        await say(page, "What time is it in Oslo?")
        await expect(page.locator(".turn .figures")).to_be_attached()
        await page.get_by_role("tab", name="Tools").click()
        await field(page, "items").fill('[{"id": "1", "text": "Pack", "status": "pending"}]')
        await run(page)
        await expect(page.locator(".run summary .badge.ok")).to_be_visible()
        await page.get_by_role("tab", name="Conversation").click()
        await page.reload()
        await expect(page.locator("#todo-items")).to_contain_text("Pack")


async def test_a_tool_runs_for_the_tenant_that_the_field_names_unless_a_key_has_its_own(visit: Visit) -> None:
    place = "?view=tools&tool=callerOfMethod"
    key = {"API_KEYS": f"alice={digest_of('right')}", "ALLOW_ANONYMOUS": "true"}
    async with service("tests.service.access.folders", **key) as client:
        async with visit(client.base_url, place=place) as page:
            await page.get_by_label("Tenant").fill("acme")
            await run(page)
            await expect(page.locator(".run")).to_contain_text("</acme/")
        async with visit(client.base_url, place=f"{place}#key=right") as page:
            await expect(page.get_by_label("Tenant")).to_be_hidden()
            await run(page)
            await expect(page.locator(".run")).to_contain_text("<alice/alice/")


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
def desk(tmp_path: Path) -> str:
    (tmp_path / "desk.py").write_text(DESK, encoding="utf-8")
    return str(tmp_path)


async def titles(page: Page) -> list[str]:
    return await page.locator("#tool-list > .group > .group-title").all_inner_texts()


async def test_own_tools_and_their_questions_come_first(visit: Visit, desk: str) -> None:
    async with service(TOOLS_PATH=desk) as client, visit(client.base_url, place=CONVERSATION) as page:
        starters = page.locator("#starters button")
        await expect(starters.first).to_have_text("How long may I return an item?")
        await starters.first.click()
        await expect(page.locator(".turn.assistant .text")).to_contain_text("within 30 days")
        await page.locator("#tools-tab").click()
        assert (await titles(page))[0] == "Desk"
        await expect(page.locator("#tool-title")).to_have_text("search_faq")
        await expect(page.locator(".missing .group").first).to_be_hidden()


async def test_a_service_of_own_tools_alone_compares_nothing(
    visit: Visit, desk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLS_PATH", desk)
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
