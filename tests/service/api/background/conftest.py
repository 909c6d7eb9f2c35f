"""A service whose model the tests of a module script, with two keys."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.serving import service
from toolchat.service.access.keys import digest_of


@pytest.fixture(scope="module")
async def player() -> AsyncGenerator[OpenAIPlayer, None]:
    async with OpenAIPlayer() as player:
        yield player


@pytest.fixture(scope="module")
async def module_client(player: OpenAIPlayer) -> AsyncGenerator[httpx.AsyncClient, None]:
    keys = ",".join(f"{name}={digest_of(name)}" for name in ("alice", "bob"))
    async with service(OPENAI_BASE_URL=player.base_url, API_KEYS=keys, ALLOW_ANONYMOUS="true") as client:
        yield client


@pytest.fixture
def client(module_client: httpx.AsyncClient, player: OpenAIPlayer) -> httpx.AsyncClient:
    player.follow(sensible_model({"timeZoneId": "Asia/Tokyo"}))
    return module_client
