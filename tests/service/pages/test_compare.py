"""The same question to no tool, a function tool and a method tool, in a real browser."""

import re
from pathlib import Path

from playwright.async_api import expect
from starlette.types import Message, Receive, Scope, Send

from tests.application import create_app, read_configuration
from tests.command_line import started
from tests.players.openai_player import (
    Answer as ModelAnswer,
    OpenAIPlayer,
    PlayedRequest,
    delta,
    sse,
    whole,
)
from tests.service.pages.page import LONDON, Visit, hanging, pane
from tests.serving import serving


async def test_the_time_question_is_answered_in_three_ways(visit: Visit) -> None:
    # Without a tool the model cannot know; with either tool the answer, the call and its figures are there.
    figures = re.compile(r"Total\s*[\d.]+ ms.*Tokens\s*\d+.*Rounds\s*2.*offline")
    async with visit() as page:
        await expect(page.get_by_label("Question", exact=True)).to_have_value(LONDON)
        await page.get_by_role("button", name="Ask").click()
        await expect(pane(page, "No tool")).to_contain_text("no tool")
        await expect(pane(page, "No tool").locator(".call")).to_have_count(0)
        for variant, tool in (("Function tool", "getCityTimeFunction"), ("Method tool", "getCityTimeMethod")):
            shown = pane(page, variant)
            await expect(shown.locator(".text")).to_contain_text("Europe/London")
            await expect(shown.locator("summary")).to_contain_text(re.compile(rf"{tool}\s*ok\s*[\d.]+ ms"))
            await expect(shown.locator("pre").first).to_have_text('{ "timeZoneId": "Europe/London" }')
            await expect(shown.locator("pre").last).to_contain_text("The current time zone is Europe/London")
            await expect(shown.locator(".figures")).to_contain_text(figures)
        await expect(page.locator("#announcer")).to_contain_text("London")


def failing_model(request: PlayedRequest) -> ModelAnswer:
    question = request.body["messages"][-1]["content"]
    if question == "hang":
        return hanging("Once")
    if question == "cut":
        return sse(delta(content="Half an ans"), done=False, ending="cut")
    return whole({"error": {"message": "no", "code": "invalid_api_key"}}, 401)


async def test_an_error_is_shown_with_its_code_and_its_request(visit: Visit) -> None:
    # Refused before the first byte, cut off after it, and a service that dies in the middle.
    async with OpenAIPlayer(failing_model) as player:
        with started(cwd=Path.cwd(), OPENAI_BASE_URL=player.base_url) as (process, url):
            async with visit(url, faults="Failed to load resource") as page:
                shown, problem = pane(page, "No tool"), pane(page, "No tool").locator(".problem")
                for question, text, code in (
                    ("refuse", "", "provider-auth"),
                    ("cut", "Half an ans", "upstream-invalid"),
                    ("hang", "Once", "connection-lost"),
                ):
                    await page.get_by_label("Question", exact=True).fill(question)
                    await page.get_by_role("button", name="Ask").click()
                    await expect(shown.locator(".text")).to_have_text(text)
                    if question == "hang":
                        process.kill()
                    await expect(problem).to_contain_text(code)
                    await expect(problem).to_contain_text(re.compile(r"Request [0-9a-f]{16}"))


async def test_an_answer_that_ends_too_soon_is_not_taken_for_a_whole_one(visit: Visit) -> None:
    # Something on the way closes the stream in order, but before its last event.
    app = create_app(read_configuration())

    async def cutting(scope: Scope, receive: Receive, send: Send) -> None:
        over = False

        async def send_until_text(message: Message) -> None:
            nonlocal over
            if over:
                return
            over = b"event: delta" in message.get("body", b"")
            await send({**message, "more_body": False} if over else message)

        await app(scope, receive, send_until_text if scope.get("path", "").startswith("/time/") else send)

    async with serving(cutting) as url, visit(url) as page:
        await page.get_by_role("button", name="Ask").click()
        await expect(pane(page, "No tool").locator(".text")).not_to_be_empty()
        await expect(pane(page, "No tool").locator(".problem")).to_contain_text("connection-lost")
