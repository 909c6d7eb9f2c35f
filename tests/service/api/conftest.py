"""A service that the tests of a module share, with a model that answers with sense."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.serving import service


@pytest.fixture(scope="module")
async def _model() -> AsyncGenerator[OpenAIPlayer, None]:
    async with OpenAIPlayer(sensible_model({"timeZoneId": "Asia/Shanghai"})) as player:
        yield player


@pytest.fixture(scope="module")
async def client(_model: OpenAIPlayer) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service(OPENAI_BASE_URL=_model.base_url) as client:
        yield client


@pytest.fixture
def player(_model: OpenAIPlayer) -> OpenAIPlayer:
    """The model, which has not been asked yet."""
    _model.requests.clear()
    return _model
