"""What the tests of a module share."""

from collections.abc import AsyncGenerator, Generator

import pytest

from tests.players.redis_server import RedisServer
from tests.server.paced_model import PacedModel, text
from tests.workers.several import Service, set_up, workers


@pytest.fixture(scope="module")
async def redis() -> AsyncGenerator[RedisServer, None]:
    async with RedisServer() as server:
        yield server


@pytest.fixture(scope="module")
async def model() -> AsyncGenerator[PacedModel, None]:
    async with PacedModel(text(["begun", "finished"])) as model:
        yield model


@pytest.fixture(scope="module")
def service(
    redis: RedisServer, model: PacedModel, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Service, None, None]:
    """Three workers, which every test leaves behind at work; no trace of theirs finds room."""
    traces = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_BSP_MAX_QUEUE_SIZE": "1"}
    with workers(3, tmp_path_factory.mktemp("workers"), **set_up(redis, model), **traces) as service:
        yield service
