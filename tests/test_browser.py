"""The documentation page in a real browser."""

from urllib.parse import urlsplit

import pytest
from playwright.async_api import expect

from tests.browser import OpenPage
from tests.serving import service

DESK = {"width": 1200, "height": 1250}


@pytest.mark.parametrize(("operation", "answered"), [("get_chat", "Asia/Shanghai"), ("get_chat_stream", "done")])
async def test_swagger_ui_asks_in_a_session_with_the_example_as_it_stands(
    operation: str, answered: str, open_page: OpenPage
) -> None:
    # Try it out and Execute fill the question in, and accept the form that the route gives.
    async with service() as client, open_page(viewport=DESK) as page:
        await page.goto(f"{client.base_url}/docs")
        shown = page.locator(f"#operations-Chat-{operation}")
        await shown.click()
        await shown.get_by_role("button", name="Try it out").click()
        await shown.get_by_role("button", name="Execute").click()
        response = shown.locator(".live-responses-table .response").first
        await expect(response).to_contain_text("200")
        await expect(response).to_contain_text(answered)


async def test_swagger_ui_asks_no_other_host_and_executes_a_question(open_page: OpenPage) -> None:
    requested: list[str] = []
    async with service() as client, open_page(viewport=DESK) as page:
        page.on("request", lambda request: requested.append(request.url))
        await page.goto(f"{client.base_url}/docs")
        operation = page.locator("#operations-Time-get_time_chat_tool_function")
        await operation.click()
        await operation.get_by_role("button", name="Try it out").click()
        await operation.get_by_role("button", name="Execute").click()
        answer = operation.locator(".live-responses-table .response-col_description .highlight-code").first
        await expect(answer).to_contain_text("Asia/Shanghai")
        hosts = {urlsplit(url).netloc for url in requested if not url.startswith(("data:", "blob:"))}
        assert hosts == {client.base_url.netloc.decode()}
        assert any("/time/chat-tool-function" in url for url in requested)
