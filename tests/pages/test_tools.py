"""Running tools on the page, in a real browser."""

import json
import re
import shlex
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx
import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.pages.page import CONVERSATION, Visit, say, streamed
from tests.pages.workshop.printer import PRINTED
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, delta, finish, sse
from tests.serving import service
from toolchat.service.access.keys import digest_of

WORKSHOP = "tests.pages.workshop"


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


FIELDS = {
    "restaurant": {"type": "text", "required": ""},
    "day": {"type": "date", "required": ""},
    "seats": {"type": "number", "min": "1", "max": "12", "step": "1"},
    "quiet": {"type": "checkbox"},
    "arrival": {"type": "time"},
    "until": {"type": "datetime-local"},
    "deposit": {"type": "number", "step": "any"},
}


async def test_a_form_is_made_from_the_schema(shown: Shown) -> None:
    # A required argument begins with the default or an example of the schema.
    async with shown("bookTable") as page:
        for name, attributes in FIELDS.items():
            for attribute, value in attributes.items():
                await expect(field(page, name)).to_have_attribute(attribute, value)
        await expect(field(page, "area").locator("option")).to_have_text(["inside", "terrace"])
        await expect(field(page, "guests")).to_have_attribute("placeholder", "[]")
        await expect(page.locator("#hint-seats")).to_have_text("Seats at the tabledefault 2")
        await field(page, "day").fill("2030-01-31")
        sent = {"restaurant": "Zum Löwen", "day": "2030-01-31", "seats": 2, "area": "inside", "quiet": False}
        assert json.loads(await run(page)) == sent
        await expect(page.locator(".run summary")).to_have_text(re.compile(r"^bookTableok[\d.]+ ms$"))


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


async def test_a_refusal_is_shown_with_its_code(shown: Shown) -> None:
    # The page was open while the service began to stop, or was given other tools.
    async with shown("listPrices", faults="Failed to load resource") as page:
        await page.route("**/tools/listPrices", lambda route: route.continue_(url=f"{route.request.url}Gone"))
        await run(page)
        await expect(page.locator(".run .problem")).to_contain_text("not-found")


async def test_an_equal_call_is_answered_from_the_cache_and_marked(shown: Shown) -> None:
    async with shown("listPrices") as page:
        await expect(page.get_by_text("This tool takes no arguments.")).to_be_visible()
        for told in (["ok"], ["ok", "cached"]):
            await run(page)
            await expect(page.locator(".run").first.locator("summary .badge")).to_have_text(told)
        await expect(page.locator(".run")).to_have_count(2)


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


async def test_a_folder_that_is_not_configured_names_the_variable(shown: Shown) -> None:
    async with shown("listPrices") as page:
        group = page.locator(".group", has_text="LOCKED_COMBINATION")
        await expect(group).to_be_hidden()
        await page.get_by_text("Not available (").click()
        await expect(group).to_have_text("LockedNot configured. Set, then restart:LOCKED_COMBINATION")
        await expect(page.get_by_role("button", name="openSafe")).to_have_count(0)


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


def printing_model(request: PlayedRequest) -> Answer:
    """Asks for the whole book, where it is offered one."""
    if not any(each["function"]["name"] == "printBook" for each in request.body.get("tools", ())):
        return streamed("No printer.")
    call = {"name": "printBook", "arguments": "{}"}
    return sse(delta(tool_calls=[{"index": 0, "id": "a", "type": "function", "function": call}]), finish("tool_calls"))


async def test_progress_is_shown_where_a_model_calls_the_tool_too(visit: Visit) -> None:
    async with (
        OpenAIPlayer(printing_model) as player,
        service(WORKSHOP, OPENAI_BASE_URL=player.base_url) as client,
        visit(client.base_url, place=CONVERSATION) as page,
    ):
        await say(page, "Print the book")
        await expect(page.locator(".turn summary")).to_have_text("printBookrunning3 of 8 · page 3")
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator(".turn summary")).to_have_text("printBookstopped")


async def test_a_tool_runs_for_the_tenant_that_the_field_names_unless_a_key_has_its_own(visit: Visit) -> None:
    place = "?view=tools&tool=callerOfMethod"
    key = {"API_KEYS": f"alice={digest_of('right')}", "ALLOW_ANONYMOUS": "true"}
    async with service("tests.access.folders", **key) as client:
        async with visit(client.base_url, place=place) as page:
            await page.get_by_label("Tenant").fill("acme")
            await run(page)
            await expect(page.locator(".run")).to_contain_text("</acme/")
        async with visit(client.base_url, place=f"{place}#key=right") as page:
            await expect(page.get_by_label("Tenant")).to_be_hidden()
            await run(page)
            await expect(page.locator(".run")).to_contain_text("<alice/alice/")
