"""What can be done with a question and its answer, and with the page as a whole, in a real browser."""

from itertools import count

from playwright.async_api import Page, expect

from tests.pages.page import CONVERSATION, Visit, hanging, played, say, streamed
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest
from tests.serving import service
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


async def test_text_is_copied_as_it_was_written(visit: Visit) -> None:
    options = {"permissions": ["clipboard-read", "clipboard-write"]}
    async with played(visit, lambda _: streamed("**Bold**"), CONVERSATION, **options) as (page, _, _):
        await ask(page, "Hello", "Bold")
        for turn, text in ((".turn.user", "Hello"), (".turn.assistant", "**Bold**")):
            await page.locator(turn).get_by_role("button", name="Copy").click()
            await expect(page.locator(turn).get_by_role("button", name="Copied")).to_be_visible()
            assert await page.evaluate("navigator.clipboard.readText()") == text


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


async def test_escape_stops_the_answer(visit: Visit) -> None:
    async with played(visit, lambda _: hanging("Once"), CONVERSATION) as (page, _, player):
        await say(page, "Tell me a tale")
        await expect(page.locator(ANSWERS)).to_have_text("Once")
        await page.keyboard.press("Escape")
        await until(player.aborted.is_set)
        await expect(page.locator(".turn.assistant")).to_contain_text("Stopped.")


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
