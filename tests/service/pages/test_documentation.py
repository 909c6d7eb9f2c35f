"""The documentation page, Swagger UI, in a real browser: all its tests share one page, below the path of a proxy.

Loading it takes as long as ten pages of the playground. Each test closes the operations that it opens.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Locator, Page, Request, Route, expect
from starlette.types import Receive, Scope, Send

from tests.application import create_app
from tests.service.api.tool_routes.folders.pottery import YARD
from tests.serving import configured, serving
from tests.waiting import PATIENCE
from toolchat.service.access.keys import digest_of

KEY = "toolchat_right"
PATHS = {
    *("/chat", "/chat/stream", "/time/chat", "/time/chat-tool-function", "/time/chat-tool-method"),
    "/tools/firePot",
}
SCHEMES = [
    ("bearer", "authorization", f"Bearer {KEY}", "Time-get_time_chat"),
    ("apiKey", "x-api-key", KEY, "Time-get_time_chat_tool_function"),
]


class Documentation(NamedTuple):
    """The open page, its address, and what the browser reported since."""

    page: Page
    url: str
    requests: list[Request]
    console: list[str]

    @asynccontextmanager
    async def operation(self, name: str) -> AsyncGenerator[Locator, None]:
        """Open an operation, and close it afterwards."""
        shown = self.page.locator(f"#operations-{name}")
        await shown.locator(".opblock-summary-control").click()
        yield shown
        await shown.locator(".opblock-summary-control").click()

    @asynccontextmanager
    async def form(self, name: str) -> AsyncGenerator[Locator, None]:
        """Open an operation that can be executed, with its example as it stands."""
        async with self.operation(name) as shown:
            await shown.get_by_role("button", name="Try it out").click()
            yield shown
            await shown.get_by_role("button", name="Cancel").click()

    async def execute(self, shown: Locator) -> tuple[Request, Locator]:
        """Execute an operation; returns the request that the browser sent, and the response that is shown."""
        async with self.page.expect_request(f"{self.url}/**") as sent:
            await shown.get_by_role("button", name="Execute").click()
        return await sent.value, shown.locator(".live-responses-table .response").first


async def _only_the_operations_of_the_tests(route: Route) -> None:
    """Leave the others out of the document: Swagger UI takes seconds to resolve all of it, for each operation again."""
    response = await route.fetch()
    document = await response.json()
    await route.fulfill(response=response, json=document | {"paths": {path: document["paths"][path] for path in PATHS}})


@pytest.fixture(scope="module")
async def module_page(browser: Browser) -> AsyncGenerator[Documentation, None]:
    """Documentation of a service with keys, which nobody needs, and with the pottery's tools."""
    app = create_app(
        configured("tests.service.api.tool_routes.folders", API_KEYS=f"alice={digest_of(KEY)}", ALLOW_ANONYMOUS="true")
    )

    async def proxied(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            assert scope["path"].startswith("/below/")
            scope = {**scope, "root_path": "/below"}
        await app(scope, receive, send)

    async with serving(proxied) as url:
        context = await browser.new_context(viewport={"width": 1200, "height": 1250}, color_scheme="dark")
        context.set_default_timeout(PATIENCE * 1000)
        shown = Documentation(await context.new_page(), f"{url}/below", [], [])
        shown.page.on("request", lambda request: shown.requests.append(request))
        shown.page.on("console", lambda line: shown.console.append(line.text))
        shown.page.on("pageerror", lambda error: shown.console.append(str(error)))
        await shown.page.route("**/openapi.json", _only_the_operations_of_the_tests)
        await shown.page.goto(f"{shown.url}/docs")
        yield shown
        await context.close()


@pytest.fixture
async def documentation(module_page: Documentation) -> AsyncGenerator[Documentation, None]:
    """The page; afterwards it must have asked this host alone, and left nothing on the console, where a browser
    reports violations of the page's policy.
    """
    yield module_page
    hosts = {urlsplit(each.url).netloc for each in module_page.requests if not each.url.startswith(("data:", "blob:"))}
    assert hosts == {urlsplit(module_page.url).netloc}
    assert module_page.console == []


@pytest.mark.parametrize(
    ("operation", "answered"),
    [
        ("Chat-get_chat", "Asia/Shanghai"),
        ("Chat-get_chat_stream", "done"),
        ("Time-get_time_chat_tool_function", "Asia/Shanghai"),
    ],
)
async def test_an_operation_runs_with_its_unchanged_example(
    documentation: Documentation, operation: str, answered: str
) -> None:
    # Try it out and Execute fill the question in, and accept the response format of the route.
    async with documentation.form(operation) as shown:
        request, response = await documentation.execute(shown)
        await expect(response).to_contain_text("200")
        await expect(response).to_contain_text(answered)
        await expect(documentation.page.locator(".errors-wrapper")).to_have_count(0)
    assert urlsplit(request.url).path.startswith("/below/")


@pytest.mark.parametrize(("scheme", "header", "value", "operation"), SCHEMES, ids=["bearer", "apiKey"])
async def test_a_key_that_is_entered_is_sent_with_every_request(
    documentation: Documentation, scheme: str, header: str, value: str, operation: str
) -> None:
    page = documentation.page
    await page.locator(".btn.authorize").click()
    entered = page.locator(".auth-container", has_text=f"{scheme}  (")
    await entered.locator("input").fill(KEY)
    await entered.get_by_role("button", name="Apply credentials").click()
    await entered.get_by_role("button", name="Close").click()
    await expect(page.locator(".dialog-ux")).to_have_count(0)
    async with documentation.form(operation) as shown:
        request, response = await documentation.execute(shown)
        await expect(response).to_contain_text("200")
    headers = await request.all_headers()
    assert headers[header] == value
    assert {"authorization", "x-api-key"} & set(headers) == {header}
    await page.locator(".btn.authorize").click()
    await entered.get_by_role("button", name="Remove authorization").click()
    await entered.get_by_role("button", name="Close").click()


async def test_a_tool_that_needs_approval_is_executed_with_an_idempotency_key(documentation: Documentation) -> None:
    YARD.tidy()
    YARD.door.set()
    async with documentation.form("Run_a_tool-run_firePot") as shown:
        await shown.get_by_role("button", name="Execute").click()
        key = shown.locator('tr[data-param-name="Idempotency-Key"] input')
        await expect(key).to_have_class("invalid")
        assert YARD.fired == []
        await key.fill("k-swagger")
        _, response = await documentation.execute(shown)
        await expect(response).to_contain_text("fired string")
    assert YARD.fired == ["string"]
