"""The playground's page in the words of its tests."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpx
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Locator, Page, expect

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, delta, finish, sse

__all__ = [
    "CONVERSATION",
    "HOSTILE",
    "LONDON",
    "Played",
    "Stage",
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


class Stage(NamedTuple):
    """A service whose model follows the script of the test."""

    client: httpx.AsyncClient
    player: OpenAIPlayer


@dataclass(frozen=True)
class Visit:
    """Opens the page of a service: of the given one, else of one without a model, which all tests share.

    ``place`` is what follows its address, ``faults`` what the console may report, ``ready`` what is seen when it is
    there; more options are those of a browser context.
    """

    page_of: Callable[..., AbstractAsyncContextManager[Page]]
    offline: httpx.AsyncClient
    stage: Stage

    def __call__(self, url: object = None, **options: Any) -> AbstractAsyncContextManager[Page]:
        return self.page_of(url or self.offline.base_url, **options)


class Played(NamedTuple):
    """The page of a service whose model is played."""

    page: Page
    client: httpx.AsyncClient
    player: OpenAIPlayer


@asynccontextmanager
async def played(
    visit: Visit, script: Callable[[PlayedRequest], Answer], place: str = "?view=compare", **options: Any
) -> AsyncGenerator[Played, None]:
    """Open the page of a service whose model follows a script."""
    client, player = visit.stage
    player.follow(script)
    async with visit(client.base_url, place=place, **options) as page:
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
