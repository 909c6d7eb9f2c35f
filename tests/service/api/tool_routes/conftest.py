"""A service with the pottery's tools that the tests of a module share, and no model that could be asked."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.players.openai_player import OpenAIPlayer
from tests.service.api.tool_routes.folders.pottery import YARD, Yard
from tests.serving import service


@pytest.fixture(scope="module")
async def nobody() -> AsyncGenerator[OpenAIPlayer, None]:
    """A model that has nothing to say: whoever asks it gets an error, and is written down."""
    async with OpenAIPlayer([]) as player:
        yield player


@pytest.fixture(scope="module")
async def client(nobody: OpenAIPlayer) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service("tests.service.api.tool_routes.folders", OPENAI_BASE_URL=nobody.base_url) as client:
        yield client


@pytest.fixture(autouse=True)
def yard() -> Yard:
    """The pottery's yard, tidied up."""
    YARD.tidy()
    return YARD
