"""A service that the tests of a module share, each in a session of its own."""

import secrets
from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.app.tools.todo.caller import Caller, dutiful
from tests.players.openai_player import OpenAIPlayer
from tests.serving import service


@pytest.fixture(scope="module")
async def dutiful_service() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with OpenAIPlayer(dutiful) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        yield client


@pytest.fixture
def caller(dutiful_service: httpx.AsyncClient) -> Caller:
    """A caller with a new session."""
    return Caller(dutiful_service, f"s-{secrets.token_hex(8)}")
