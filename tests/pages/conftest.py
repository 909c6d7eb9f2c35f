"""The playground's page, watched."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Page, expect

from tests.browser import OpenPage
from tests.pages.page import Visit


@pytest.fixture
def visit(open_page: OpenPage) -> Visit:
    """Opens the page; in the end it must have asked this host alone, and left nothing unexpected on the console."""

    @asynccontextmanager
    async def visited(
        url: object,
        *,
        place: str = "",
        width: int = 1280,
        faults: str = "",
        ready: str = "#ask:enabled",
        **options: Any,
    ) -> AsyncGenerator[Page, None]:
        root = str(url).rstrip("/") + "/"
        requested: list[str] = []
        told: list[str] = []
        async with open_page(viewport={"width": width, "height": 900}, **{"locale": "en-US"} | options) as page:
            page.on("request", lambda request: requested.append(request.url))
            page.on("console", lambda line: told.append(line.text) if line.type in ("error", "warning") else None)
            page.on("pageerror", lambda error: told.append(str(error)))
            page.on("dialog", lambda dialog: told.append(f"dialog {dialog.message}"))
            await page.goto(f"{root}playground/{place}")
            await expect(page.locator(ready)).to_be_attached()
            yield page
        assert [each for each in requested if not each.startswith(root)] == []
        assert {urlsplit(each).netloc for each in requested} == {urlsplit(root).netloc}
        assert [each for each in told if not (faults and faults in each)] == []

    return visited
