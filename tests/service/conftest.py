"""A receiver of traces, and an empty package in the working directory, for tool folders."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.players.otlp_receiver import OtlpReceiver


@pytest.fixture(scope="module")
async def receiver() -> AsyncGenerator[OtlpReceiver, None]:
    async with OtlpReceiver() as receiver:
        yield receiver


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The name of the package."""
    name = f"folders_{abs(hash(request.node.nodeid))}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    return name
