"""Markdown of a model, which is foreign text, in a real browser."""

import re

import pytest
from playwright.async_api import expect

from tests.players.openai_player import delta, finish, sse
from tests.service.pages.page import CONVERSATION, Visit, played, say, streamed

ELEMENTS = """async ([texts, through]) => {
    const { rendered, sanitized } = await import("./markdown.js");
    const shown = document.createElement("main");
    document.body.append(shown);
    return texts.flatMap((text) => {
        shown.replaceChildren(...(through === "rendered" ? rendered(text) : [sanitized(text)]));
        const elements = [...shown.querySelectorAll("*")];
        return elements.map((each) => [each.localName, each.getAttributeNames(), each.href ?? ""]);
    });
}"""
"""Every element that texts become: its name, its attributes, and where it leads."""

TAGS = {"a", "blockquote", "br", "button", "code", "del", "div", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p"}
TAGS |= {"pre", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
ATTRIBUTES = {"href", "target", "rel", "referrerpolicy", "align", "start", "class", "tabindex", "role", "aria-label"}
ATTRIBUTES |= {"type", "data-text", "data-label"}

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><style>*{display:none}</style></svg>",
    "<p onclick='alert(1)' style='position:fixed;inset:0' id='ask' name='body'>x</p>",
    "<a href='javascript:alert(1)'>x</a> <a href=' java&#9;script:alert(1)'>x</a> <a href='data:text/html,x'>x</a>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe><object data='x'></object><embed src='x'>",
    "<form action='https://e.example'><input name='q'><button formaction='javascript:alert(1)'>x</button></form>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>",
    "<base href='https://elsewhere.example/'><link rel=stylesheet href='https://elsewhere.example/x.css'>",
    "<video poster='https://elsewhere.example/x' src='https://elsewhere.example/y'></video>",
    "[x](javascript:alert(1)) [x](JaVaScRiPt:alert(1)) [x](data:text/html;base64,PHNjcmlwdD4=) [x](vbscript:x)",
    "[x](https://e.org\" onmouseover=\"alert(1)) <https://e.org/\"onclick=alert(1)>",
    "![x](https://elsewhere.example/pixel.png) ![x\" onerror=\"alert(1)](x) ![](javascript:alert(1))",
    "[x][1]\n\n[1]: javascript:alert(1) 'x'",
    "`<img src=x onerror=alert(1)>`\n\n```html\"><script>alert(1)</script>\n<script>alert(1)</script>\n```",
    "| <script>alert(1)</script> |\n|---|\n| <img src=x onerror=alert(1)> |",
)  # fmt: skip


@pytest.mark.parametrize("through", ["rendered", "sanitized"])
async def test_hostile_text_does_nothing_and_loads_nothing(visit: Visit, through: str) -> None:
    # As an answer; and as markup that a fault of the renderer let pass. The visit holds the requests and the dialogs.
    # Only markup may be refused by the page's policy on the way, which is how a style ends.
    faults = "Content Security Policy" if through == "sanitized" else ""
    async with visit(faults=faults) as page:
        for tag, attributes, target in await page.evaluate(ELEMENTS, [HOSTILE, through]):
            assert tag in TAGS
            assert set(attributes) <= ATTRIBUTES
            assert target.startswith("https://") or not target


LINKS = (
    "[out](https://example.org/a?b=1&c=2) https://example.com [mail](mailto:a@example.org) [in]({here}) [near](/chat/x)"
)


async def test_a_link_opens_elsewhere_and_none_leads_back_to_the_service(visit: Visit) -> None:
    # One click on a link to the service could set something going there.
    here: list[str] = []
    async with played(visit, lambda _: streamed(LINKS.replace("{here}", here[0])), CONVERSATION) as (page, client, _):
        here.append(f"{client.base_url}/todo/chat?query=x")
        await say(page, "Where?")
        await expect(page.locator(".turn .figures")).to_be_attached()
        links = page.locator(".turn.assistant .text a")
        await expect(links).to_have_text(["out", "https://example.com", "mail"])
        for link in await links.all():
            await expect(link).to_have_attribute("target", "_blank")
            await expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
        await expect(page.locator(".turn.assistant .text")).to_contain_text("in near")


DOCUMENT = """# Trip

Some **bold** words, *others*, ~~none~~ and `code`.

1. first
2. second
   - below
- [x] packed

| Day | High |
|:----|-----:|
| Sat | 3 °C |

```python
print("<b>")
```

> quoted
"""


async def test_an_answer_is_shown_as_the_document_that_it_is(visit: Visit) -> None:
    # Its headings stand below those of the page; what it is while half of it is there does not matter in the end.
    pieces = [delta(content=DOCUMENT[at : at + 3]) for at in range(0, len(DOCUMENT), 3)]
    async with played(visit, lambda _: sse(*pieces, finish("stop")), CONVERSATION) as (page, _, _):
        await say(page, "Plan")
        await expect(page.locator(".turn .figures")).to_be_attached()
        shown = page.locator(".turn.assistant .text")
        for _ in range(2):
            await expect(page.get_by_role("heading", name="Trip", level=3)).to_be_visible()
            for selector, told in (
                ("strong", ["bold"]),
                ("ol > li > ul", ["below"]),
                ("td", ["Sat", "3 °C"]),
                ("pre code", ['print("<b>")']),
                ("blockquote", ["quoted"]),
            ):
                await expect(shown.locator(selector)).to_have_text(told)
            await expect(shown.get_by_text("☑ packed")).to_be_visible()
            await expect(shown.locator("td").last).to_have_css("text-align", re.compile("right"))
            await page.reload()


async def test_code_is_copied_by_its_button_and_wide_things_scroll_by_themselves(visit: Visit) -> None:
    code = "x" * 300
    text = f"```\n{code}\n```\n\n{'| wide and wider ' * 30}|\n{'|---' * 30}|\n"
    permissions = ["clipboard-read", "clipboard-write"]
    async with played(visit, lambda _: streamed(text), CONVERSATION, width=390, permissions=permissions) as (
        page,
        _,
        _,
    ):
        await say(page, "Code")
        await expect(page.locator(".turn .figures")).to_be_attached()
        await page.locator(".code-block").get_by_role("button", name="Copy").click()
        await expect(page.locator(".code-block").get_by_role("button", name="Copied")).to_be_visible()
        assert (await page.evaluate("navigator.clipboard.readText()")).strip() == code
        for wide in (".code-block pre", ".table"):
            assert await page.locator(wide).evaluate(
                "(each) => each.scrollWidth > each.clientWidth && each.tabIndex === 0"
            )
        assert await page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


KNOTTED = (
    "**a_",
    "> ",
    "- ",
    "[",
    "![",
    "`a",
    "*a ",
    "~~a",
    "[a](b",
    "<a ",
    "|a",
    "> a\n",
    "1. ",
    "**a_" * 400 + "\n\n",
)
"""What is repeated in texts whose reading could take the square of their length, or the whole stack."""

MILLISECONDS = """async (text) => {
    const { rendered } = await import("./markdown.js");
    const shown = document.createElement("main");
    const began = performance.now();
    shown.append(...rendered(text));
    return performance.now() - began;
}"""


async def test_no_text_takes_long(visit: Visit) -> None:
    # Beside an ordinary document of the same length on the same machine; unbounded, the worst take a thousand times it.
    texts = ["a " * 500_000, "# x\n\n- **y** [z](https://e.org)\n\n" * 30_000]
    texts += [(each * 50_000)[:50_000] for each in KNOTTED]
    async with visit() as page:
        usual = max([await page.evaluate(MILLISECONDS, DOCUMENT * 100) for _ in range(3)])
        times = {text[:20]: await page.evaluate(MILLISECONDS, text) for text in texts}
    assert {start: spent for start, spent in times.items() if spent > 25 * usual} == {}
