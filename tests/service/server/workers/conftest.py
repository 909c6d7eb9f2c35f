"""What the tests of a module share."""

from collections.abc import AsyncGenerator

import pytest

from tests.players.otlp_receiver import OtlpReceiver
from tests.players.redis_server import RedisServer
from tests.service.server.paced_model import PacedModel, text
from tests.service.server.workers.several import Service, set_up, workers


@pytest.fixture(scope="module")
async def redis() -> AsyncGenerator[RedisServer, None]:
    async with RedisServer() as server:
        yield server


@pytest.fixture(scope="module")
async def model() -> AsyncGenerator[PacedModel, None]:
    async with PacedModel(text(["begun", "finished"])) as model:
        yield model


@pytest.fixture(scope="module")
async def collector() -> AsyncGenerator[OtlpReceiver, None]:
    async with OtlpReceiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
async def service(
    redis: RedisServer, model: PacedModel, collector: OtlpReceiver, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Service, None]:
    """Three workers, which every test leaves behind at work."""
    # The parent must create the directory of the metrics before it imports them, so it cannot be a fork.
    variables = {"PYTHONHASHSEED": "0", **set_up(redis, model), **collector.variables}
    async with workers(3, tmp_path_factory.mktemp("workers"), **variables) as service:
        yield service
