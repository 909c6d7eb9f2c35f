"""The playground's page in the words of its tests."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

import httpx
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Locator, Page, expect

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, delta, finish, sse
from tests.serving import service

__all__ = [
    "CONVERSATION",
    "HOSTILE",
    "LONDON",
    "Played",
    "Visit",
    "hanging",
    "pane",
    "played",
    "say",
    "streamed",
    "violations",
]

CONVERSATION = "?view=conversation"
LONDON = "What time is it in London?"
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"

Visit = Callable[..., AbstractAsyncContextManager[Page]]
"""Opens the page of a service.

``place`` is what follows its address, ``faults`` what the console may tell, ``ready`` what is seen when it is there.
"""


class Played(NamedTuple):
    """The page of a service whose model is played."""

    page: Page
    client: httpx.AsyncClient
    player: OpenAIPlayer


@asynccontextmanager
async def played(
    visit: Visit, script: Callable[[PlayedRequest], Answer], place: str = "", **options: Any
) -> AsyncGenerator[Played, None]:
    """Open the page of a service whose model follows a script."""
    async with (
        OpenAIPlayer(script) as player,
        service(OPENAI_BASE_URL=player.base_url) as client,
        visit(client.base_url, place=place, **options) as page,
    ):
        yield Played(page, client, player)


def pane(page: Page, name: str) -> Locator:
    """One of the three answers, by its title."""
    return page.get_by_role("region", name=name, exact=True)


async def say(page: Page, message: str) -> None:
    """Send a message of the conversation."""
    await expect(page.locator("#send")).to_be_enabled()
    await page.locator("#message").fill(message)
    await page.locator("#message").press("Enter")


async def violations(page: Page) -> list[object]:
    """The accessibility rules of axe-core that a page violates, each with the elements."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(Axe().axe_script)
    return list(await page.evaluate(_VIOLATIONS))


_VIOLATIONS = """async () => {
    const { violations } = await axe.run({ resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
}"""


def streamed(text: str) -> Answer:
    """A model's whole answer."""
    return sse(delta(content=text), finish("stop"))


def hanging(text: str) -> Answer:
    """The beginning of an answer that never ends."""
    return sse(delta(content=text), done=False, ending="hang")
