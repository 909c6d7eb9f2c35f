"""Fixtures that every test shares."""

import os
from pathlib import Path

import pytest

pytest_plugins = ["tests.no_skips"]

_SETTINGS = ("SERVER_", "CHAT_", "DASHSCOPE_", "OPENAI_", "WEATHER_", "BAIDU_", "TIME_", "MODEL_", "TOOL_", "SANDBOX_")


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """Run asynchronous tests on asyncio, with the loop that the service uses."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(autouse=True)
def _settings_of_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the developer's own keys and ``.env`` out of every test."""
    for name in [name for name in os.environ if name.startswith(_SETTINGS)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
