"""Deciding about a call that waits, in a real browser: its arguments, and the reason why not."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.approvals.desk_service import desk_service
from tests.pages.page import CONVERSATION, Visit, hanging, say, streamed
from tests.pages.workshop.printer import PRINTED
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, delta, finish, sse
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
        service("tests.pages.workshop", OPENAI_BASE_URL=player.base_url) as client,
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
        service("tests.pages.workshop", OPENAI_BASE_URL=player.base_url) as client,
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


async def test_a_decision_that_a_busy_session_refuses_is_sent_again(visit: Visit) -> None:
    script = model('{"text": "A page"}')
    async with (
        OpenAIPlayer(
            lambda asked: hanging("Once") if "tale" in str(asked.body["messages"]) else script(asked)
        ) as player,
        service("tests.pages.workshop", OPENAI_BASE_URL=player.base_url, SESSION_WAIT="0.2") as client,
        visit(client.base_url, place=CONVERSATION, faults="409") as page,
    ):
        await say(page, "Print")
        approve = page.get_by_role("button", name="Approve")
        await expect(approve).to_be_visible()
        other = {"userInput": "A tale", "sessionId": await page.evaluate("sessionStorage.getItem('toolchat.session')")}
        async with client.stream("GET", "/chat/stream", params=other):
            await approve.click()
            await expect(page.locator(".turn .problem")).to_contain_text("session-busy")
        await page.reload()
        await approve.click()
        await expect(page.locator(".turn.assistant .text")).to_contain_text("Told: printed")


async def test_long_numbers_are_shown_and_edited_as_they_are(visit: Visit) -> None:
    script = model('{"text": "A page", "copies": 12345678901234567890}')
    async with (
        OpenAIPlayer(script) as player,
        service("tests.pages.workshop", OPENAI_BASE_URL=player.base_url) as client,
        visit(client.base_url, place=CONVERSATION, faults="422") as page,
    ):
        await say(page, "Print")
        await expect(page.locator(".waiting-call pre")).to_contain_text("12345678901234567890")
        await page.get_by_role("button", name="Edit").click()
        async with page.expect_request("**/approvals/*") as asked:
            await page.get_by_role("button", name="Approve").click()
        assert '"copies":12345678901234567890' in ((await asked.value).post_data or "")


@pytest.mark.parametrize("variables", [{}, {"API_KEYS": f"alice={digest_of('secret')}"}], ids=["no keys", "keys"])
async def test_an_answer_to_another_client_is_decided_by_the_link_that_it_names(
    variables: dict[str, str], visit: Visit
) -> None:
    async with (
        OpenAIPlayer(model('{"text": "A page"}')) as player,
        service("tests.pages.workshop", OPENAI_BASE_URL=player.base_url, **variables) as client,
    ):
        asked = {"model": "toolchat", "stream": True, "messages": [{"role": "user", "content": "Print"}]}
        answer = await client.post("/v1/chat/completions", json=asked, headers={"X-API-Key": "secret"})
        (place,) = re.findall(rf"{client.base_url}/playground/(\?approval=[\w-]+#token=[\w-]+)", answer.text)
        before = len(PRINTED)
        async with visit(client.base_url, place=place, ready="#approval:not([hidden])") as page:
            assert "token" not in page.url
            waiting = page.get_by_role("region", name="Approval of another answer")
            assert PRINTED[before:] == []
            await waiting.get_by_role("button", name="Approve").click()
            await expect(waiting).to_contain_text("Told: printed")
            await expect(page.locator("#key-dialog[open]")).to_have_count(0)
        assert PRINTED[before:] == ["A page"]
        async with visit(client.base_url, place=place, ready="#approval:not([hidden])") as page:
            told = page.get_by_role("region", name="Approval of another answer")
            await expect(told).to_contain_text("Approved by")
            await expect(told.get_by_role("button", name="Approve")).to_have_count(0)


async def test_a_page_lets_a_manager_decide_and_tells_who_asked_that_it_does(visit: Visit, tmp_path: Path) -> None:
    async with desk_service(tmp_path) as desk:
        place = f"?approval={(await desk.ask())['id']}"
        shown = {"place": f"{place}#key=asker", "ready": "#approval:not([hidden])"}
        async with visit(desk.client.base_url, **shown) as page:
            waiting = page.get_by_role("region", name="Approval of another answer")
            await expect(waiting).to_contain_text("A person with the role manager decides")
            await expect(waiting.get_by_role("button", name="Approve")).to_have_count(0)
        async with visit(desk.client.base_url, **shown | {"place": f"{place}#key=lead"}) as page:
            waiting = page.get_by_role("region", name="Approval of another answer")
            await expect(waiting).to_contain_text("Asked by asker, for the tenant acme")
            await waiting.get_by_role("button", name="Approve").click()
            await expect(waiting).to_contain_text("50 refunded by asker of acme")
        async with visit(desk.client.base_url, **shown) as page:
            await expect(page.locator("#approval")).to_contain_text("Done: 50 refunded by asker of acme")


async def test_another_browser_with_the_same_key_shows_a_question_that_waits_and_approves_it(visit: Visit) -> None:
    # It is the session's first question: the service stores no turn of it yet.
    place = f"{CONVERSATION}#key=secret"
    async with (
        OpenAIPlayer(model('{"text": "A page"}')) as player,
        service(
            "tests.pages.workshop", OPENAI_BASE_URL=player.base_url, API_KEYS=f"alice={digest_of('secret')}"
        ) as client,
        visit(client.base_url, place=place) as page,
    ):
        await say(page, "Print")
        await expect(page.locator("#conversation-list .badge")).to_have_text("needs approval")
        async with visit(client.base_url, place=place, color_scheme="dark") as other:
            await other.get_by_role("button", name="needs approval Print").click()
            await expect(other.locator(".turn.user .text")).to_have_text("Print")
            assert await decided(other) == {"c0": {"approved": True}}
            await expect(other.locator(".turn.assistant .text")).to_contain_text("Told: printed")
            await expect(other.locator("#conversation-list .badge")).to_have_count(0)
