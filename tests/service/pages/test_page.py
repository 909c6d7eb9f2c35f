"""What holds on the whole page: keyboard, phone, languages, foreign text, and its own small parsers."""

from playwright.async_api import Page, expect
from starlette.types import Receive, Scope, Send

from tests.application import create_app, read_configuration
from tests.players.openai_player import sensible_model
from tests.service.pages.page import HOSTILE, LONDON, Visit, pane, played, say
from tests.serving import serving
from toolchat.service.cli.terminal import escape_controls

FOCUSED = """() => {
    const has = document.activeElement;
    const drawn = [has, has.nextElementSibling, has.closest("form")].filter(each => each);
    const name = has === document.body ? "body" : has.id || has.value || has.textContent;
    return [name, drawn.map(each => getComputedStyle(each).outlineStyle)];
}"""
"""What has the focus, and how it, its label or its form is outlined."""

TEXTS = """async () => {
    const { TEXTS } = await import("./texts.js");
    const used = [...document.querySelectorAll("[data-text], [data-label], [data-placeholder]")];
    const keys = used.map(({ dataset }) => dataset.text ?? dataset.label ?? dataset.placeholder);
    return [Object.keys(TEXTS.en), Object.keys(TEXTS.zh), keys];
}"""

READ = """async (stream) => {
    const { eventReader } = await import("./sse.js");
    const cuts = [...stream].map((_, at) => [stream.slice(0, at), stream.slice(at)]);
    return [...cuts, [...stream]].map((pieces) => pieces.flatMap(eventReader()));
}"""
"""The events of a stream that is cut in two at every place, and into single letters."""

STREAM = (
    ": a comment\r\n\r\nid: 7\r\nevent: delta\r\ndata:one\r\ndata: two\r\n\r\nevent: lost\n\ndata: 北京 \n\n\r\n"
    ": again\nretry: 5\nevent: done\r\ndata: {\r\ndata:  }\r\n\r\ndata: unfinished\n"
)
EVENTS = [
    {"id": "7", "event": "delta", "data": "one\ntwo"},
    {"id": None, "event": "message", "data": "北京 "},
    {"id": None, "event": "done", "data": "{\n }"},
]


TABS = (
    ("ArrowRight", "Conversation"),
    ("ArrowRight", "Tools"),
    ("End", "Compare"),
    ("ArrowLeft", "Tools"),
    ("Home", "Conversation"),
)


async def focus_order(page: Page) -> list[str]:
    """What Tab reaches, each with the focus in sight."""
    reached: list[str] = []
    while len(reached) < 30:
        await page.keyboard.press("Tab")
        name, outlines = await page.evaluate(FOCUSED)
        if name == "body":
            break
        assert set(outlines) - {"none"}, f"{name} does not show that it has the focus"
        reached.append(name)
    return reached


async def test_everything_can_be_done_by_keyboard_with_the_focus_in_sight(visit: Visit) -> None:
    async with visit() as page:
        reached = await focus_order(page)
        assert reached == [
            "compare-tab",
            "API docs",
            "language",
            "settings-button",
            "time",
            "question",
            "ask",
        ]
        await page.get_by_label("Question", exact=True).focus()
        await page.keyboard.press("Control+a")
        await page.keyboard.type("What time is it in Tokyo?")
        await page.keyboard.press("Control+Enter")
        await expect(pane(page, "Method tool").locator(".text")).to_contain_text("Asia/Tokyo")
        await page.locator("#compare-tab").focus()
        for key, name in TABS:
            await page.keyboard.press(key)
            await expect(page.get_by_role("tab", name=name)).to_be_focused()
            await expect(page.get_by_role("tabpanel", name=name)).to_be_visible()
        assert {"new-conversation", "message", "choose-tools", "plan", "send"} <= set(await focus_order(page))
        await page.locator("#tools-tab").click()
        assert {"getCityTimeMethod", "argument-timeZoneId", "Run", "Copy as curl"} <= set(await focus_order(page))
        await page.locator("#conversation-tab").click()
        await page.get_by_label("Message").focus()
        await page.keyboard.type("What time is it in Paris?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".turn.assistant .text")).to_contain_text("Europe/Paris")
        await expect(page.get_by_label("Message")).to_be_focused()


async def fits(page: Page) -> bool:
    """Whether nothing is wider than a phone's screen."""
    for width in (390, 320):
        await page.set_viewport_size({"width": width, "height": 900})
        if not await page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"):
            return False
    return True


async def test_nothing_overflows_a_phone(visit: Visit) -> None:
    # Not even one word of 600 letters in the question, the arguments, the result, the answer and a run of a tool.
    model = sensible_model({"timeZoneId": "x" * 600})
    async with played(visit, model, width=320) as (page, _, _):
        await page.locator("#question").press("Control+Enter")
        await expect(page.locator("#panes .figures")).to_have_count(3)
        assert await fits(page)
        await page.locator("#conversation-tab").click()
        await say(page, "y" * 600)
        await expect(page.locator(".turn .figures")).to_have_count(1)
        assert await fits(page)
        await page.locator("#tools-tab").click()
        await page.locator("#argument-timeZoneId").fill("z" * 600)
        await page.locator("#argument-timeZoneId").press("Enter")
        await expect(page.locator(".run .ms")).to_be_visible()
        assert await fits(page)


async def test_foreign_text_stays_text(visit: Visit) -> None:
    # Questions, arguments, results, answers and restored conversations never become markup.
    async with played(visit, sensible_model({"timeZoneId": HOSTILE})) as (page, _, _):
        await page.get_by_label("Question", exact=True).fill(HOSTILE)
        await page.get_by_role("button", name="Ask").click()
        shown = pane(page, "Function tool")
        await expect(shown.locator(".figures")).to_be_attached()
        await expect(shown.locator("pre").first).to_contain_text(HOSTILE)
        await page.get_by_role("tab", name="Conversation").click()
        await say(page, HOSTILE)
        await expect(page.locator(".turn .figures")).to_be_attached()
        await page.reload()
        await expect(page.locator(".turn.user")).to_contain_text(HOSTILE)
        assert await page.locator("main img, main script").count() == 0


async def test_the_language_is_the_browsers_until_another_is_chosen(visit: Visit) -> None:
    # Both languages have every text, and the choice outlives a reload.
    async with visit(locale="zh-CN") as page:
        await expect(page.get_by_role("heading", name="同一个问题，三种问法")).to_be_visible()
        await expect(page.get_by_label("问题", exact=True)).to_have_value("请告诉我现在北京时间几点了")
        await page.get_by_role("button", name="English").click()
        await expect(page.get_by_label("Question", exact=True)).to_have_value(LONDON)
        await page.reload()
        await expect(page.get_by_role("heading", name="One question, asked three ways")).to_be_visible()
        english, chinese, used = await page.evaluate(TEXTS)
    assert set(english) == set(chinese)
    assert set(used) <= set(english)


async def test_the_page_works_below_the_path_that_a_proxy_gives_it(visit: Visit) -> None:
    # Its addresses are relative, so every request stays below that path.
    app = create_app(read_configuration())

    async def proxied(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            assert scope["path"].startswith("/below/")
            scope = {**scope, "path": scope["path"].removeprefix("/below")}
        await app(scope, receive, send)

    async with serving(proxied) as url, visit(f"{url}/below") as page:
        await page.get_by_role("button", name="Ask").click()
        await expect(pane(page, "Function tool").locator(".text")).to_contain_text("Europe/London")


async def test_an_event_stream_is_read_wherever_it_is_cut(visit: Visit) -> None:
    # Both ends of lines, comments, data of several lines, and an event that never ends.
    async with visit() as page:
        read = await page.evaluate(READ, STREAM)
    assert len(read) == len(STREAM) + 1
    assert all(events == EVENTS for events in read)


async def test_json_is_indented_without_changing_its_numbers(visit: Visit) -> None:
    texts = ['{"n":12345678901234567890,"a":[],"o":{"x":1.0,"t":"a, b: {\\u5317"}}', "7", "no { json"]
    async with visit() as page:
        shown = await page.evaluate(
            "async (texts) => { const { pretty } = await import('./json.js'); return texts.map(pretty) }", texts
        )
    indented = '{\n  "n": 12345678901234567890,\n  "a": [],\n  "o": {\n    "x": 1.0,\n    "t": "a, b: {北"\n  }\n}'
    assert shown == [indented, "7", "no { json"]


TURNED = "Bob\u202etxt.exe"
UNSEEN = "pay\u200b \U000e0041\ufeff\x07"
"""Texts that cannot show somebody who consents another one than they are."""


async def test_the_page_escapes_bidirectional_characters(visit: Visit) -> None:
    async with visit() as page:
        script = "async (text) => (await import('./calls.js')).block('result', text).querySelector('pre').textContent"
        shown = [await page.evaluate(script, text) for text in (TURNED, UNSEEN, f'{{"to": "{TURNED}"}}', "北京 👩‍💻\n")]
        pretty = "async (text) => (await import('./json.js')).pretty(JSON.stringify({ to: text }))"
        edited = await page.evaluate(pretty, TURNED)
    assert shown[:3] == ["Bob\\u202etxt.exe", "pay\\u200b \\udb40\\udc41\\ufeff\\u0007", '{"to": "Bob\\u202etxt.exe"}']
    assert shown[3].startswith("北京 👩")
    assert edited == '{\n  "to": "Bob\\u202etxt.exe"\n}'


def test_the_terminal_escapes_bidirectional_characters() -> None:
    assert escape_controls(f'sendParcel({{"to": "{TURNED}"}})') == 'sendParcel({"to": "Bob\\u202etxt.exe"})'
