"""The same question to no tool, a function tool and a method tool, in a real browser."""

import re
from pathlib import Path

from playwright.async_api import expect
from starlette.types import Message, Receive, Scope, Send

from tests.api.guarded import guarded_service
from tests.application import create_app, read_configuration
from tests.command_line import started
from tests.pages.page import LONDON, Visit, hanging, pane, played
from tests.players.openai_player import (
    Answer as ModelAnswer,
    OpenAIPlayer,
    PlayedRequest,
    delta,
    sensible_model,
    sse,
    whole,
)
from tests.serving import serving
from tests.waiting import until


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


async def test_only_modules_with_both_kinds_of_tools_are_compared(visit: Visit, tmp_path: Path) -> None:
    async with guarded_service(tmp_path) as client, visit(client.base_url) as page:
        await expect(page.locator("#folders label")).to_have_text(["Time"])


async def test_sandbox_data_is_marked(visit: Visit) -> None:
    with started("demo", cwd=Path.cwd()) as (_, url):
        async with visit(url) as page:
            await page.get_by_role("radio", name="Weather").check()
            await page.get_by_role("button", name="Ask").click()
            for variant in ("Function tool", "Method tool"):
                await expect(pane(page, variant).locator(".figures")).to_be_attached()
                await expect(pane(page, variant).get_by_text("Sandbox data", exact=True)).to_be_visible()
            await expect(pane(page, "No tool").locator(".figures")).to_be_attached()
            await expect(pane(page, "No tool").get_by_text("Sandbox data", exact=True)).to_be_hidden()


async def test_stop_ends_the_work_behind_one_answer(visit: Visit) -> None:
    # The model's server sees its client leave; what came before stays, and the other panes go on.
    async with played(visit, lambda _: hanging("Once upon a time")) as (page, _, player):
        await page.get_by_role("button", name="Ask").click()
        for variant in ("No tool", "Function tool", "Method tool"):
            await expect(pane(page, variant).locator(".text")).to_have_text("Once upon a time")
        assert not player.aborted.is_set()
        await pane(page, "No tool").get_by_role("button", name="Stop").click()
        await until(player.aborted.is_set)
        await expect(pane(page, "No tool")).to_contain_text(re.compile("Once upon a time.*Stopped.", re.DOTALL))
        for variant in ("Function tool", "Method tool"):
            await expect(pane(page, variant).get_by_role("button", name="Stop")).to_be_visible()


async def test_a_call_does_not_go_on_once_its_answer_has_ended(visit: Visit) -> None:
    # It is shown as stopped after Stop, and when the service dies.
    model = sensible_model({"city": "Paris", "days": 1})
    async with OpenAIPlayer(lambda asked: model(asked) if asked.body else hanging("")) as player:
        upstreams = {"OPENAI_BASE_URL": player.base_url, "WEATHER_BASE_URL": player.base_url, "WEATHER_API_KEY": "k"}
        with started(cwd=Path.cwd(), **upstreams) as (process, url):
            async with visit(url, faults="Failed to load resource") as page:
                await page.get_by_role("radio", name="Weather").check()
                await page.get_by_role("button", name="Ask").click()
                for variant in ("Function tool", "Method tool"):
                    await expect(pane(page, variant).locator("summary .badge")).to_have_text("running")
                await pane(page, "Function tool").get_by_role("button", name="Stop").click()
                await expect(pane(page, "Function tool").locator("summary .badge")).to_have_text("stopped")
                await expect(pane(page, "Method tool").locator("summary .badge")).to_have_text("running")
                process.kill()
                await expect(pane(page, "Method tool").locator("summary .badge")).to_have_text("stopped")


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
