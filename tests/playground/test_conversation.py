"""A conversation and its todo list, in a real browser."""

import json
import re

from playwright.async_api import expect

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, delta, finish, sse
from tests.playground.page import CONVERSATION, Visit, hanging, played, say, streamed
from tests.serving import service


async def test_a_conversation_survives_a_reload_and_is_forgotten_on_demand(visit: Visit) -> None:
    """The model is given the earlier question; after New conversation neither page nor service knows it."""
    async with played(visit, lambda _: streamed("Noted."), CONVERSATION) as (page, client, player):
        await say(page, "My name is Wang")
        await expect(page.locator(".turn.assistant .figures")).to_have_count(1)
        await page.reload()
        await expect(page.locator(".turn.user .text")).to_have_text(["My name is Wang"])
        await expect(page.locator(".turn.assistant .text")).to_have_text(["Noted."])
        await say(page, "What is my name?")
        await expect(page.locator(".turn.assistant .figures")).to_have_count(1)
        asked = [each["content"] for each in player.requests[-1].body["messages"] if each["role"] == "user"]
        assert asked == ["My name is Wang", "What is my name?"]
        session = await page.evaluate("sessionStorage.getItem('toolchat.session')")
        assert (await client.get(f"/chat/{session}")).status_code == 200
        await page.get_by_role("button", name="New conversation").click()
        await expect(page.locator("#announcer")).to_have_text("The conversation was forgotten.")
        assert (await client.get(f"/chat/{session}")).status_code == 404
        await page.reload()
        await expect(page.get_by_text("earlier questions are remembered")).to_be_visible()
        await expect(page.locator(".turn")).to_have_count(0)


def planning_model(request: PlayedRequest) -> Answer:
    """Writes a todo list, then answers."""
    if request.body["messages"][-1]["role"] == "tool":
        return streamed("Planned.")
    items = [{"text": "Look", "status": "completed"}, {"text": "<b>Pack</b>", "status": "in_progress"}, {"text": "Go"}]
    call = {"name": "todoUpdate", "arguments": json.dumps({"items": items})}
    return sse(delta(tool_calls=[{"index": 0, "id": "a", "type": "function", "function": call}]), finish("tool_calls"))


async def test_the_todo_list_stands_beside_the_conversation(visit: Visit) -> None:
    """It is shown as the model writes it, read again after a reload, and gone with the conversation."""
    async with played(visit, planning_model, CONVERSATION) as (page, _, _):
        await page.get_by_label("Plan with a todo list").check()
        async with page.expect_request(re.compile("/todo/chat")):
            await say(page, "Plan my trip")
        await expect(page.locator(".turn.assistant summary")).to_contain_text("todoUpdate")
        for _ in range(2):
            shown = ["doneLook", "in progress<b>Pack</b>", "to doGo"]
            await expect(page.locator("#todo-items li")).to_have_text(shown)
            await expect(page.locator("#todo-count")).to_have_text("1 of 3 done")
            await page.reload()
        await page.get_by_role("button", name="New conversation").click()
        await expect(page.locator("#todo-count")).to_have_text("Nothing planned yet.")


async def test_stop_ends_the_work_behind_the_answer_and_the_next_question_can_follow(visit: Visit) -> None:
    answers = iter((hanging("Once upon a time"), streamed("Hello.")))
    async with played(visit, lambda _: next(answers), CONVERSATION) as (page, _, player):
        await say(page, "Tell me a tale")
        await expect(page.locator(".turn.assistant .text")).to_have_text("Once upon a time")
        await page.get_by_role("button", name="Stop").click()
        await player.aborted.wait()
        await expect(page.locator(".turn.assistant")).to_contain_text("Stopped.")
        await say(page, "Hello")
        await expect(page.locator(".turn.assistant .text").last).to_have_text("Hello.")


async def test_a_busy_session_says_what_to_do(visit: Visit) -> None:
    async with (
        OpenAIPlayer(lambda _: hanging("Once")) as player,
        service(OPENAI_BASE_URL=player.base_url, SESSION_WAIT="0") as client,
        visit(client.base_url, place=CONVERSATION, faults="409 (Conflict)") as page,
        client.stream("GET", "/chat/stream", params={"userInput": "Tell me a tale", "sessionId": "shared"}) as held,
    ):
        assert held.status_code == 200
        await page.evaluate("sessionStorage.setItem('toolchat.session', 'shared')")
        await say(page, "Hello")
        problem = page.locator(".turn .problem")
        await expect(problem).to_contain_text("session-busy")
        await expect(problem).to_contain_text("start a new conversation")
        await expect(problem).to_contain_text(re.compile(r"Request [0-9a-f]{16}"))
