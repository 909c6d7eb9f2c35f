"""Asking with a key from Swagger UI, in a real browser, under the policy that its page has."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page, Request, expect
from starlette.types import Receive, Scope, Send

from app.access.keys import digest_of
from app.composition.configuration import read_configuration
from app.main import create_app
from tests.browser import OpenPage
from tests.serving import service, serving

DESK = {"width": 1200, "height": 1250}
KEY = "toolchat_right"
ALICE = f"alice={digest_of(KEY)}"
SCHEMES = [("bearer", "authorization", f"Bearer {KEY}", "light"), ("apiKey", "x-api-key", KEY, "dark")]
ASKED = ("get_time_chat_tool_function", "post_time_chat_tool_function")


@asynccontextmanager
async def documentation(open_page: OpenPage, url: object, look: str = "light") -> AsyncGenerator[Page, None]:
    """Open Swagger UI; in the end nothing stands on its console, where a browser tells what a policy forbids."""
    told: list[str] = []
    async with open_page(viewport=DESK, color_scheme=look) as page:
        page.on("console", lambda line: told.append(line.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        await page.goto(f"{str(url).rstrip('/')}/docs")
        yield page
    assert told == []


async def authorize(page: Page, scheme: str, key: str) -> None:
    await page.locator(".btn.authorize").click()
    asked = page.locator(".auth-container", has_text=f"{scheme}  (")
    await asked.locator("input").fill(key)
    await asked.get_by_role("button", name="Apply credentials").click()
    await asked.get_by_role("button", name="Close").click()
    await expect(page.locator(".dialog-ux")).to_have_count(0)


async def execute(page: Page, operation: str) -> Request:
    """Ask with the example as it stands; gives the request that the browser sent."""
    shown = page.locator(f"#operations-Time-{operation}")
    await shown.locator(".opblock-summary-control").click()
    await shown.get_by_role("button", name="Try it out").click()
    async with page.expect_request(lambda request: "/time/chat-tool-function" in request.url) as sent:
        await shown.get_by_role("button", name="Execute").click()
    answer = shown.locator(".live-responses-table .response").first
    await expect(answer).to_contain_text("Asia/Shanghai")
    return await sent.value


@pytest.mark.parametrize(("scheme", "header", "value", "look"), SCHEMES, ids=["bearer", "apiKey"])
async def test_a_key_that_is_authorized_is_sent_with_every_question(
    scheme: str, header: str, value: str, look: str, open_page: OpenPage
) -> None:
    async with service(API_KEYS=ALICE) as client, documentation(open_page, client.base_url, look) as page:
        await authorize(page, scheme, KEY)
        for operation in ASKED:
            sent = await (await execute(page, operation)).all_headers()
            assert sent[header] == value
            assert {"authorization", "x-api-key"} & set(sent) == {header}


async def test_below_the_path_that_a_proxy_gives_it_everything_is_found(open_page: OpenPage) -> None:
    app = create_app(read_configuration())

    async def proxied(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            assert scope["path"].startswith("/below/")
            scope = {**scope, "root_path": "/below"}
        await app(scope, receive, send)

    async with serving(proxied) as url, documentation(open_page, f"{url}/below") as page:
        assert "/below/time/" in (await execute(page, ASKED[0])).url


@pytest.mark.parametrize(
    ("variables", "without_a_key"), [({}, True), ({"API_KEYS": ALICE}, False), ({"ALLOW_ANONYMOUS": "true"}, True)]
)
async def test_openapi_says_which_headers_take_a_key_and_whether_one_is_needed(
    variables: dict[str, str], without_a_key: bool
) -> None:
    async with service(**variables) as client:
        document = (await client.get("/openapi.json")).json()
    schemes = document["components"]["securitySchemes"]
    assert [(each["type"], each.get("scheme"), each.get("name")) for each in schemes.values()] == [
        ("http", "bearer", None),
        ("apiKey", None, "X-API-Key"),
    ]
    wanted: list[dict[str, list[str]]] = [{name: []} for name in schemes]
    assert document["security"] == ([{}, *wanted] if without_a_key else wanted)
    own = {
        path: each["security"]
        for path, item in document["paths"].items()
        for each in item.values()
        if "security" in each
    }
    assert own == {"/health/live": [], "/health/ready": []}
