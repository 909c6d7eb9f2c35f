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


async def test_swagger_ui_posts_a_question_as_json_with_the_example_as_it_stands(open_page: OpenPage) -> None:
    async with service() as client, open_page(viewport=DESK) as page:
        await page.goto(f"{client.base_url}/docs")
        shown = page.locator("#operations-Time-post_time_chat_tool_function")
        await shown.click()
        await shown.get_by_role("button", name="Try it out").click()
        await shown.get_by_role("button", name="Execute").click()
        response = shown.locator(".live-responses-table .response").first
        await expect(response).to_contain_text("200")
        await expect(response).to_contain_text("Asia/Shanghai")


async def test_the_errors_of_an_operation_are_one_short_block_whose_link_says_what_they_mean(
    open_page: OpenPage,
) -> None:
    async with service() as client, open_page(viewport=DESK) as page:
        await page.goto(f"{client.base_url}/docs")
        shown = page.locator("#operations-Time-get_time_chat_tool_function")
        await shown.click()
        # What a question may be is told in words, and not by the regular expression for machines.
        await expect(shown.locator(".parameters")).to_contain_text("Not blank, without NUL")
        await expect(shown.locator(".parameters")).to_contain_text("maxLength: 4000")
        await expect(shown.locator(".parameters")).not_to_contain_text("pattern")
        errors = shown.locator('tr.response[data-code="default"]')
        await expect(errors).to_contain_text("not-configured")
        assert await shown.locator("tr.response").count() == 3
        whole, block = await shown.bounding_box(), await errors.bounding_box()
        assert whole
        assert block
        assert (whole["height"] < 2000, block["height"] < whole["height"] / 4) == (True, True)
        async with page.context.expect_page() as opened:
            await errors.get_by_role("link", name="docs/errors.md").click()
        meant = await opened.value
        await expect(meant.locator("body")).to_contain_text("A tool or provider is switched off or lacks a secret")
        assert meant.url == f"{client.base_url}/docs/errors.md"


async def test_swagger_ui_is_dark_or_light_as_the_system_is(open_page: OpenPage) -> None:
    # From the first look on, and when the system changes.
    async with service() as client, open_page(viewport=DESK, color_scheme="dark") as page:
        await page.goto(f"{client.base_url}/docs")
        name = page.locator("#operations-Chat-get_chat").locator("td.header-col").first
        await page.locator("#operations-Chat-get_chat").click()
        await expect(page.locator(".swagger-ui").first).to_have_css("background-color", "rgb(28, 32, 34)")
        await expect(name).to_have_css("color", "rgb(228, 230, 230)")
        await page.emulate_media(color_scheme="light")
        await expect(page.locator("html")).to_have_css("background-color", "rgba(0, 0, 0, 0)")
        await expect(name).not_to_have_css("color", "rgb(228, 230, 230)")


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
