"""A conversation, its list and its todo list, in a real browser."""

import asyncio
import json
import re
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.application import create_sandbox
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, delta, event, finish, sensible_model, sse
from tests.service.api.guarded import guarded_service
from tests.service.pages.page import CONVERSATION, Visit, hanging, played, say, streamed
from tests.serving import service, serving
from tests.waiting import until
from toolchat.service.access.keys import digest_of

QUESTIONS, ANSWERS = ".turn.user .text", ".turn.assistant .text"


async def ask(page: Page, question: str, answer: str) -> None:
    await say(page, question)
    await expect(page.locator(ANSWERS).last).to_have_text(answer)
    await expect(page.locator("#send")).to_be_visible()


async def test_a_question_is_edited_and_another_answer_takes_the_place_of_the_last(visit: Visit) -> None:
    # The service forgets what was replaced, also where the page is loaded again in between.
    numbers = count(1)

    def model(request: PlayedRequest) -> Answer:
        return streamed(f"{next(numbers)}: {request.body['messages'][-1]['content']}")

    async with played(visit, model, CONVERSATION) as (page, client, player):
        for number, question in enumerate(("One", "Two", "Three"), 1):
            await ask(page, question, f"{number}: {question}")
        await page.get_by_role("button", name="Another answer").click()
        await expect(page.locator(ANSWERS)).to_have_text(["1: One", "2: Two", "4: Three"])
        await page.reload()
        await page.locator(".turn.user").nth(1).get_by_role("button", name="Edit").click()
        await expect(page.get_by_label("Message")).to_have_value("Two")
        await expect(page.locator(".turn.replaced")).to_have_count(4)
        await page.keyboard.press("Escape")
        await expect(page.locator(".turn.replaced")).to_have_count(0)
        await page.locator(".turn.user").nth(1).get_by_role("button", name="Edit").click()
        await ask(page, "Deux", "5: Deux")
        await expect(page.locator(QUESTIONS)).to_have_text(["One", "Deux"])
        sent = [each["content"] for each in player.requests[-1].body["messages"] if each["role"] == "user"]
        assert sent == ["One", "Deux"]
        session = await page.evaluate("sessionStorage.getItem('toolchat.session')")
        assert (await client.get(f"/chat/{session}")).json()["turns"] == 2


async def test_the_tools_that_are_offered_are_chosen(visit: Visit) -> None:
    async with (
        OpenAIPlayer(lambda _: streamed("Hello.")) as player,
        service(OPENAI_BASE_URL=player.base_url, WEATHER_PROVIDER="open_meteo") as client,
        visit(client.base_url, place=CONVERSATION) as page,
    ):
        await ask(page, "All", "Hello.")
        everything = {each["function"]["name"] for each in player.requests[-1].body["tools"]}
        await page.get_by_role("button", name="Tools: all").click()
        await page.get_by_label("getWeatherFunction").uncheck()
        await page.keyboard.press("Escape")
        await expect(page.locator("#tools-count")).to_have_text(f"{len(everything) - 1} of {len(everything)}")
        await ask(page, "Fewer", "Hello.")
        offered = {each["function"]["name"] for each in player.requests[-1].body["tools"]}
        assert (everything - offered, offered) == ({"getWeatherFunction"}, {"getCityTimeFunction"})


async def test_a_long_question_is_sent_whole_and_a_longer_one_is_not_cut(visit: Visit) -> None:
    async with played(visit, lambda _: streamed("Read."), CONVERSATION) as (page, _, player):
        await say(page, "字" * 32_001)
        await expect(page.locator("#message-limit.over")).to_have_text("32,001 of 32,000 characters")
        assert player.requests == []
        await expect(page.get_by_label("Message")).to_have_value("字" * 32_001)
        await ask(page, "字" * 32_000, "Read.")
        assert player.requests[-1].body["messages"][-1]["content"] == "字" * 32_000


async def test_theme_and_technical_figures_are_chosen_once(visit: Visit) -> None:
    async with played(visit, lambda _: streamed("Hello."), CONVERSATION) as (page, _, _):
        await ask(page, "Hello", "Hello.")
        await expect(page.locator(".turn .figures")).to_be_hidden()
        await page.get_by_role("button", name="Settings").click()
        await page.get_by_label("Theme").select_option("dark")
        await page.get_by_label("Show technical figures").check()
        for _ in range(2):
            await expect(page.locator(".turn .figures")).to_be_visible()
            assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 22, 21)"
            await page.reload()


async def test_another_browser_with_the_same_key_lists_the_conversations(visit: Visit) -> None:
    async with (
        service(API_KEYS=f"alice={digest_of('key-of-alice')}") as client,
        visit(client.base_url, place=f"{CONVERSATION}#key=key-of-alice") as page,
    ):
        for city in ("Oslo", "Rome", "Lima", "Baku", "Bern"):
            question = {"query": f"What time is it in {city}?", "sessionId": city}
            await client.post("/chat", json=question, headers={"Authorization": "Bearer key-of-alice"})
        await page.reload()
        names = page.locator("#conversation-list button")
        await expect(names).to_have_text(
            [f"What time is it in {city}?" for city in ("Bern", "Baku", "Lima", "Rome", "Oslo")]
        )
        await page.get_by_label("Search conversations").fill("rome")
        await expect(names).to_have_text(["What time is it in Rome?"])
        await names.click()
        await expect(page.locator(ANSWERS)).to_contain_text("Europe/Rome")
        await page.get_by_role("searchbox").fill("nowhere")
        await expect(page.get_by_text("No conversation has this in its name.")).to_be_visible()


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
        await expect(page.get_by_text("remembers your earlier questions")).to_be_visible()
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
        assert len(cards) == 2
        await page.reload()
        await expect(page.locator(".turn summary")).to_have_count(2)
        assert await page.locator(".turn summary").all_inner_texts() == cards
        assert await page.locator(".turn .text").all_inner_texts() == texts
        assert "Sandbox data, not real" in texts[1]


def echo(request: PlayedRequest) -> Answer:
    return streamed(f"You asked: {request.body['messages'][-1]['content']}")


def document_in(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


async def ask_echo(page: Page, question: str) -> None:
    await say(page, question)
    await expect(page.locator(ANSWERS).last).to_have_text(f"You asked: {question}")


async def test_conversations_are_listed_and_opened_again(visit: Visit) -> None:
    # The one that was asked last stands first, each keeps its own turns, and the list outlives the tab.
    async with played(visit, echo, CONVERSATION) as (page, _, _):
        await expect(page.get_by_text("What you ask is listed here")).to_be_visible()
        await ask_echo(page, "One")
        await page.get_by_role("button", name="New conversation").click()
        await expect(page.get_by_text("What would you like to know?")).to_be_visible()
        await expect(page.get_by_label("Message")).to_be_focused()
        await ask_echo(page, "Two")
        await expect(page.locator(NAMES)).to_have_text(["Two", "One"])
        await page.get_by_role("button", name="One", exact=True).click()
        await expect(page.locator(".turn .text")).to_have_text(["One", "You asked: One"])
        await expect(page.get_by_role("heading", name="One", exact=True, level=1)).to_be_visible()
        await ask_echo(page, "Three")
        await expect(page.locator(NAMES)).to_have_text(["One", "Two"])
        other = await page.context.new_page()
        await other.goto(page.url)
        await other.get_by_role("button", name="Two", exact=True).click()
        await expect(other.locator(".turn .text")).to_have_text(["Two", "You asked: Two"])


async def test_a_conversation_is_renamed_with_the_keyboard(visit: Visit) -> None:
    # Escape leaves the name as it was, an empty one is none, and the new one outlives a reload.
    async with played(visit, echo, CONVERSATION) as (page, _, _):
        await ask_echo(page, "One")
        for typed, key, name in (("No", "Escape", "One"), ("  Trip to <b>Oslo</b> ", "Enter", "Trip to <b>Oslo</b>")):
            await page.get_by_role("button", name="Rename").press("Enter")
            await expect(page.locator("#rename-field")).to_be_focused()
            await page.keyboard.type(typed)
            await page.keyboard.press(key)
            await expect(page.get_by_role("button", name="Rename")).to_be_focused()
            await expect(page.locator("#conversation-title")).to_have_text(name)
            await expect(page.locator(NAMES)).to_have_text([name])
        await page.reload()
        await expect(page.locator("#conversation-title")).to_have_text("Trip to <b>Oslo</b>")


async def test_a_conversation_is_exported_as_the_service_returns_it(visit: Visit) -> None:
    async with played(visit, echo, CONVERSATION) as (page, client, _):
        await ask_echo(page, "One")
        async with page.expect_download() as downloaded:
            await page.get_by_role("button", name="Export").click()
        file = await downloaded.value
        session = await page.evaluate("sessionStorage.getItem('toolchat.session')")
        assert file.suggested_filename == f"conversation-{session}.json"
        assert document_in(await file.path()) == (await client.get(f"/chat/{session}")).json()
        await expect(page.locator("#announcer")).to_have_text("The conversation was exported.")


async def test_nothing_is_deleted_unless_it_is_confirmed(visit: Visit) -> None:
    async with played(visit, echo, CONVERSATION) as (page, _, _):
        for question in ("One", "Two"):
            await page.get_by_role("button", name="New conversation").click()
            await ask_echo(page, question)
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.locator(NAMES)).to_have_text(["Two", "One"])
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.locator(NAMES)).to_have_text(["One"])
        await expect(page.locator(".turn")).to_have_count(0)
        await expect(page.get_by_label("Message")).to_be_focused()


async def test_invalid_browser_storage_does_no_harm(visit: Visit) -> None:
    # Another version of the page, or a person, may have written it.
    async with played(visit, sensible_model(), CONVERSATION) as (page, _, _):
        for kept in ("no { json", '"text"', '[1, null, {"id": 7}, {"id": "a"}]'):
            await page.evaluate("(kept) => localStorage.setItem('toolchat.conversations', kept)", kept)
            await page.reload()
            await expect(page.locator("#send")).to_be_enabled()
        await expect(page.locator(NAMES)).to_have_count(1)
