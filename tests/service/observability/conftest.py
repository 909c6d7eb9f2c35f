"""A model to be traced, which the tests of a module share."""

from collections.abc import AsyncGenerator

import pytest

from tests.players.openai_player import OpenAIPlayer
from tests.service.observability.tracing import play


@pytest.fixture(scope="module")
async def player() -> AsyncGenerator[OpenAIPlayer, None]:
    async with OpenAIPlayer(play) as player:
        yield player
