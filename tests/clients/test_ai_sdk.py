"""The AI SDK's useChat in a browser: examples/front_end, bundled with the packages from npm."""

import re
from collections.abc import AsyncGenerator, Iterator
from shutil import copytree, ignore_patterns
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser import OpenPage
from tests.clients.conftest import ROOT, TIME, Model, bundled, started
from tests.command_line import with_tools
from tests.players.openai_player import Answer, delta, finish, sse, whole

SHIP = '''"""A folder whose tool needs the user's consent."""

from typing import Annotated

from toolchat.tool_calling.function_callback import tool
from toolchat import ToolModule


@tool(requires_approval=True)
async def ship(number: Annotated[int, "The order's number"]) -> dict[str, int]:
    """Ship an order."""
    return {"shipped": number}


module = ToolModule(functions=(ship,))
'''
SHIPS = {"name": "ship", "arguments": '{"number":1}'}
PAGE = (ROOT / "examples" / "front_end" / "index.html").read_text(encoding="utf-8").replace("main.jsx", "bundle.js")


def says(text: str) -> Answer:
    return sse(*(delta(content=letter) for letter in text), finish("stop"))


def calls(*functions: dict[str, str]) -> Answer:
    named = [
        {"index": number, "id": f"call_{number}", "type": "function", "function": function}
        for number, function in enumerate(functions)
    ]
    return sse(delta(tool_calls=named), finish("tool_calls"))


@pytest.fixture(scope="module")
def service(_played: tuple[Model, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service with one more tool."""
    project = tmp_path_factory.mktemp("project")
    with_tools(project, {"ship": SHIP})
    with started(project, tmp_path_factory.mktemp("service"), _played[1]) as url:
        yield url


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page's script: the example with the documented component, and the packages that it imports."""
    folder = tmp_path_factory.mktemp("page") / "front_end"
    copytree(ROOT / "examples" / "front_end", folder, ignore=ignore_patterns("node_modules"))
    return bundled(folder, "--jsx=automatic")


@pytest.fixture
async def page(service: str, bundle: str, open_page: OpenPage) -> AsyncGenerator[Page, None]:
    """The page, which has the service's own origin."""

    async def played(route: Route) -> None:
        is_script = route.request.url.endswith("/bundle.js")
        await route.fulfill(
            body=bundle if is_script else PAGE, content_type=f"text/{'javascript' if is_script else 'html'}"
        )

    async with open_page() as page:
        await page.route(re.compile(r"/(bundle\.js|page)$"), played)
        await page.goto(f"{service}/page")
        yield page


async def ask(page: Page, question: str) -> None:
    await page.get_by_label("Question").fill(question)
    await page.get_by_role("button", name="Ask").click()


async def is_ready(page: Page) -> None:
    await expect(page.get_by_role("button", name="Ask")).to_be_enabled()


def sent(model: Model) -> list[Any]:
    messages: list[Any] = model.requests[-1].body["messages"]
    return [each for each in messages if each["role"] != "system"]


async def test_a_question_is_answered_with_a_tool_and_the_next_one_sends_the_whole_conversation(
    page: Page, model: Model
) -> None:
    model.plays(calls(TIME), says("It is noon."), says("You are welcome."))
    await ask(page, "What time is it in Shanghai?")
    await expect(page.locator("p.assistant")).to_have_text("It is noon.")
    await expect(page.locator("pre")).to_contain_text("getCityTimeFunction")
    await expect(page.locator("pre")).to_contain_text("output-available")
    await is_ready(page)
    await ask(page, "Thank you")
    await expect(page.locator("p.assistant").last).to_have_text("You are welcome.")
    assert [each["role"] for each in sent(model)] == ["user", "assistant", "tool", "assistant", "user"]
    assert sent(model)[1]["tool_calls"][0]["function"] == TIME
    assert len(model.requests) == 3


async def test_an_approved_call_runs_and_the_answer_continues_in_the_same_message(page: Page, model: Model) -> None:
    model.plays(calls(SHIPS), says("It is on its way."), says("Bye."))
    await ask(page, "Ship order 1")
    await page.get_by_role("button", name="Approve").click()
    await expect(page.locator("p.assistant")).to_have_text("It is on its way.")
    await expect(page.locator("pre")).to_have_text('ship {"number":1} output-available {"shipped":1}')
    await is_ready(page)
    await ask(page, "Bye")
    await expect(page.locator("p.assistant").last).to_have_text("Bye.")
    assert [each["role"] for each in sent(model)] == ["user", "assistant", "tool", "assistant", "user"]
    assert len(model.requests) == 3


async def test_a_rejected_call_does_not_run_and_the_model_is_informed(page: Page, model: Model) -> None:
    model.plays(calls(SHIPS), says("Then not."))
    await ask(page, "Ship order 1")
    await page.get_by_role("button", name="Reject").click()
    await expect(page.locator("p.assistant")).to_have_text("Then not.")
    await expect(page.locator("pre")).to_contain_text("output-denied")
    assert "rejected" in sent(model)[-1]["content"]
    assert len(model.requests) == 2


async def test_each_of_several_calls_is_decided_separately(page: Page, model: Model) -> None:
    model.plays(calls(SHIPS, {"name": "ship", "arguments": '{"number":2}'}), says("One of two."))
    await ask(page, "Ship orders 1 and 2")
    await page.get_by_role("button", name="Approve").last.click()
    await page.get_by_role("button", name="Reject").first.click()
    await expect(page.locator("p.assistant")).to_have_text("One of two.")
    await expect(page.locator("pre").first).to_contain_text("output-denied")
    await expect(page.locator("pre").last).to_contain_text('output-available {"shipped":2}')
    results = [each["content"] for each in sent(model) if each["role"] == "tool"]
    assert ["rejected" in each for each in results] == [True, False]


async def test_an_error_is_shown_as_text_and_the_next_question_is_answered(page: Page, model: Model) -> None:
    refused = whole({"error": {"message": "no", "code": "context_length_exceeded"}}, 400)
    model.plays(refused, sse(delta(content="It is "), done=False, ending="cut"), says("Noon."))
    shown = []
    for _ in range(2):
        await ask(page, "What time is it?")
        await is_ready(page)
        shown.append(await page.get_by_role("alert").inner_text())
    await ask(page, "And now?")
    await expect(page.locator("p.assistant").last).to_have_text("Noon.")
    await expect(page.get_by_role("alert")).to_have_count(0)
    assert len(set(shown)) == 2
    assert not any(each.startswith("{") for each in shown)
