"""Fixtures of fault injection: a provider and running services for each module, checked after each test."""

import os
from collections.abc import AsyncGenerator

import pytest

from tests.faults.stage import Stage
from tests.faults.upstream import Upstream

_MINUTES = float(os.environ.get("FAULT_MINUTES", "0.12"))
"""How long the random schedules of faults last."""


@pytest.fixture(scope="module")
async def _stage_of_the_module(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Stage]:
    seed = int(request.config.getoption("randomly_seed", 0))
    async with Upstream() as upstream, Stage(tmp_path_factory.mktemp("stage"), seed, _MINUTES, upstream) as stage:
        yield stage


@pytest.fixture
async def stage(request: pytest.FixtureRequest, _stage_of_the_module: Stage) -> AsyncGenerator[Stage]:
    """The module's stage; a test may be marked ``loud`` if its services report errors, as they should."""
    yield _stage_of_the_module
    await _stage_of_the_module.end_test(may_report=request.node.get_closest_marker("loud") is not None)


def pytest_itemcollected(item: pytest.Item) -> None:
    # Clients that are cut off leave their sockets to the garbage collector.
    item.add_marker(
        pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
    )
