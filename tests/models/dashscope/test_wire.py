"""What is sent to DashScope, and what it needs to start."""

import logging
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.models.dashscope.playing import KEY, SILENCE, WEATHER, asking, model_at, played
from tests.models.responding import events_of, response_of, streamed_text
from tests.players.dashscope_player import saying
from toolchat.errors import ConfigurationError, UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.messages import SystemMessage, UserMessage
from toolchat.models.base import ChatOptions, ChatResponse
from toolchat.models.dashscope.model import DashScopeChatModel
from toolchat.service.settings.base import read_settings
from toolchat.service.settings.providers import DashScopeSettings


async def test_the_sdk_sends_exactly_the_documented_body_through_our_session() -> None:
    async with played(saying("ok"), workspace="ws-1") as (model, player):
        await response_of(model, asking(SystemMessage("Be brief."), UserMessage("你好"), tools=(WEATHER,)))
    (request,) = player.requests
    assert request.path == "/api/v1/services/aigc/text-generation/generation"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-dashscope-workspace"] == "ws-1"
    assert "x-dashscope-sse" not in request.headers
    function = {"name": "get_weather", "description": "Weather of a place", "parameters": dict(WEATHER.input_schema)}
    assert request.body == {
        "model": "qwen-plus",
        "input": {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "你好"}]},
        "parameters": {"result_format": "message", "tools": [{"type": "function", "function": function}]},
    }


async def test_a_streamed_request_requests_incremental_server_sent_events() -> None:
    async with played(saying("ok")) as (model, player):
        await response_of(model, asking(stream=True))
    (request,) = player.requests
    assert request.stream
    assert request.parameters == {"result_format": "message", "incremental_output": True}


async def test_sampling_options_are_sent_only_when_they_are_set() -> None:
    more: dict[str, Any] = {"stop": ["。"], "seed": 7, "response_format": {"type": "json_object"}}
    options = ChatOptions(model="qwen-max", temperature=0.0, top_p=0.5, max_tokens=9, **more)
    async with played(saying("ok")) as (model, player):
        answer = await response_of(model, asking(options=options))
    assert answer.model == player.requests[0].body["model"] == "qwen-max"
    sampling = {"temperature": 0.0, "top_p": 0.5, "max_tokens": 9} | more
    assert player.requests[0].parameters == {"result_format": "message", **sampling}


NAMED = {"type": "function", "function": {"name": "get_weather"}}


@pytest.mark.parametrize(
    ("choice", "sent"), [("get_weather", NAMED), ("none", "none"), ("required", None), ("not_there", None)]
)
async def test_a_tool_that_is_offered_can_be_forced_and_forbidden(choice: str, sent: object) -> None:
    # DashScope refuses "required".
    async with played(saying("ok")) as (model, player):
        await response_of(model, asking(tools=(WEATHER,), options=ChatOptions(tool_choice=choice)))
    assert player.requests[0].parameters.get("tool_choice") == sent


@pytest.mark.parametrize("stream", [False, True])
async def test_with_thinking_the_request_is_streamed_and_text_is_emitted_only_for_streams(stream: bool) -> None:
    async with played(saying("四度"), extra_body={"enable_thinking": True}) as (model, player):
        events = await events_of(model, asking(stream=stream))
    assert player.requests[0].stream
    assert player.requests[0].parameters["enable_thinking"] is True
    assert player.requests[0].parameters["incremental_output"] is True
    assert streamed_text(events) == ("四度" if stream else "")
    assert isinstance(events[-1], ChatResponse)
    assert events[-1].message.text == "四度"


async def test_a_model_that_only_streams_is_asked_for_a_stream() -> None:
    async with played(saying("四度"), profile={"streams_only": True}) as (model, player):
        assert (await response_of(model, asking())).message.text == "四度"
    assert (player.requests[0].stream, player.requests[0].parameters["incremental_output"]) == (True, True)


async def test_options_that_it_does_not_take_are_left_out() -> None:
    options = ChatOptions(model="other", frequency_penalty=0.5, reasoning_effort="low", seed=1)
    async with played(saying("ok")) as (model, player):
        await response_of(model, asking(options=options))
    assert player.requests[0].parameters == {"result_format": "message", "seed": 1}


async def test_disabled_thinking_is_sent_without_a_stream() -> None:
    async with played(saying("ok"), extra_body={"enable_thinking": False}) as (model, player):
        await response_of(model, asking())
    assert player.requests[0].parameters == {"result_format": "message", "enable_thinking": False}


@pytest.mark.parametrize("endpoint", ["text", "multimodal"])
async def test_a_question_that_names_a_local_file_goes_out_as_text(endpoint: str) -> None:
    async with played(saying("ok"), endpoint=endpoint) as (model, player):
        await response_of(model, asking(UserMessage(__file__)))
    sent = [{"text": __file__}] if endpoint == "multimodal" else __file__
    assert player.requests[0].messages == [{"role": "user", "content": sent}]
    assert len(player.requests) == 1


@pytest.mark.parametrize(
    ("name", "endpoint", "task"),
    [
        ("qwen-plus", "auto", "text"),
        ("qwen-max", "auto", "text"),
        ("qwen-turbo", "auto", "text"),
        ("qwen-flash", "auto", "text"),
        ("qwen3-max", "auto", "text"),
        ("deepseek-v3", "auto", "text"),
        ("qwen3.5-plus", "auto", "multimodal"),
        ("qwen3.6-plus", "auto", "multimodal"),
        ("qwen3.8-max", "auto", "multimodal"),
        ("qwen-vl-max", "auto", "multimodal"),
        ("qwen3-vl", "auto", "multimodal"),
        ("qwen3-omni-flash", "auto", "multimodal"),
        ("qwen-plus", "multimodal", "multimodal"),
        ("qwen3.5-plus", "text", "text"),
    ],
)
async def test_the_endpoint_follows_the_model_unless_it_is_set(name: str, endpoint: str, task: str) -> None:
    async with played(saying("ok"), endpoint=endpoint, model=name) as (model, player):
        await response_of(model, asking())
    assert model.name == name
    assert player.requests[0].path == f"/api/v1/services/aigc/{task}-generation/generation"


def test_importing_the_provider_does_not_import_the_sdk_and_warming_up_does() -> None:
    check = (
        "import sys, logging, toolchat.models.dashscope.model as provider\n"
        "assert 'dashscope' not in sys.modules\n"
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
        ("DASHSCOPE_OPTIONS", "maybe"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=f"^{variable}: ") as caught:
        read_settings(DashScopeSettings)
    assert value not in str(caught.value)
