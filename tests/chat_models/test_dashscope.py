"""DashScope's native provider against a local server that plays its bytes."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from pydantic import SecretStr

from app.chat_models.base import ChatOptions, ChatResponse, ModelEvent, Progress, Prompt, TextDelta
from app.chat_models.dashscope.model import DashScopeChatModel, DashScopeSettings
from app.errors import (
    ConfigurationError,
    ContentFiltered,
    ContextTooLong,
    NotConfigured,
    ProviderAuth,
    ProviderRateLimited,
    ToolchatError,
    UpstreamInvalid,
    UpstreamUnavailable,
)
from app.http import OutboundHttp
from app.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    Usage,
    UserMessage,
)
from app.settings import read_settings
from app.tool_calling.definition import ToolDefinition
from tests.players.dashscope_player import (
    Answer,
    DashScopePlayer,
    Script,
    event,
    json_answer,
    saying,
    sensible_model,
    sse_answer,
    stream_of,
    whole,
)

KEY = "sk-0123456789abcdef"
WEATHER = ToolDefinition("get_weather", "Weather of a place", {"type": "object", "properties": {"city": {}}})
SILENCE = Answer(silent=True)
HTML = {"Content-Type": "text/html"}
JSON = {"Content-Type": "application/json"}


@asynccontextmanager
async def played(
    *script: Answer | Script, **settings: Any
) -> AsyncGenerator[tuple[DashScopeChatModel, DashScopePlayer], None]:
    http = OutboundHttp()
    try:
        async with asyncio.timeout(10), DashScopePlayer(*script) as player:
            yield DashScopeChatModel(configured(player.base_url, **settings), http), player
    finally:
        await http.aclose()


def configured(base_url: str, **settings: Any) -> DashScopeSettings:
    return DashScopeSettings(_env_file=None, api_key=SecretStr(KEY), base_url=base_url, **settings)


def asking(
    *messages: Message, stream: bool = False, tools: tuple[ToolDefinition, ...] = (), options: ChatOptions | None = None
) -> Prompt:
    return Prompt(messages or (UserMessage("杭州天气怎么样"),), tools, options or ChatOptions(), stream)


async def events_of(model: DashScopeChatModel, prompt: Prompt) -> list[ModelEvent]:
    async with aclosing(model.respond(prompt)) as events:
        return [event async for event in events]


async def response_of(model: DashScopeChatModel, prompt: Prompt) -> ChatResponse:
    *_, last = await events_of(model, prompt)
    assert isinstance(last, ChatResponse)
    return last


def streamed_text(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


# The request


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


async def test_a_streamed_request_asks_for_increments_as_server_sent_events() -> None:
    async with played(saying("ok")) as (model, player):
        await response_of(model, asking(stream=True))
    (request,) = player.requests
    assert request.stream
    assert request.parameters == {"result_format": "message", "incremental_output": True}


async def test_sampling_options_are_sent_only_when_they_are_set() -> None:
    options = ChatOptions(model="qwen-max", temperature=0.0, top_p=0.5, max_tokens=9)
    async with played(saying("ok")) as (model, player):
        answer = await response_of(model, asking(options=options))
    assert answer.model == player.requests[0].body["model"] == "qwen-max"
    sampling = {"temperature": 0.0, "top_p": 0.5, "max_tokens": 9}
    assert player.requests[0].parameters == {"result_format": "message", **sampling}


@pytest.mark.parametrize("stream", [False, True])
async def test_thinking_switched_on_is_a_stream_on_the_wire_but_shows_text_only_to_who_streams(stream: bool) -> None:
    async with played(saying("四度"), enable_thinking=True) as (model, player):
        events = await events_of(model, asking(stream=stream))
    assert player.requests[0].stream
    assert player.requests[0].parameters["enable_thinking"] is True
    assert player.requests[0].parameters["incremental_output"] is True
    assert streamed_text(events) == ("四度" if stream else "")
    assert isinstance(events[-1], ChatResponse)
    assert events[-1].message.text == "四度"


async def test_thinking_switched_off_is_said_without_a_stream() -> None:
    async with played(saying("ok"), enable_thinking=False) as (model, player):
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


async def test_a_tool_round_is_replayed_with_its_calls_and_one_tool_message_per_result() -> None:
    calls = (
        ToolCall("call_1", "get_weather", '{"city": "杭州"}', {"function": {"strict": True}}),
        ToolCall("call_2", "get_weather", '{"city": "南', {"index": 1}),
        ToolCall("call_3", "get_weather", '["not", "an", "object"]'),
    )
    results = ToolResponseMessage((ToolResponse("call_1", "get_weather", "19 度"), ToolResponse("call_2", "x", "坏")))
    async with played(saying("ok")) as (model, player):
        await response_of(model, asking(UserMessage("?"), AssistantMessage(tool_calls=calls), results))
    _, assistant, *tools = player.requests[0].messages
    assert assistant["role"] == "assistant"
    assert assistant["content"] == ""
    assert [call["function"]["arguments"] for call in assistant["tool_calls"]] == ['{"city": "杭州"}', "{}", "{}"]
    function = {"strict": True, "name": "get_weather", "arguments": '{"city": "杭州"}'}
    assert assistant["tool_calls"][0] == {"id": "call_1", "type": "function", "function": function}
    assert tools == [
        {"role": "tool", "content": "19 度", "tool_call_id": "call_1"},
        {"role": "tool", "content": "坏", "tool_call_id": "call_2"},
    ]


async def test_reasoning_is_sent_back_in_the_running_turn_and_not_in_later_ones() -> None:
    def said(text: str) -> AssistantMessage:
        return AssistantMessage(text, extra={"reasoning_content": f"about {text}"})

    async with played(saying("ok")) as (model, player):
        await response_of(model, asking(UserMessage("1"), said("old"), UserMessage("2"), said("new")))
    old, new = (message for message in player.requests[0].messages if message["role"] == "assistant")
    assert old == {"role": "assistant", "content": "old"}
    assert new == {"role": "assistant", "content": "new", "reasoning_content": "about new"}


async def test_a_tool_named_search_is_sent_under_its_name() -> None:
    async with played(saying("ok")) as (model, player):
        await response_of(model, asking(tools=(ToolDefinition("search", "Look it up", {"type": "object"}),)))
    assert player.requests[0].parameters["tools"][0]["function"]["name"] == "search"


async def test_requests_share_one_connection() -> None:
    async with played(saying("ok")) as (model, player):
        for stream in (False, True, True, False):
            await response_of(model, asking(stream=stream))
    assert (len(player.requests), player.connections) == (4, 1)


# The answer


async def test_a_whole_answer_gives_text_usage_and_reason() -> None:
    async with played(json_answer(whole({"content": "十九度"}))) as (model, _):
        answer = await response_of(model, asking())
    assert answer == ChatResponse(AssistantMessage("十九度"), "stop", Usage(22, 17), "qwen-plus")


async def test_a_streamed_answer_gives_its_text_in_pieces_and_the_last_usage() -> None:
    pieces = stream_of({"content": "杭州"}, {"content": "今天"}, {"content": "十九度"}, {})
    async with played(sse_answer(*pieces)) as (model, _):
        events = await events_of(model, asking(stream=True))
    answer = events[-1]
    assert isinstance(answer, ChatResponse)
    assert streamed_text(events) == answer.message.text == "杭州今天十九度"
    assert len([event for event in events if isinstance(event, TextDelta)]) > 1
    assert answer.usage == Usage(114, 8)
    assert answer.finish_reason == "stop"


async def test_text_that_was_held_back_comes_before_the_end() -> None:
    async with played(sse_answer(*stream_of({"content": "哈"}, {"content": "哈哈"}))) as (model, _):
        events = await events_of(model, asking(stream=True))
    assert isinstance(events[-1], ChatResponse)
    assert streamed_text(events) == events[-1].message.text == "哈哈哈"


@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_the_bytes_of_a_stream_may_be_cut_anywhere(size: int) -> None:
    data = b": heartbeat\n\n" + b"".join(stream_of({"content": "杭州\u2028今天"}, {"content": "data: [DONE]"}, {}))
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    async with played(sse_answer(*pieces)) as (model, _):
        answer = await response_of(model, asking(stream=True))
    assert answer.message.text == "杭州\u2028今天data: [DONE]"


@pytest.mark.parametrize("stream", [False, True])
async def test_reasoning_never_enters_the_text_and_is_kept_for_replay(stream: bool) -> None:
    thought = {"reasoning_content": "用户想知道天气。"}
    streamed = stream_of(thought, {"reasoning_content": "查。"}, {"content": "十九度"}, {"reasoning_content": None})
    answers = sse_answer(*streamed) if stream else json_answer(whole({"content": "十九度", **thought}))
    async with played(answers) as (model, _):
        *before, answer = await events_of(model, asking(stream=stream))
    assert isinstance(answer, ChatResponse)
    assert answer.message.text == "十九度"
    assert answer.message.extra == {"reasoning_content": "用户想知道天气。" + ("查。" if stream else "")}
    assert before[:1] == ([Progress()] if stream else [])


@pytest.mark.parametrize("stream", [False, True])
async def test_content_may_be_a_list_of_parts(stream: bool) -> None:
    parts: tuple[dict[str, Any], ...] = (
        {"content": []},
        {"content": [{"text": "十九"}]},
        {"content": [{"text": "度"}]},
        {"content": None},
    )
    whole_parts = whole({"content": [{"text": "十九"}, {"image": "x"}, {"text": "度"}]})
    async with played(sse_answer(*stream_of(*parts)) if stream else json_answer(whole_parts)) as (model, _):
        answer = await response_of(model, asking(stream=stream))
    assert answer.message.text == "十九度"


def fragment(call_id: str | None, name: str | None, arguments: object, index: int | None = None) -> dict[str, Any]:
    place = {} if index is None else {"index": index}
    function = {"name": name, "arguments": arguments} if name is not None else {"arguments": arguments}
    return {"type": "function", "id": call_id, "function": function, **place}


HANGZHOU = '{"location": "杭州"}'
FRAGMENTS: dict[str, tuple[tuple[dict[str, Any], ...], list[tuple[str, str]]]] = {
    "as in the official sample": (
        (fragment("call_1", "f", '{"location": "杭州'), fragment("", None, '"}')),
        [("f", HANGZHOU)],
    ),
    "with an index": (
        (fragment("call_1", "f", "", 0), fragment("", "", '{"location": ', 0), fragment("", "", '"杭州"}', 0)),
        [("f", HANGZHOU)],
    ),
    "null arguments first": ((fragment("call_1", "f", None), fragment("", None, HANGZHOU)), [("f", HANGZHOU)]),
    "no arguments at all": ((fragment("call_1", "f", None),), [("f", "")]),
    "no id at all": ((fragment(None, "f", HANGZHOU),), [("f", HANGZHOU)]),
    "arguments as an object": ((fragment("call_1", "f", {"location": "杭州"}),), [("f", '{"location":"杭州"}')]),
    "two calls side by side": (
        (
            fragment("call_1", "f", '{"a"', 0),
            fragment("call_2", "g", '{"b"', 1),
            fragment("", None, ": 1}", 0),
            fragment("", None, ": 2}", 1),
        ),
        [("f", '{"a": 1}'), ("g", '{"b": 2}')],
    ),
}


@pytest.mark.parametrize("reason", ["tool_calls", "stop", "length"])
@pytest.mark.parametrize("case", FRAGMENTS)
async def test_fragments_of_calls_are_put_together_whatever_the_finish_reason(case: str, reason: str) -> None:
    fragments, expected = FRAGMENTS[case]
    deltas = [{"tool_calls": [it], "reasoning_content": ""} for it in fragments]
    async with played(sse_answer(*stream_of(*deltas, finish_reason=reason))) as (model, _):
        answer = await response_of(model, asking(stream=True, tools=(WEATHER,)))
    assert [(call.name, call.arguments) for call in answer.message.tool_calls] == expected
    assert all(call.id for call in answer.message.tool_calls)
    assert answer.finish_reason == "tool_calls"
    assert answer.message.text == ""


async def test_text_before_a_call_is_kept() -> None:
    message = {"content": "我查一下。", "tool_calls": [fragment("call_1", "f", "{}")]}
    async with played(json_answer(whole(message, "tool_calls"))) as (model, _):
        answer = await response_of(model, asking(tools=(WEATHER,)))
    assert answer.message == AssistantMessage("我查一下。", (ToolCall("call_1", "f", "{}"),))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("tool_calls", "stop"),
        ("eos", "stop"),
    ],
)
async def test_finish_reasons_become_one_of_four_words(said: str, reason: str) -> None:
    async with played(sse_answer(*stream_of({"content": "x"}, {}, finish_reason=said))) as (model, _):
        assert (await response_of(model, asking(stream=True))).finish_reason == reason


DONE = event(" [DONE]")
USAGE_ONLY = event({"output": None, "usage": {"input_tokens": 1, "output_tokens": 2}})
NO_MESSAGE = event({"output": {"choices": [{"finish_reason": "null"}]}})
EMPTY_ROLE = event({"output": {"choices": [{"message": {"role": ""}}]}})
NO_CHOICES = event({"output": {"choices": []}, "usage": {"input_tokens": 3, "output_tokens": 4}})


@pytest.mark.parametrize(
    ("pieces", "usage"),
    [
        pytest.param((*stream_of({"content": "好"}, {}), DONE), Usage(114, 4), id="done marker at the end"),
        pytest.param((DONE, *stream_of({"content": "好"}, {})), Usage(114, 4), id="done marker at the start"),
        pytest.param((*stream_of({"content": "好"}, {}), USAGE_ONLY), Usage(1, 2), id="usage alone, no output"),
        pytest.param((NO_CHOICES, *stream_of({"content": "好"})), Usage(114, 2), id="no choices yet"),
        pytest.param((*stream_of({"content": "好"}), event("{broken")), Usage(114, 2), id="rubbish after the end"),
        pytest.param((*stream_of({"content": "好"}), event({"x": 1})), Usage(114, 2), id="unknown event after the end"),
        pytest.param((NO_MESSAGE, *stream_of({"content": "好"})), Usage(114, 2), id="no message"),
        pytest.param((EMPTY_ROLE, *stream_of({"content": "好"})), Usage(114, 2), id="empty role"),
        pytest.param((event({"output": {"text": "好", "finish_reason": "stop"}}),), Usage(), id="text form, no usage"),
    ],
)  # fmt: skip
async def test_oddities_of_a_stream_are_tolerated(pieces: tuple[bytes, ...], usage: Usage) -> None:
    async with played(sse_answer(*pieces)) as (model, _):
        answer = await response_of(model, asking(stream=True))
    assert (answer.message.text, answer.finish_reason, answer.usage) == ("好", "stop", usage)


async def test_a_json_body_that_answers_a_streamed_request_is_taken() -> None:
    async with played(json_answer(whole({"content": "十九度"}))) as (model, _):
        events = await events_of(model, asking(stream=True))
    assert streamed_text(events) == "十九度"


async def test_a_server_sent_line_longer_than_half_a_mebibyte_is_read() -> None:
    text = "好" * 250_000
    async with played(sse_answer(*stream_of({"content": text}))) as (model, _):
        assert (await response_of(model, asking(stream=True))).message.text == text


async def test_half_a_surrogate_pair_never_reaches_the_text() -> None:
    data = rb'{"output":{"choices":[{"message":{"content":"a\ud800b"},"finish_reason":"stop"}]}}'
    async with played(sse_answer(event(data))) as (model, _):
        assert (await response_of(model, asking(stream=True))).message.text == "a\ufffdb"


# The failures


def failure(code: str, message: str = "SECRET-BODY") -> dict[str, str]:
    return {"code": code, "message": message, "request_id": "566e3621"}


REFUSALS: list[tuple[int, str, str, type[ToolchatError]]] = [
    (400, "InvalidParameter", "url error, please check url", NotConfigured),
    (400, "InvalidParameter", "Tool names are not allowed to be [search]", UpstreamInvalid),
    (400, "InvalidParameter", "Range of input length should be [1, 30720]", ContextTooLong),
    (400, "DataInspectionFailed", "Output data may contain inappropriate content.", ContentFiltered),
    (400, "Arrearage", "Access denied, account is in arrears.", ProviderAuth),
    (401, "InvalidApiKey", "Invalid API-key provided.", ProviderAuth),
    (403, "AccessDenied.Unpurchased", "", ProviderAuth),
    (403, "AllocationQuota.FreeTierOnly", "", ProviderAuth),
    (404, "ModelNotFound", "Model not exist.", NotConfigured),
    (429, "Throttling", "", ProviderRateLimited),
    (429, "Throttling.RateQuota", "", ProviderRateLimited),
    (429, "Throttling.BurstRate", "", ProviderRateLimited),
    (429, "Throttling.AllocationQuota", "Allocated quota exceeded", ProviderRateLimited),
    (429, "Throttling.AllocationQuota", "Free allocated quota exceeded.", ProviderAuth),
    (429, "PrepaidBillOverdue", "", ProviderAuth),
    (500, "InternalError", "", UpstreamUnavailable),
    (500, "RequestTimeOut", "", UpstreamUnavailable),
    (503, "ModelUnavailable", "", UpstreamUnavailable),
]


@pytest.mark.parametrize("form", ["http", "http, streamed", "http as events", "event", "event after text"])
@pytest.mark.parametrize(("status", "code", "message", "expected"), REFUSALS)
async def test_a_refusal_is_known_by_its_code_wherever_it_comes(
    form: str, status: int, code: str, message: str, expected: type[ToolchatError]
) -> None:
    error = event(failure(code, message), kind="event:error", status=status)
    answers = {
        "http": json_answer(failure(code, message), status),
        "http, streamed": json_answer(failure(code, message), status),
        "http as events": sse_answer(error, status=status),
        "event": sse_answer(error),
        "event after text": sse_answer(*stream_of({"content": "杭"}, finish_reason=None), error),
    }
    async with played(answers[form]) as (model, player):
        with pytest.raises(ToolchatError) as caught:
            await response_of(model, asking(stream=form != "http"))
    assert type(caught.value) is expected
    assert len(player.requests) == 1


HALF_A_CALL = stream_of({"tool_calls": [fragment("call_1", "f", '{"a": ')]}, finish_reason=None)
TEXT = stream_of({"content": "杭州"}, finish_reason=None)
ENDLESS = stream_of({"content": "a" * 2**20}, {"content": "b" * 2**20}, finish_reason=None) * 9
DEEP = b'{"output":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
NESTED = b'{"output":' + b"[" * 500 + b"]" * 500 + b"}"


def failing(data: object, kind: str = "event:error") -> Answer:
    return sse_answer(event(data, kind=kind), ending="hang")


UNUSABLE: dict[str, tuple[bool, Answer, type[ToolchatError]]] = {
    "502 with HTML": (False, Answer((b"<html>SECRET-BODY",), 502, HTML), UpstreamUnavailable),
    "502 with HTML, streamed": (True, Answer((b"<html>SECRET-BODY",), 502, HTML), UpstreamUnavailable),
    "JSON error without a code": (False, json_answer({"error": "SECRET-BODY"}, 500), UpstreamUnavailable),
    "JSON error whose code is a number": (False, json_answer({"code": 7, "message": []}, 418), UpstreamInvalid),
    "error body that is no JSON": (False, json_answer(b"SECRET-BODY", 503), UpstreamInvalid),
    "error body that is empty": (False, json_answer(b"", 503), UpstreamInvalid),
    "events without a message, status 503": (True, sse_answer(status=503), UpstreamUnavailable),
    "business error with status 200": (False, json_answer(failure("Throttling")), UpstreamInvalid),
    "business error with status 200, streamed": (True, json_answer(failure("Throttling")), UpstreamInvalid),
    "output null": (False, json_answer({"output": None, "usage": None}), UpstreamInvalid),
    "output null beside usage": (False, json_answer({"output": None, "usage": {"input_tokens": 1}}), UpstreamInvalid),
    "output a number": (False, json_answer({"output": 7}), UpstreamInvalid),
    "no choices": (False, json_answer({"output": {"choices": []}}), UpstreamInvalid),
    "choices of nonsense": (False, json_answer({"output": {"choices": ["x"]}}), UpstreamInvalid),
    "JSON null": (False, json_answer(b"null"), UpstreamInvalid),
    "JSON array": (False, json_answer([1]), UpstreamInvalid),
    "broken JSON": (False, json_answer(b'{"output": SECRET-BODY'), UpstreamInvalid),
    "empty body": (False, json_answer(b""), UpstreamInvalid),
    "nested too deep for the SDK": (False, json_answer(DEEP), UpstreamInvalid),
    "nested too deep for us": (False, json_answer(NESTED), UpstreamInvalid),
    "bytes that are not UTF-8": (False, json_answer(b'{"output": "\xff\xfe"}'), UpstreamInvalid),
    "HTML with status 200": (False, Answer((b"<html>SECRET-BODY",), 200, HTML), UpstreamInvalid),
    "HTML with status 200, streamed": (True, Answer((b"<html>SECRET-BODY",), 200, HTML), UpstreamInvalid),
    "events for a plain request": (False, sse_answer(*TEXT), UpstreamInvalid),
    "not the length it says": (False, Answer((b"{",), headers=JSON, ending="cut"), UpstreamInvalid),
    "no event": (True, sse_answer(), UpstreamInvalid),
    "only a done marker": (True, sse_answer(DONE), UpstreamInvalid),
    "no finish reason": (True, sse_answer(*TEXT), UpstreamInvalid),
    "no finish reason, half a call": (True, sse_answer(*HALF_A_CALL), UpstreamInvalid),
    "cut after text": (True, sse_answer(*TEXT, ending="cut"), UpstreamInvalid),
    "cut in the middle of an event": (True, sse_answer(*TEXT, TEXT[0][:40], ending="cut"), UpstreamInvalid),
    "ends in the middle of an event": (True, sse_answer(*TEXT, TEXT[0][:40]), UpstreamInvalid),
    "cut in the middle of arguments": (True, sse_answer(*HALF_A_CALL, ending="cut"), UpstreamInvalid),
    "broken line": (True, sse_answer(*TEXT, event("{SECRET-BODY"), ending="hang"), UpstreamInvalid),
    "line of JSON that is no object": (True, sse_answer(event("[1]"), ending="hang"), UpstreamInvalid),
    "line that is not UTF-8": (True, sse_answer(event(b'{"output": "\xff"}'), ending="hang"), UpstreamInvalid),
    "line nested too deep": (True, sse_answer(event(DEEP), ending="hang"), UpstreamInvalid),
    "line longer than two mebibytes": (True, sse_answer(event("x" * 2**22), ending="hang"), UpstreamInvalid),
    "no end": (True, sse_answer(*ENDLESS), UpstreamInvalid),
    "error event with a blank": (True, failing(failure("Throttling"), "event: error"), UpstreamInvalid),
    "error event without a code": (True, failing({"message": "SECRET-BODY"}), UpstreamInvalid),
    "error event without a message": (True, failing({"code": "Throttling"}), UpstreamInvalid),
    "error without an event name": (True, failing(failure("Throttling"), "event:result"), UpstreamInvalid),
    "no byte": (False, SILENCE, UpstreamUnavailable),
}  # fmt: skip


@pytest.mark.parametrize("case", UNUSABLE)
async def test_what_is_no_answer_becomes_an_error_that_shows_nothing_of_it(case: str) -> None:
    stream, answer, expected = UNUSABLE[case]
    async with played(answer) as (model, player):
        with pytest.raises(ToolchatError) as caught:
            await response_of(model, asking(stream=stream))
        shown = caught.value.detail
    assert type(caught.value) is expected
    assert not any(secret in shown for secret in ("SECRET-BODY", KEY, player.base_url, "127.0.0.1"))


@pytest.mark.parametrize("stream", [False, True])
async def test_the_sdk_sends_a_request_twice_when_the_connection_is_lost_before_the_answer(stream: bool) -> None:
    async with played(SILENCE) as (model, player):
        with pytest.raises(UpstreamUnavailable):
            await response_of(model, asking(stream=stream))
    assert len(player.requests) == 2


async def test_a_limit_of_ours_does_not_make_the_sdk_send_again() -> None:
    async with played(Answer(silent=True, ending="hang")) as (model, player):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await response_of(model, asking(stream=True))
        await player.aborted.wait()
    assert len(player.requests) == 1


async def test_nobody_listening_is_unavailable() -> None:
    async with played(saying("ok")) as (model, player):
        await player.close()
        with pytest.raises(UpstreamUnavailable):
            await response_of(model, asking(stream=True))


async def test_a_closed_session_is_unavailable() -> None:
    http = OutboundHttp()
    async with DashScopePlayer(saying("ok")) as player:
        model = DashScopeChatModel(configured(player.base_url), http)
        await response_of(model, asking())
        await http.aclose()
        with pytest.raises(UpstreamUnavailable):
            await response_of(model, asking())


async def test_the_wait_that_a_refusal_asks_for_is_passed_on() -> None:
    async with played(json_answer(failure("Throttling"), 429, {"Retry-After": "7"})) as (model, _):
        with pytest.raises(ProviderRateLimited) as caught:
            await response_of(model, asking())
    assert caught.value.retry_after == 7


# Leaving


@pytest.mark.parametrize("stream", [False, True])
async def test_cancelling_before_the_answer_closes_the_connection(stream: bool) -> None:
    async with played(Answer(silent=True, ending="hang")) as (model, player):
        task = asyncio.create_task(response_of(model, asking(stream=stream)))
        await player.arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await player.aborted.wait()


async def test_leaving_a_stream_in_the_middle_closes_the_connection() -> None:
    async with played(sse_answer(*TEXT, *TEXT, ending="hang")) as (model, player):
        async with aclosing(model.respond(asking(stream=True))) as events:
            assert isinstance(await anext(events), TextDelta | Progress)
        await player.aborted.wait()


# The house


@pytest.mark.parametrize("stream", [False, True])
async def test_the_sensible_player_goes_through_a_whole_tool_round(stream: bool) -> None:
    async with played(sensible_model({"city": "杭州"})) as (model, player):
        question = UserMessage("杭州天气怎么样")
        first = await response_of(model, asking(question, stream=stream, tools=(WEATHER,)))
        (call,) = first.message.tool_calls
        result = ToolResponseMessage((ToolResponse(call.id, call.name, "19 度"),))
        prompt = asking(question, first.message, result, stream=stream, tools=(WEATHER,))
        second = await response_of(model, prompt)
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "杭州"})
    assert "19 度" in second.message.text
    assert player.requests[1].messages[2]["tool_call_id"] == call.id


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


def test_importing_the_provider_imports_neither_the_sdk_nor_aiohttp_and_warming_up_does() -> None:
    check = (
        "import sys, logging, app.chat_models.dashscope.model as provider\n"
        "assert not {'dashscope', 'aiohttp'} & set(sys.modules)\n"
        "provider.warm_up()\n"
        "assert 'dashscope' in sys.modules\n"
        "assert not logging.getLogger('dashscope').isEnabledFor(logging.CRITICAL)\n"
        "assert not logging.getLogger().handlers\n"
    )
    environment = {**os.environ, "DASHSCOPE_LOGGING_LEVEL": "debug", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-W", "error", "-c", check], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_base_url_with_a_place_for_the_workspace_needs_one() -> None:
    with pytest.raises(ConfigurationError, match="DASHSCOPE_WORKSPACE"):
        DashScopeChatModel(configured("https://{workspace_id}.cn-beijing.maas.aliyuncs.com/api/v1"), OutboundHttp())


def test_without_a_key_the_provider_does_not_start() -> None:
    with pytest.raises(ConfigurationError, match="DASHSCOPE_API_KEY"):
        DashScopeChatModel(DashScopeSettings(_env_file=None, api_key=None), OutboundHttp())


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


def test_every_setting_says_what_it_is() -> None:
    fields: Mapping[str, Any] = DashScopeSettings.model_fields
    assert all(field.description for field in fields.values())
