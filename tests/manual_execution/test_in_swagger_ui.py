"""Tools run by hand from the documentation page, in a real browser."""

import os
from pathlib import Path

import httpx
from playwright.async_api import Locator, Page, expect

from tests.browser import OpenPage
from tests.manual_execution.folders.pottery import Yard

DESK = {"width": 1200, "height": 1250}


async def operation(page: Page, client: httpx.AsyncClient, name: str) -> Locator:
    """The operation of a tool, opened to be tried out."""
    await page.goto(f"{client.base_url}/docs")
    shown = page.locator(f"#operations-Tools_by_hand-run_{name}")
    await shown.click()
    await shown.get_by_role("button", name="Try it out").click()
    return shown


async def test_a_tool_runs_with_the_example_as_it_stands(client: httpx.AsyncClient, open_page: OpenPage) -> None:
    async with open_page(viewport=DESK) as page:
        shown = await operation(page, client, "nest")
        await expect(shown.locator("textarea")).to_have_value(
            '{\n  "pot": {\n    "name": "amphora",\n    "lids": []\n  },\n  "also": null\n}'
        )
        await shown.get_by_role("button", name="Execute").click()
        response = shown.locator(".live-responses-table .response").first
        await expect(response).to_contain_text("200")
        await expect(response).to_contain_text("amphora None")
        if folder := os.environ.get("TOOLCHAT_SCREENSHOTS"):
            await page.screenshot(path=Path(folder) / "swagger-ui-tool.png", full_page=True)
        await expect(page.locator(".errors-wrapper")).to_have_count(0)


async def test_a_tool_that_needs_approval_asks_for_a_key_first(
    client: httpx.AsyncClient, open_page: OpenPage, yard: Yard
) -> None:
    yard.door.set()
    async with open_page(viewport=DESK) as page:
        shown = await operation(page, client, "firePot")
        await shown.get_by_role("button", name="Execute").click()
        name = shown.locator('tr[data-param-name="Idempotency-Key"] input')
        await expect(name).to_have_class("invalid")
        await name.fill("k-swagger")
        await shown.get_by_role("button", name="Execute").click()
        await expect(shown.locator(".live-responses-table .response").first).to_contain_text("fired string")
    assert yard.fired == ["string"]
