"""A conversation and its todo list, in a real browser."""

import asyncio
import json
import re
from functools import partial
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Page, Route, expect

from tests.api.guarded import guarded_service
from tests.pages.page import CONVERSATION, Visit, hanging, played, say, streamed
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, delta, event, finish, sse
from tests.serving import service, serving
from tests.upstreams import create_sandbox
from tests.waiting import until

NAMES = "#conversation-list button"


async def test_a_conversation_survives_a_reload_and_is_deleted_on_demand(visit: Visit) -> None:
    # The model is given the earlier question; once it is deleted neither page nor service knows it.
    async with played(visit, lambda _: streamed("Noted."), CONVERSATION) as (page, client, player):
        await say(page, "My name is Wang")
        await expect(page.locator(".turn.assistant .figures")).to_have_count(1)
        await page.reload()
        await expect(page.locator(".turn.user .text")).to_have_text(["My name is Wang"])
        await expect(page.locator(".turn.assistant .text")).to_have_text(["Noted."])
        await say(page, "What is my name?")
        await expect(page.locator(".turn.assistant").last.locator(".figures")).to_be_attached()
        asked = [each["content"] for each in player.requests[-1].body["messages"] if each["role"] == "user"]
        assert asked == ["My name is Wang", "What is my name?"]
        session = await page.evaluate("sessionStorage.getItem('toolchat.session')")
        assert (await client.get(f"/chat/{session}")).status_code == 200
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.locator("#announcer")).to_have_text("The conversation was deleted.")
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


async def test_the_todo_list_is_beside_the_conversation(visit: Visit) -> None:
    # It is shown as the model writes it, read again after a reload, and gone with the conversation.
    async with played(visit, planning_model, CONVERSATION) as (page, _, _):
        await page.get_by_label("Plan first").check()
        async with page.expect_request(re.compile("/todo/chat")):
            await say(page, "Plan my trip")
        await expect(page.locator(".turn.assistant summary")).to_contain_text("todoUpdate")
        for _ in range(2):
            shown = ["doneLook", "in progress<b>Pack</b>", "to doGo"]
            await expect(page.locator("#todo-items li")).to_have_text(shown)
            await expect(page.locator("#todo-count")).to_have_text("1 of 3 done")
            await page.reload()
        await page.get_by_role("button", name="New conversation").click()
        await expect(page.locator("#todo")).to_be_hidden()


async def test_one_of_the_questions_to_begin_with_makes_a_plan(visit: Visit) -> None:
    # It is the todo route's own; on a phone the list stays closed, between the heading and the conversation.
    question = "帮我计划：查北京时间，再查东京时间"
    async with played(visit, planning_model, CONVERSATION, width=390, locale="zh-CN") as (page, _, _):
        await expect(page.locator("#plan")).not_to_be_checked()
        async with page.expect_request(re.compile("/todo/chat")) as asked:
            await page.get_by_role("button", name=question).click()
        assert json.loads((await asked.value).post_data or "")["userInput"] == question
        await expect(page.locator("#plan")).to_be_checked()
        await expect(page.locator("#todo-count")).to_contain_text(re.compile("1/3"))
        await expect(page.locator("#todo-items")).to_be_hidden()
        places = [page.locator(each).first for each in ("#conversation h1", "#todo", ".turn")]
        boxes = [box for box in [await place.bounding_box() for place in places] if box]
        assert len(boxes) == len(places)
        assert all(above["y"] + above["height"] <= below["y"] for above, below in pairwise(boxes))
        await page.locator("#todo summary").click()
        await expect(page.locator("#todo-items li")).to_have_count(3)
        await expect(page.locator("#todo-items")).to_be_visible()


async def test_a_stopped_question_is_asked_again(visit: Visit) -> None:
    # Also after a reload; the turn is kept once, and nothing is asked for that the service does not have.
    answers = iter((hanging("Once"), streamed("Hello.")))
    async with played(visit, lambda _: next(answers), CONVERSATION) as (page, _, player):
        again = page.get_by_role("button", name="Ask again")
        await say(page, "Tell me a tale")
        await expect(page.locator(".turn.assistant .text")).to_have_text("Once")
        await page.reload()
        await expect(page.locator(".turn.assistant .text")).to_have_text("Once")
        await page.get_by_role("button", name="Stop").click()
        await until(player.aborted.is_set)
        await expect(page.locator(".turn.assistant")).to_contain_text("Stopped.")
        await page.reload()
        await expect(page.locator(".turn.assistant")).to_contain_text("Not answered.")
        await again.click()
        for _ in range(2):
            await expect(page.locator(".turn.assistant .text")).to_have_text(["Hello."])
            await expect(page.locator(".turn.user .text")).to_have_text(["Tell me a tale"])
            await expect(again).to_have_count(0)
            await page.reload()


@pytest.mark.parametrize("leaving", ["about:blank", "New conversation"])
async def test_an_answer_goes_on_while_it_is_not_shown(visit: Visit, leaving: str) -> None:
    # Shown again, it goes on where it is; once it has ended it is there as a whole.
    gate = asyncio.Event()
    whole = streamed("upon a time.")
    tale = Answer([event(delta(content="Once ")), b"".join(whole.pieces)], 200, whole.headers, gate=gate)
    async with played(visit, lambda _: tale, CONVERSATION) as (page, client, _):
        await say(page, "Tell me a tale")
        session = await page.evaluate("sessionStorage.getItem('toolchat.session')")
        for _ in range(2):
            await expect(page.locator(".turn.assistant .text")).to_have_text(["Once"])
            await expect(page.get_by_role("button", name="Stop")).to_be_visible()
            await expect(page.locator(NAMES)).to_have_text(["running Tell me a tale"])
            await page.reload()
        if leaving == "about:blank":
            here = page.url
            await page.goto(leaving)
            gate.set()
            await until(partial(_is_stored, client, session))
            await page.goto(here)
        else:
            await page.get_by_role("button", name=leaving).click()
            gate.set()
            await expect(page.locator(NAMES)).to_have_text(["Tell me a tale"])
            await page.get_by_role("button", name="Tell me a tale").click()
        await expect(page.locator(".turn .text")).to_have_text(["Tell me a tale", "Once upon a time."])
        await expect(page.locator(NAMES)).to_have_text(["Tell me a tale"])


async def _is_stored(client: httpx.AsyncClient, session: str) -> bool:
    return (await client.get(f"/chat/{session}")).status_code == 200


async def test_an_answer_goes_on_after_its_connection_was_lost(visit: Visit) -> None:
    async with played(visit, lambda _: streamed("Once upon a time."), CONVERSATION) as (page, client, _):
        reply = await client.post("/chat", json={"query": "Tell me a tale"}, headers={"Prefer": "respond-async"})
        headers = {"Location": reply.headers["location"], "Content-Type": "text/event-stream"}
        lost = partial(_lost, headers)
        await page.route("**/chat/stream", lost)
        await say(page, "Tell me a tale")
        await expect(page.locator(".turn .text")).to_have_text(["Tell me a tale", "Once upon a time."])
        await expect(page.locator(".turn .figures")).to_be_attached()


async def _lost(headers: dict[str, str], route: Route) -> None:
    """Answer with the beginning of a stream."""
    await route.fulfill(headers=headers, body=": here the connection was lost\n\n")


async def test_a_call_that_waits_for_consent_outlives_a_reload(visit: Visit, tmp_path: Path) -> None:
    # It is decided after the reload, the focus goes to the message, and the turn is kept.
    async with guarded_service(tmp_path) as client, visit(client.base_url, place=CONVERSATION) as page:
        for times, decision in enumerate(("Approve", "Reject"), start=1):
            await say(page, "Light, please")
            await expect(page.locator(".waiting-call")).to_be_visible()
            await page.reload()
            await expect(page.locator(".turn.user .text")).to_have_text(["Light, please"] * times)
            await expect(page.locator(".waiting-call")).to_contain_text("switchLight")
            await page.get_by_role("button", name=decision).click()
            await expect(page.get_by_label("Message")).to_be_focused()
            await expect(page.locator(".turn.assistant").last.locator(".figures")).to_be_attached()
            await page.reload()
            await expect(page.locator(".turn.user .text")).to_have_text(["Light, please"] * times)
            await expect(page.locator(".turn.assistant .text").last).to_contain_text("The tools say:")
            await expect(page.locator(".waiting-call")).to_have_count(0)


async def test_stop_ends_the_work_behind_the_answer_and_the_next_question_can_follow(visit: Visit) -> None:
    answers = iter((hanging("Once upon a time"), streamed("Hello.")))
    async with played(visit, lambda _: next(answers), CONVERSATION) as (page, _, player):
        await say(page, "Tell me a tale")
        await expect(page.locator(".turn.assistant .text")).to_have_text("Once upon a time")
        await page.get_by_role("button", name="Stop").click()
        await until(player.aborted.is_set)
        await expect(page.locator(".turn.assistant")).to_contain_text("Stopped.")
        await say(page, "Hello")
        await expect(page.locator(".turn.assistant .text").last).to_have_text("Hello.")


async def test_a_question_waits_for_another_one_of_its_session(visit: Visit) -> None:
    # The page says so meanwhile.
    answers = iter((hanging("Once"), streamed("Hello to you.")))
    async with (
        OpenAIPlayer(lambda _: next(answers)) as player,
        service(OPENAI_BASE_URL=player.base_url, SESSION_WAIT="0.2") as client,
        visit(client.base_url, place=CONVERSATION) as page,
        client.stream("GET", "/chat/stream", params={"userInput": "Tell me a tale", "sessionId": "shared"}) as held,
    ):
        assert held.status_code == 200
        await page.evaluate("sessionStorage.setItem('toolchat.session', 'shared')")
        await say(page, "Hello")
        await expect(page.locator(".turn .status")).to_have_text(
            "Waiting. Another question of this conversation is still being answered."
        )
        await held.aclose()
        await until(player.aborted.is_set)
        await expect(page.locator(".turn.assistant .text")).to_have_text(["Hello to you."])


CALL = {"id": "a", "name": "getCityTimeFunction", "arguments": {"timeZoneId": "Europe/London"}}
FINISHED = CALL | {"result": '{"time": "12:00"}', "outcome": "ok", "duration_ms": 3.2, "round": 1, "cached": True}
ENDED: dict[str, object] = {
    "tool_calls": [FINISHED],
    "model": {"provider": "offline", "name": "offline"},
    "usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
    "duration_ms": 25,
}
ASKED: list[dict[str, object]] = [
    {"role": "user", "text": "Time?"},
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "responses": [{"id": "a", "name": "getCityTimeFunction", "text": '{"time": "12:00"}'}]},
    {"role": "assistant", "text": "Noon."},
]


CARD, TOTAL = "getCityTimeFunctionokcached3.2 ms", ["Total25 msTokens7 3 in, 4 outModeloffline"]
STORED: list[tuple[list[dict[str, object]], str, list[str]]] = [
    ([ASKED[0], ASKED[3] | ENDED], CARD, TOTAL),
    ([*ASKED[:3], ASKED[3] | ENDED], CARD, TOTAL),  # with its tool rounds
]


async def test_cards_and_timings_survive_a_reload(visit: Visit) -> None:
    # Each call once, whether or not the messages between question and answer are stored.
    async with played(visit, lambda _: streamed("Noon."), CONVERSATION) as (page, _, _):
        await say(page, "Time?")
        await expect(page.locator(".turn .figures")).to_be_attached()
        for messages, card, figures in STORED:
            document = {"session_id": "x", "turns": 1, "messages": messages}
            await page.unroute_all()
            await page.route(re.compile("/chat/[0-9a-f]{32}$"), partial(_fulfill, document))
            await page.reload()
            await expect(page.locator(".turn.assistant .text")).to_have_text(["Noon."])
            await expect(page.locator(".turn summary")).to_have_text([card])
            await page.locator(".turn summary").click()
            await expect(page.locator(".turn pre")).to_have_text(
                ['{ "timeZoneId": "Europe/London" }', '{\n  "time": "12:00"\n}'], use_inner_text=True
            )
            await expect(page.locator(".turn .figures")).to_have_text(figures)


async def _fulfill(document: dict[str, object], route: Route) -> None:
    await route.fulfill(json=document)


async def tokens_and_model(page: Page) -> list[str]:
    """A reload does not tell the rounds, and the time was read a moment earlier."""
    await page.evaluate("document.documentElement.classList.add('technical')")
    shown = await page.locator(".turn .figures").all_inner_texts()
    return [re.sub(r"(Rounds|Total)\s*\S+( ms)?\s*", "", each) for each in shown]


async def test_a_reload_shows_the_cards_and_the_figures_that_stood_there(visit: Visit) -> None:
    async with (
        serving(create_sandbox()) as sandbox,
        service(SANDBOX_URL=sandbox) as client,
        visit(client.base_url, place=CONVERSATION) as page,
    ):
        await say(page, "What is the weather in Oslo?")
        await expect(page.locator(".turn .figures")).to_be_attached()
        await say(page, "And what time is it in Oslo?")
        await expect(page.locator(".turn .figures")).to_have_count(2)
        cards = await page.locator(".turn summary").all_inner_texts()
        texts = await page.locator(".turn .text").all_inner_texts()
        before = await tokens_and_model(page)
        assert len(cards) == 2
        await page.reload()
        await expect(page.locator(".turn summary")).to_have_count(2)
        assert await page.locator(".turn summary").all_inner_texts() == cards
        assert await page.locator(".turn .text").all_inner_texts() == texts
        assert "Sandbox data, not real" in texts[1]
        assert await tokens_and_model(page) == before
