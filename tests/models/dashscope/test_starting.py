"""What DashScope needs to start: settings that can be used, and its SDK, late and silent."""

import logging
import os
import subprocess
import sys

import pytest

from app.settings.base import read_settings
from app.settings.providers import DashScopeSettings
from tests.models.dashscope.playing import SILENCE, asking, model_at, played
from tests.models.responding import response_of
from toolchat.errors import ConfigurationError, UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.models.dashscope.model import DashScopeChatModel


def test_importing_the_provider_imports_neither_the_sdk_nor_aiohttp_and_warming_up_does() -> None:
    check = (
        "import sys, logging, toolchat.models.dashscope.model as provider\n"
        "assert not {'dashscope', 'aiohttp'} & set(sys.modules)\n"
        "provider.warm_up()\n"
        "assert 'dashscope' in sys.modules\n"
        "assert not logging.getLogger('dashscope').isEnabledFor(logging.CRITICAL)\n"
        "assert not logging.getLogger().handlers\n"
    )
    environment = {**os.environ, "DASHSCOPE_LOGGING_LEVEL": "debug", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-W", "error", "-c", check], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


async def test_the_sdk_logs_and_prints_nothing_when_a_request_fails(capfd: pytest.CaptureFixture[str]) -> None:
    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record)

    seen: list[logging.LogRecord] = []
    collector, root = Collector(), logging.getLogger()
    level = root.level
    root.addHandler(collector)
    root.setLevel(logging.DEBUG)
    try:
        async with played(SILENCE) as (model, _):
            with pytest.raises(UpstreamUnavailable):
                await response_of(model, asking())
    finally:
        root.removeHandler(collector)
        root.setLevel(level)
    assert [record for record in seen if record.name.startswith("dashscope")] == []
    assert capfd.readouterr() == ("", "")


def test_a_base_url_with_a_place_for_the_workspace_needs_one() -> None:
    with pytest.raises(ConfigurationError, match="DASHSCOPE_WORKSPACE"):
        model_at("https://{workspace_id}.cn-beijing.maas.aliyuncs.com/api/v1", OutboundHttp())


def test_without_a_key_the_provider_does_not_start() -> None:
    with pytest.raises(ConfigurationError, match="DASHSCOPE_API_KEY"):
        DashScopeChatModel(api_key="")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DASHSCOPE_API_KEY", "sk\r\nx"),
        ("DASHSCOPE_BASE_URL", "dashscope.aliyuncs.com"),
        ("DASHSCOPE_ENDPOINT", "images"),
        ("DASHSCOPE_WORKSPACE", "ws\r\nX-Evil: 1"),
        ("DASHSCOPE_ENABLE_THINKING", "maybe"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=f"^{variable}: ") as caught:
        read_settings(DashScopeSettings)
    assert value not in str(caught.value)
