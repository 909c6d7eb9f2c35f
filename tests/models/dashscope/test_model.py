"""DashScope's native API: what it is sent, how its answers and its errors are read, and its connections."""

import asyncio
import gzip
import json
import logging
import os
import subprocess
import sys
from collections.abc import Awaitable
from contextlib import aclosing
from typing import Any

import pytest

import toolchat.models.dashscope.model as dashscope
from tests.models.dashscope.playing import KEY, asking, failure, model_at, played
from tests.models.responding import begun, events_of, response_of, streamed_text
from tests.players.dashscope_player import (
    Answer,
    DashScopePlayer,
    event,
    json_answer,
    saying,
    sse_answer,
    stream_of,
    whole,
)
from toolchat.errors import ConfigurationError, ProviderRateLimited, ToolchatError, UpstreamInvalid, UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.messages import (
    AssistantMessage,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    Usage,
    UserMessage,
)
from toolchat.models.base import ChatOptions, ChatResponse, Progress, TextDelta
from toolchat.models.dashscope.model import DashScopeChatModel
from toolchat.models.resilience import KEEPALIVE, ResilientChatModel, RetryPolicy
from toolchat.service.settings.base import read_settings
from toolchat.service.settings.providers import DashScopeSettings
from toolchat.tool_calling.definition import ToolDefinition

WEATHER = ToolDefinition("get_weather", "Weather of a place", {"type": "object", "properties": {"city": {}}})
SILENCE = Answer(is_silent=True)
HANGS = Answer(is_silent=True, ending="hang")
TEXT = stream_of({"content": "杭州"}, finish_reason=None)
DONE = event(" [DONE]")
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


async def test_the_sdk_sends_exactly_the_documented_body_through_our_session() -> None:
    search = ToolDefinition("search", "Weather of a place", WEATHER.input_schema)  # DashScope refuses this name
    async with played(saying("ok"), workspace="ws-1") as (model, player):
        await response_of(model, asking(SystemMessage("Be brief."), UserMessage("你好"), tools=(search,)))
    (request,) = player.requests
    assert request.path == "/api/v1/services/aigc/text-generation/generation"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-dashscope-workspace"] == "ws-1"
    assert "x-dashscope-sse" not in request.headers
    function = {"name": "search", "description": "Weather of a place", "parameters": dict(WEATHER.input_schema)}
    assert request.body == {
        "model": "qwen-plus",
        "input": {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "你好"}]},
        "parameters": {"result_format": "message", "tools": [{"type": "function", "function": function}]},
    }


MORE: dict[str, Any] = {"temperature": 0.0, "top_p": 0.5, "max_tokens": 9, "stop": ["。"], "seed": 7}
MORE["response_format"] = {"type": "json_object"}
INCREMENTAL = {"incremental_output": True}


@pytest.mark.parametrize(
    ("settings", "asked", "parameters"),
    [
        ({}, {"stream": True}, INCREMENTAL),
        ({}, {"options": ChatOptions(**MORE)}, MORE),
        ({}, {"options": ChatOptions(frequency_penalty=0.5, reasoning_effort="low", seed=1)}, {"seed": 1}),
        ({"extra_body": {"enable_thinking": False}}, {}, {"enable_thinking": False}),
        ({"extra_body": {"enable_thinking": True}}, {}, INCREMENTAL | {"enable_thinking": True}),
        ({"extra_body": {"enable_thinking": True}}, {"stream": True}, INCREMENTAL | {"enable_thinking": True}),
        ({"profile": {"streams_only": True}}, {}, INCREMENTAL),
    ],
    ids=[
        "a stream",
        "options",
        "those it does not take",
        "no thinking",
        "thinking",
        "both",
        "a model that streams only",
    ],
)
async def test_the_parameters_are_those_that_are_set_and_text_is_shown_only_in_a_stream(
    settings: dict[str, Any], asked: dict[str, Any], parameters: dict[str, Any]
) -> None:
    async with played(saying("四度"), **settings) as (model, player):
        events = await events_of(model, asking(**asked))
    (request,) = player.requests
    assert (request.parameters, request.stream) == (
        {"result_format": "message"} | parameters,
        "incremental_output" in parameters,
    )
    assert isinstance(events[-1], ChatResponse)
    assert (events[-1].message.text, streamed_text(events)) == ("四度", "四度" if "stream" in asked else "")


NAMED = {"type": "function", "function": {"name": "get_weather"}}


@pytest.mark.parametrize(
    ("choice", "sent"), [("get_weather", NAMED), ("none", "none"), ("required", None), ("not_there", None)]
)
async def test_a_tool_that_is_offered_can_be_forced_and_forbidden(choice: str, sent: object) -> None:
    # DashScope refuses "required".
    options = ChatOptions(model="qwen-max", tool_choice=choice)
    async with played(saying("ok")) as (model, player):
        answer = await response_of(model, asking(tools=(WEATHER,), options=options))
    assert player.requests[0].parameters.get("tool_choice") == sent
    assert answer.model == player.requests[0].body["model"] == "qwen-max"


@pytest.mark.parametrize(
    ("name", "endpoint", "task"),
    [
        *((name, "auto", "text") for name in ("qwen-plus", "qwen3-max", "deepseek-v3")),
        *((name, "auto", "multimodal") for name in ("qwen3.5-plus", "qwen3.8-max", "qwen-vl-max", "qwen3-vl")),
        ("qwen3-omni-flash", "auto", "multimodal"),
        ("qwen-plus", "multimodal", "multimodal"),
        ("qwen3.5-plus", "text", "text"),
    ],
)
async def test_the_endpoint_follows_the_model_unless_it_is_set_and_no_local_file_is_uploaded(
    name: str, endpoint: str, task: str
) -> None:
    async with played(saying("ok"), endpoint=endpoint, model=name) as (model, player):
        await response_of(model, asking(UserMessage(__file__)))
    (request,) = player.requests
    assert (model.name, request.path) == (name, f"/api/v1/services/aigc/{task}-generation/generation")
    assert request.messages == [{"role": "user", "content": [{"text": __file__}] if task == "multimodal" else __file__}]


async def test_a_tool_round_is_replayed_with_its_calls_its_reasoning_and_one_message_per_result() -> None:
    signed = ToolCall("call_1", "get_weather", '{"city": "杭州"}', {"function": {"strict": True}})
    asked = AssistantMessage("", (signed, ToolCall("call_2", "x", "[1]")), {"reasoning_content": "new"})
    results = ToolResponseMessage((ToolResponse("call_1", "get_weather", "19 度"), ToolResponse("call_2", "x", "坏")))
    old = AssistantMessage("old", extra={"reasoning_content": "old"})
    async with played(saying("ok")) as (model, player):
        await response_of(model, asking(UserMessage("1"), old, UserMessage("2"), asked, results))
    _, earlier, _, assistant, *tools = player.requests[0].messages
    assert earlier == {"role": "assistant", "content": "old"}
    function = {"strict": True, "name": "get_weather", "arguments": '{"city": "杭州"}'}
    assert (assistant["content"], assistant["reasoning_content"]) == ("", "new")
    assert assistant["tool_calls"][0] == {"id": "call_1", "type": "function", "function": function}
    assert assistant["tool_calls"][1]["function"]["arguments"] == "{}"
    assert tools == [
        {"role": "tool", "content": "19 度", "tool_call_id": "call_1"},
        {"role": "tool", "content": "坏", "tool_call_id": "call_2"},
    ]


@pytest.mark.parametrize("pieces", [("杭州", "今天", "十九度", ""), ("哈", "哈哈")], ids=["pieces", "held back"])
async def test_a_streamed_answer_gives_its_text_in_pieces_and_the_last_usage(pieces: tuple[str, ...]) -> None:
    async with played(sse_answer(*stream_of(*({"content": piece} for piece in pieces)))) as (model, _):
        *events, answer = await events_of(model, asking(stream=True))
    assert isinstance(answer, ChatResponse)
    assert streamed_text(events) == answer.message.text == "".join(pieces)
    assert len([event for event in events if isinstance(event, TextDelta)]) > 1
    assert (answer.usage, answer.finish_reason) == (Usage(114, 2 * len(pieces)), "stop")


@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_the_bytes_of_a_stream_may_be_cut_anywhere(size: int) -> None:
    data = b": heartbeat\n\n" + b"".join(stream_of({"content": "杭州\u2028今天"}, {"content": "data: [DONE]"}, {}))
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    async with played(sse_answer(*pieces)) as (model, _):
        answer = await response_of(model, asking(stream=True))
    assert answer.message.text == "杭州\u2028今天data: [DONE]"


@BOTH
async def test_reasoning_never_enters_the_text_and_is_kept_for_replay(stream: bool) -> None:
    thought = {"reasoning_content": "用户想知道天气。"}
    streamed = stream_of(thought, {"reasoning_content": "查。"}, {"content": "十九度"}, {"reasoning_content": None})
    answers = sse_answer(*streamed) if stream else json_answer(whole({"content": "十九度", **thought}))
    async with played(answers) as (model, _):
        *before, answer = await events_of(model, asking(stream=stream))
    assert isinstance(answer, ChatResponse)
    reasoning = "用户想知道天气。" + ("查。" if stream else "")
    assert answer.message == AssistantMessage(
        "十九度", extra={"reasoning_content": reasoning, "by": "127.0.0.1/qwen-plus"}
    )
    assert [each for each in before if each != KEEPALIVE][:1] == ([Progress("用户想知道天气。")] if stream else [])


USAGE_ONLY = event({"output": None, "usage": {"input_tokens": 1, "output_tokens": 2}})
NO_MESSAGE = event({"output": {"choices": [{"finish_reason": "null"}]}})
EMPTY_ROLE = event({"output": {"choices": [{"message": {"role": ""}}]}})
NO_CHOICES = event({"output": {"choices": []}, "usage": {"input_tokens": 3, "output_tokens": 4}})
FINE = stream_of({"content": [{"text": "好"}]})


@pytest.mark.parametrize(
    ("pieces", "usage"),
    [
        ((*stream_of({"content": "好"}, {"content": []}), DONE), Usage(114, 4)),
        ((DONE, *FINE), Usage(114, 2)),
        ((*FINE, USAGE_ONLY), Usage(1, 2)),
        ((NO_CHOICES, *FINE), Usage(114, 2)),
        ((*FINE, event("{broken")), Usage(114, 2)),
        ((*FINE, event({"x": 1})), Usage(114, 2)),
        ((NO_MESSAGE, *FINE), Usage(114, 2)),
        ((EMPTY_ROLE, *FINE), Usage(114, 2)),
        ((event({"output": {"text": "好", "finish_reason": "stop"}}),), Usage()),
    ],
    ids=[
        *("done at the end", "done at the start", "usage alone", "no choices yet", "rubbish after the end"),
        *("unknown event after the end", "no message", "empty role", "text form, no usage"),
    ],
)
async def test_oddities_of_a_stream_are_tolerated(pieces: tuple[bytes, ...], usage: Usage) -> None:
    async with played(sse_answer(*pieces)) as (model, _):
        answer = await response_of(model, asking(stream=True))
    assert (answer.message.text, answer.finish_reason, answer.usage) == ("好", "stop", usage)


SURROGATE = json.dumps(whole({"content": "a\ud800b"})).encode()


@pytest.mark.parametrize(
    ("answer", "stream", "text"),
    [
        (json_answer(whole({"content": "十九度"})), True, "十九度"),
        (sse_answer(*stream_of({"content": "好" * 250_000})), True, "好" * 250_000),
        (sse_answer(event(SURROGATE)), True, "a\ufffdb"),
        (json_answer(SURROGATE), False, "a\ufffdb"),
    ],
    ids=["JSON for a stream", "a line of 750 kB", "half a surrogate pair, streamed", "half a surrogate pair"],
)
async def test_an_unusual_answer_is_read(answer: Answer, stream: bool, text: str) -> None:
    async with played(answer) as (model, _):
        events = await events_of(model, asking(stream=stream))
    assert isinstance(events[-1], ChatResponse)
    assert (events[-1].message.text, streamed_text(events)) == (text, text if stream else "")


def fragment(call_id: str, name: str | None, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments} if name is not None else {"arguments": arguments}
    return {"type": "function", "id": call_id, "function": function}


@BOTH
async def test_text_before_a_call_is_kept_and_the_call_is_whole(stream: bool) -> None:
    spoken, first = {"content": "我查一下。"}, {"tool_calls": [fragment("call_1", "f", '{"a": ')]}
    pieces = stream_of(spoken, first, {"tool_calls": [fragment("", None, "1}")]}, finish_reason="tool_calls")
    complete = whole(spoken | {"tool_calls": [fragment("call_1", "f", '{"a": 1}')]}, "tool_calls")
    async with played(sse_answer(*pieces) if stream else json_answer(complete)) as (model, _):
        answer = await response_of(model, asking(stream=stream, tools=(WEATHER,)))
    assert answer.message == AssistantMessage("我查一下。", (ToolCall("call_1", "f", '{"a": 1}'),))
    assert answer.finish_reason == "tool_calls"


BEAT = b": heartbeat\n\n"


async def test_comments_show_that_the_stream_is_alive() -> None:
    async with played(sse_answer(BEAT, BEAT, *stream_of({"content": "晴"}, {}))) as (model, _):
        events = await events_of(model, asking(stream=True))
    assert events[:4] == [KEEPALIVE] * 4
    assert events.index(TextDelta("晴")) > 4


@pytest.mark.parametrize("rest", [(), (BEAT, BEAT), (USAGE_ONLY,), (b"data:{",)])
async def test_silence_after_the_finish_reason_ends_the_answer(  # claude-code-router#1271, bifrost#6784
    rest: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashscope, "FINISH_TIMEOUT", 0.05)
    answer = sse_answer(*stream_of({"content": "晴"}, {}), *rest, ending="hang")
    async with played(answer) as (model, _):
        assert (await response_of(model, asking(stream=True))).message.text == "晴"


@pytest.mark.parametrize("form", ["http", "http, streamed", "http as events", "event", "event after text"])
@pytest.mark.parametrize(
    ("status", "code", "message", "expected"),
    [  # test_provider_errors.py has all codes
        (400, "InvalidParameter", "Range of input length should be [1, 30720]", "context-too-long"),
        (400, "DataInspectionFailed", "Output data may contain inappropriate content.", "content-filtered"),
        (401, "InvalidApiKey", "Invalid API-key provided.", "provider-auth"),
        (429, "Throttling.AllocationQuota", "Free allocated quota exceeded.", "provider-quota"),
    ],
)
async def test_a_refusal_is_known_by_its_code_wherever_it_comes(
    form: str, status: int, code: str, message: str, expected: str
) -> None:
    error = event(failure(code, message), kind="event:error", status=status)
    answers = {
        "http as events": sse_answer(error, status=status),
        "event": sse_answer(error),
        "event after text": sse_answer(*stream_of({"content": "杭"}, finish_reason=None), error),
    }
    async with played(answers.get(form, json_answer(failure(code, message), status))) as (model, player):
        with pytest.raises(ToolchatError) as caught:
            await response_of(model, asking(stream=form != "http"))
    assert (caught.value.code, len(player.requests)) == (expected, 1)


async def test_the_retry_after_of_a_refusal_is_passed_on() -> None:
    async with played(json_answer(failure("Throttling"), 429, {"Retry-After": "7"})) as (model, _):
        with pytest.raises(ProviderRateLimited) as caught:
            await response_of(model, asking())
    assert caught.value.retry_after == 7


HTML = {"Content-Type": "text/html"}
JSON = {"Content-Type": "application/json"}
PAGE = Answer((b"<html>SECRET-BODY",), 200, HTML)
HALF_A_CALL = stream_of({"tool_calls": [fragment("call_1", "f", '{"a": ')]}, finish_reason=None)
ENDLESS = stream_of({"content": "a" * 2**20}, {"content": "b" * 2**20}, finish_reason=None) * 9
DEEP = b'{"output":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
NESTED = b'{"output":' + b"[" * 500 + b"]" * 500 + b"}"
PACKED = JSON | {"Content-Encoding": "gzip"}
BOMB = gzip.compress(json.dumps(whole({"content": "ok"})).encode() + b" " * 2**23)


def failing(data: object, kind: str = "event:error") -> Answer:
    return sse_answer(event(data, kind=kind), ending="hang")


UNAVAILABLE: dict[str, tuple[bool, Answer]] = {
    "502 with HTML": (False, Answer((b"<html>SECRET-BODY",), 502, HTML)),
    "JSON error without a code": (False, json_answer({"error": "SECRET-BODY"}, 500)),
    "events without a message, status 503": (True, sse_answer(status=503)),
    "no byte": (False, SILENCE),
}
INVALID: dict[str, tuple[bool, Answer]] = {
    "JSON error whose code is a number": (False, json_answer({"code": 7, "message": []}, 418)),
    "error body that is no JSON": (False, json_answer(b"SECRET-BODY", 503)),
    "business error with status 200": (False, json_answer(failure("Throttling"))),
    "business error with status 200, streamed": (True, json_answer(failure("Throttling"))),
    "output null": (False, json_answer({"output": None, "usage": None})),
    "no choices": (False, json_answer({"output": {"choices": []}})),
    "JSON array": (False, json_answer([1])),
    "broken JSON": (False, json_answer(b'{"output": SECRET-BODY')),
    "empty body": (False, json_answer(b"")),
    "nested too deep for the SDK": (False, json_answer(DEEP)),
    "nested too deep for us": (False, json_answer(NESTED)),
    "bytes that are not UTF-8": (False, json_answer(b'{"output": "\xff\xfe"}')),
    "HTML with status 200": (False, PAGE),
    "HTML with status 200, streamed": (True, PAGE),
    "events for a plain request": (False, sse_answer(*TEXT)),
    "not the length it says": (False, Answer((b"{",), headers=JSON, ending="cut")),
    "too long once unpacked": (False, Answer((BOMB,), headers=PACKED)),
    "error too long once unpacked": (False, Answer((BOMB,), 503, PACKED | HTML)),
    "redirect": (False, Answer(status=307, headers={"Location": "/SECRET-BODY"})),
    "redirect, streamed": (True, Answer(status=307, headers={"Location": "/SECRET-BODY"})),
    "no event": (True, sse_answer()),
    "only a done marker": (True, sse_answer(DONE)),
    "no finish reason": (True, sse_answer(*TEXT)),
    "cut after text": (True, sse_answer(*TEXT, ending="cut")),
    "cut in the middle of an event": (True, sse_answer(*TEXT, TEXT[0][:40], ending="cut")),
    "ends in the middle of an event": (True, sse_answer(*TEXT, TEXT[0][:40])),
    "broken line": (True, sse_answer(*TEXT, event("{SECRET-BODY"), ending="hang")),
    "line that is not UTF-8": (True, sse_answer(event(b'{"output": "\xff"}'), ending="hang")),
    "line nested too deep": (True, sse_answer(event(DEEP), ending="hang")),
    "line longer than two mebibytes": (True, sse_answer(*stream_of({"content": "x" * 2**22}))),
    "no end": (True, sse_answer(*ENDLESS)),
    "error event with a blank": (True, failing(failure("Throttling"), "event: error")),
    "error event without a code": (True, failing({"message": "SECRET-BODY"})),
    "error without an event name": (True, failing(failure("Throttling"), "event:result")),
}


@pytest.mark.parametrize("case", [*UNAVAILABLE, *INVALID])
async def test_an_invalid_response_becomes_an_error_without_its_content(case: str) -> None:
    stream, answer = {**UNAVAILABLE, **INVALID}[case]
    async with played(answer) as (model, player):
        with pytest.raises(ToolchatError) as caught:
            await response_of(model, asking(stream=stream))
        shown = caught.value.detail
    assert type(caught.value) is (UpstreamUnavailable if case in UNAVAILABLE else UpstreamInvalid)
    assert not any(secret in shown for secret in ("SECRET-BODY", KEY, player.base_url, "127.0.0.1"))
    assert ("check DASHSCOPE_BASE_URL" in shown) is case.startswith(("HTML", "events for"))


@BOTH
async def test_a_page_at_a_wrong_address_is_not_requested_again(stream: bool) -> None:
    async with played(PAGE) as (model, player):
        with pytest.raises(UpstreamInvalid) as caught:
            await response_of(ResilientChatModel(model, total_timeout=5, idle_timeout=5), asking(stream=stream))
    assert (caught.value.retryable, len(player.requests)) == (False, 1)


async def test_a_kept_connection_that_was_closed_costs_no_attempt() -> None:
    answers = iter([json_answer(whole({"content": "杭州"})), Answer(ending="cut", is_silent=True)])
    async with played(lambda _: next(answers, json_answer(whole({"content": "晴"})))) as (model, player):
        once = ResilientChatModel(model, total_timeout=60, idle_timeout=60, retry=RetryPolicy(1))
        texts = [(await response_of(once, asking())).message.text for _ in range(2)]
    assert (texts, len(player.requests), player.connections) == (["杭州", "晴"], 3, 2)


async def test_requests_share_one_connection_of_ours_and_none_stays_open() -> None:
    async with DashScopePlayer(saying("ok")) as player, aclosing(OutboundHttp()) as http:
        model = model_at(player.base_url, http)
        for stream in (False, True, True, False):
            assert (await response_of(model, asking(stream=stream))).message.text == "ok"
        assert (len(player.requests), http.connections, player.connections) == (4, 1, 1)
        await http.aclose()
        assert http.connections == 0
        with pytest.raises(UpstreamUnavailable):
            await response_of(model, asking())


@pytest.mark.parametrize("is_kept", [False, True])
@BOTH
async def test_a_connection_lost_before_the_response_is_unavailable_and_not_retried(
    stream: bool, is_kept: bool
) -> None:
    # The SDK sends a request once more when aiohttp says so; whether a turn is tried again is our decision alone.
    async with played(*[saying("ok")] * is_kept, SILENCE) as (model, player):
        for _ in range(is_kept):
            await response_of(model, asking())
        with pytest.raises(UpstreamUnavailable) as lost:
            await response_of(model, asking(stream=stream))
    assert lost.value.retryable
    assert (len(player.requests), player.connections) == (1 + is_kept, 1)


async def timed_out_on(event: asyncio.Event, work: Awaitable[object]) -> None:
    """Do the work under a time limit that strikes as soon as the event has come, however slow the machine is."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        coming = asyncio.create_task(event.wait())
        coming.add_done_callback(lambda _: limit.reschedule(loop.time()))
        await work


@BOTH
async def test_a_limit_of_ours_closes_the_connection_and_the_sdk_does_not_send_again(stream: bool) -> None:
    async with played(HANGS) as (model, player):
        with pytest.raises(TimeoutError):
            await timed_out_on(player.asked, response_of(model, asking(stream=stream)))
        await player.aborted.wait()
    assert len(player.requests) == 1


async def test_leaving_a_stream_in_the_middle_closes_the_connection() -> None:
    async with played(sse_answer(*TEXT, *TEXT, ending="hang")) as (model, player):
        async with begun(model, asking(stream=True)) as first:
            assert isinstance(first, TextDelta | Progress)
        await player.aborted.wait()


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


async def test_the_sdk_logs_and_prints_nothing_when_a_request_fails(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with played(SILENCE) as (model, _):
        with pytest.raises(UpstreamUnavailable):
            await response_of(model, asking())
    assert [record for record in caplog.records if record.name.startswith("dashscope")] == []
    assert capfd.readouterr() == ("", "")


def test_without_a_key_or_the_workspace_of_its_address_the_provider_does_not_start() -> None:
    with pytest.raises(ConfigurationError, match="DASHSCOPE_API_KEY"):
        DashScopeChatModel(api_key="")
    with pytest.raises(ConfigurationError, match="DASHSCOPE_WORKSPACE"):
        model_at("https://{workspace_id}.cn-beijing.maas.aliyuncs.com/api/v1", OutboundHttp())


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
