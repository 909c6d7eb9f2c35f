"""Answers that outlive the page, in a real browser: reloads, other tabs, lost connections, restarts."""

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.command_line import started
from tests.players.openai_player import OpenAIPlayer, whole
from tests.service.pages.page import CONVERSATION, Visit, hanging, played, say, streamed
from tests.service.server.cutting_proxy import CuttingProxy
from tests.serving import service
from tests.waiting import PATIENCE, until
from toolchat.service.access.keys import digest_of

TALE = "Tell me a tale"
NAMES = "#conversation-list button"
QUESTIONS, ANSWERS = ".turn.user .text", ".turn.assistant .text"
STOPPED = ".turn.assistant .after"
REMEMBER = """([question, running]) => {
    const asked = { id: "old", name: question, at: 1, pending: { question, plan: false, replaced: 0, running } };
    localStorage.setItem("toolchat.conversations", JSON.stringify([asked]));
    sessionStorage.setItem("toolchat.session", "old");
}"""


async def begin(page: Page) -> None:
    """Ask for a tale that has a beginning only."""
    await say(page, TALE)
    await expect(page.locator(ANSWERS)).to_have_text("Once")


async def test_another_browser_with_the_same_key_shows_and_stops_it(visit: Visit) -> None:
    answers = iter((streamed("Hello."), hanging("Once")))
    place = f"{CONVERSATION}#key=secret"
    async with (
        OpenAIPlayer(lambda _: next(answers)) as player,
        service(OPENAI_BASE_URL=player.base_url, API_KEYS=f"alice={digest_of('secret')}") as client,
        visit(client.base_url, place=place) as page,
    ):
        for question, answer in (("Hi", "Hello."), (TALE, "Once")):
            await say(page, question)
            await expect(page.locator(ANSWERS).last).to_have_text(answer)
        async with visit(client.base_url, place=place, color_scheme="dark") as other:
            await other.get_by_role("button", name="running Hi").click()
            await expect(other.locator(QUESTIONS)).to_have_text(["Hi", TALE])
            await expect(other.locator(ANSWERS)).to_have_text(["Hello.", "Once"])
            await other.get_by_role("button", name="Stop").click()
            await expect(page.locator(STOPPED).last).to_have_text("Stopped.")
        await until(player.aborted.is_set)


async def test_a_lost_connection_is_taken_up_behind_the_last_event(visit: Visit) -> None:
    # Nothing is shown twice. After some tries the user decides.
    client, player = visit.stage
    player.follow(lambda _: hanging("Once"))
    async with (
        CuttingProxy("127.0.0.1", client.base_url.port or 0) as proxy,
        visit(proxy.base_url, place=CONVERSATION, faults="ERR_", color_scheme="dark") as page,
    ):
        await begin(page)
        async with page.expect_request("**/questions/*") as asked:
            proxy.cut()
        assert re.search(r"\.1\.\d+$", (await (await asked.value).all_headers())["last-event-id"])
        await expect(page.locator(ANSWERS)).to_have_text("Once")
        await page.clock.install()
        await page.context.set_offline(True)
        proxy.cut()
        await expect(page.locator(".status")).to_have_text("Connecting again…")
        async with asyncio.timeout(PATIENCE):
            while not await page.locator(".problem").count():
                await page.clock.fast_forward(9000)
        await expect(page.locator(".problem")).to_contain_text("The connection to the service was lost.")
        await page.context.set_offline(False)
        await page.get_by_role("button", name="Ask again").click()
        await expect(page.locator(ANSWERS)).to_have_text("Once")
        assert len(player.requests) == 1
        await page.context.set_offline(True)
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator(STOPPED)).to_contain_text("Stopped.")
        await expect(page.locator(".problem")).to_contain_text("The connection to the service was lost.")


async def test_an_answer_is_there_after_the_record_of_its_question_has_expired(visit: Visit) -> None:
    async with played(visit, lambda _: streamed("The end."), CONVERSATION, faults="404 (Not Found)") as (
        page,
        client,
        _,
    ):
        body, headers = {"query": TALE, "sessionId": "old"}, {"Prefer": "respond-async"}
        path = (await client.post("/chat", json=body, headers=headers)).headers["location"]
        await client.get(path, headers={"Accept": "text/event-stream"})
        await client.delete(path)
        await page.evaluate(REMEMBER, [TALE, str(client.base_url.join(path))])
        await page.reload()
        await expect(page.locator(QUESTIONS)).to_have_text([TALE])
        await expect(page.locator(ANSWERS)).to_have_text(["The end."])


async def test_a_question_that_failed_while_nobody_looked_on_says_why(visit: Visit) -> None:
    async with played(visit, lambda _: whole({"error": {"message": "no"}}, 401), CONVERSATION) as (page, client, _):
        body, headers = {"query": TALE, "sessionId": "old"}, {"Prefer": "respond-async"}
        path = (await client.post("/chat", json=body, headers=headers)).headers["location"]
        await client.get(path, headers={"Accept": "text/event-stream"})
        await page.evaluate(REMEMBER, [TALE, str(client.base_url.join(path))])
        await page.reload()
        await expect(page.locator(".turn .problem")).to_contain_text("provider-auth")
        await expect(page.get_by_role("button", name="Ask again")).to_be_visible()


@pytest.mark.slow
async def test_an_answer_goes_on_when_the_service_is_killed_and_started_again(visit: Visit, tmp_path: Path) -> None:
    answers = iter((hanging("Once"), streamed("The end.")))
    async with OpenAIPlayer(lambda _: next(answers)) as player:
        variables = {"STATE_URL": f"sqlite:///{tmp_path}/state.db", "OPENAI_BASE_URL": player.base_url}
        with started(cwd=tmp_path, **variables) as (process, url):
            async with visit(url, place=CONVERSATION, faults="ERR_") as page:
                await begin(page)
                process.kill()
                process.wait()
                await expect(page.locator(".status")).to_have_text("Connecting again…")
                with started(cwd=tmp_path, **variables | {"SERVER_PORT": url.rpartition(":")[2].strip("/")}):
                    await expect(page.locator(ANSWERS)).to_have_text(["The end."])
                    await page.reload()
                    await expect(page.locator(ANSWERS)).to_have_text(["The end."])
