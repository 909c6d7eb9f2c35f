"""Fixtures that every test shares."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.deploy.env_example import variables

# Which one is used says HYPOTHESIS_PROFILE; `make nightly` sets it.
settings.register_profile("default", max_examples=300, deadline=None)
settings.register_profile("nightly", max_examples=20_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

pytest_plugins = ["tests.no_skips"]


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """Run asynchronous tests on asyncio, with the loop that the service uses."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(autouse=True)
def _settings_of_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the developer's own keys and ``.env`` out of every test."""
    for name in variables():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
