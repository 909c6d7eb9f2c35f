"""The Responses API: requests, whole answers and semantic events."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.models.openai.playing import AT_ONCE, CITY, QUESTION, SCHEMA, STREAMED, WEATHER, calls_of
from tests.models.responding import events_of, response_of, streamed_text
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, Script, message, sse, whole
from toolchat.errors import ContentFiltered, ProviderAuth, ToolchatError, UpstreamInvalid, UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    Usage,
    UserMessage,
)
from toolchat.models.base import ChatOptions, ChatResponse, Progress, Prompt
from toolchat.models.openai.model import OpenAICompatibleChatModel
from toolchat.models.openai.responses_wire import ResponsesTurn

REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather", "arguments": CITY}
OTHER_CALL = CALL | {"id": "fc_2", "call_id": "call_2"}
USAGE = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 10},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 15},
    "total_tokens": 50,
}


def text_item(*parts: str, kind: str = "output_text") -> dict[str, Any]:
    key = "refusal" if kind == "refusal" else "text"
    content = [{"type": kind, key: part, "annotations": []} for part in parts]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


def response(*output: dict[str, Any], status: str = "completed", **fields: Any) -> dict[str, Any]:
    base = {"id": "resp_1", "object": "response", "status": status, "model": "played", "error": None}
    return {**base, "incomplete_details": None, "output": list(output), "usage": USAGE, **fields}


def streamed(*output: dict[str, Any], last: dict[str, Any] | None = None, **fields: Any) -> Answer:
    """The events of a response; ``last`` replaces the last one."""
    events: list[object] = [{"type": "response.created", "response": response(status="in_progress", usage=None)}]
    for index, item in enumerate(output):
        started = {key: [] if key in ("content", "summary") else value for key, value in item.items()}
        events.append({"type": "response.output_item.added", "output_index": index, "item": started})
        for part in item.get("content", ()):
            kind = "refusal" if part["type"] == "refusal" else "output_text"
            text = part.get("text") or part.get("refusal")
            for letter in text:
                events.append({"type": f"response.{kind}.delta", "output_index": index, "delta": letter})
        if item["type"] == "reasoning":
            events.append({"type": "response.reasoning_summary_text.delta", "output_index": index, "delta": "Hm."})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    status = fields.get("status", "completed")
    end = last or {"type": f"response.{status}", "response": response(*output, **fields)}
    return sse(*events, end, done=False)


@asynccontextmanager
async def played(
    script: Script, **arguments: Any
) -> AsyncGenerator[tuple[OpenAICompatibleChatModel, OpenAIPlayer], None]:
    async with asyncio.timeout(60), aclosing(OutboundHttp()) as http, OpenAIPlayer(script) as player:
        arguments = {"api": "responses", "api_key": "sk-canary", **arguments}
        yield OpenAICompatibleChatModel(base_url=player.base_url, model="asked", http=http, **arguments), player


async def turn(answer: Answer, prompt: Prompt) -> ChatResponse:
    async with played([answer]) as (model, _):
        *events, last = await events_of(model, prompt)
    assert isinstance(last, ChatResponse)
    if prompt.stream:
        assert streamed_text(events) == last.message.text
    return last


async def test_a_request_stores_nothing_at_the_provider_and_contains_only_the_fields_in_use() -> None:
    async with played([whole(response(text_item("晴")))]) as (model, player):
        await events_of(model, AT_ONCE)
    (request,) = player.requests
    assert (request.method, request.path) == ("POST", "/v1/responses")
    assert request.body == {
        "model": "asked",
        "input": [{"role": "user", "content": QUESTION.text}],
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


async def test_options_and_tools_are_sent_in_the_names_of_this_api() -> None:
    schema = {"name": "answer", "schema": SCHEMA, "strict": True}
    options = ChatOptions(
        model="other", temperature=0.5, top_p=0.9, max_tokens=100, reasoning_effort="low", tool_choice="get_weather",
        parallel_tool_calls=False, response_format={"type": "json_schema", "json_schema": schema},
    )  # fmt: skip
    prompt = Prompt((SystemMessage("简短"), QUESTION), (WEATHER,), options, stream=True)
    async with played([streamed(text_item("晴"))]) as (model, player):
        await events_of(model, prompt)
    described = {"name": "get_weather", "description": "Tells the weather", "parameters": SCHEMA}
    assert player.requests[0].body == {
        "model": "other",
        "input": [{"role": "system", "content": "简短"}, {"role": "user", "content": QUESTION.text}],
        "store": False,
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 100,
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", **schema}},
        "include": ["reasoning.encrypted_content"],
        "stream": True,
        "parallel_tool_calls": False,
        "tool_choice": {"type": "function", "name": "get_weather"},
        "tools": [{"type": "function", **described, "strict": False}],
    }


CUT: dict[str, Any] = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
FILTERED: dict[str, Any] = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}


@pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED], ids=["at once", "stream"])
@pytest.mark.parametrize(
    ("output", "fields", "text", "calls", "reason"),
    [
        ([text_item("杭州", "晴")], {"object": "chat.completion"}, "杭州晴", [], "stop"),  # LiteLLM 1.83
        ([text_item("No.", kind="refusal")], {}, "No.", [], "stop"),
        ([CALL], {}, "", [("call_1", "get_weather", CITY)], "tool_calls"),
        ([CALL, OTHER_CALL], {}, "", [(f"call_{n}", "get_weather", CITY) for n in (1, 2)], "tool_calls"),
        ([REASONING, text_item("晴"), CALL], {}, "晴", [("call_1", "get_weather", CITY)], "tool_calls"),
        ([text_item("杭州")], CUT, "杭州", [], "length"),
        ([CALL], CUT, "", [("call_1", "get_weather", CITY)], "length"),
        ([text_item("杭")], FILTERED, "杭", [], "content_filter"),
    ],
)
async def test_a_response_is_read_whole_and_as_events(
    output: list[dict[str, Any]], fields: dict[str, Any], text: str, calls: list[Any], reason: str, prompt: Prompt
) -> None:
    answer = streamed(*output, **fields) if prompt.stream else whole(response(*output, **fields))
    found = await turn(answer, prompt)
    assert (found.message.text, calls_of(found), found.finish_reason) == (text, calls, reason)
    assert (found.model, found.usage) == ("played", Usage(30, 20, 10, 15))


async def test_a_stream_whose_last_event_repeats_no_output_is_complete_and_its_reasoning_is_progress() -> None:
    last = {"type": "response.completed", "response": response()}
    async with played([streamed(REASONING, CALL, last=last)]) as (model, _):
        *events, found = await events_of(model, STREAMED)
    assert isinstance(found, ChatResponse)
    assert calls_of(found) == [("call_1", "get_weather", CITY)]
    assert Progress("Hm.") in events


ANSWER = whole(response(text_item("晴")))
CALLED = {"type": "function_call", "name": "get_weather", "arguments": CITY}


async def sent(*messages: Message) -> list[dict[str, Any]]:
    """The input that is sent for a conversation."""
    async with played([ANSWER]) as (model, player):
        await response_of(model, Prompt(messages, (WEATHER,)))
    given: list[dict[str, Any]] = player.requests[0].body["input"]
    return given


async def test_reasoning_is_sent_back_in_its_place_within_the_turn_and_not_later() -> None:
    asked = (await turn(streamed(REASONING, CALL, REASONING | {"id": "rs_2"}, OTHER_CALL), STREAMED)).message
    results = ToolResponseMessage(tuple(ToolResponse(f"call_{n}", "get_weather", "晴") for n in (1, 2)))
    running = await sent(QUESTION, asked, results)
    later = await sent(QUESTION, asked, results, AssistantMessage("晴"), UserMessage("again"))
    first, second = (CALLED | {"call_id": f"call_{n}"} for n in (1, 2))
    outputs = [{"type": "function_call_output", "call_id": f"call_{n}", "output": "晴"} for n in (1, 2)]
    assert running[1:] == [REASONING, first, REASONING | {"id": "rs_2"}, second, *outputs]
    assert later[1:5] == [first, second, *outputs]


async def test_calls_that_an_advisor_changed_are_sent_back_as_they_are_now() -> None:
    asked = (await turn(streamed(REASONING, CALL), STREAMED)).message
    changed = AssistantMessage(asked.text, (ToolCall("call_9", "now", "not JSON"),), asked.extra)
    call = {"type": "function_call", "call_id": "call_9", "name": "now", "arguments": "{}"}
    assert (await sent(QUESTION, changed))[1:] == [REASONING, call]


async def test_reasoning_of_this_api_is_not_sent_to_chat_completions() -> None:
    asked = (await turn(streamed(REASONING, CALL), STREAMED)).message
    async with played([whole(message(content="晴"))], api="chat") as (model, player):
        await response_of(model, Prompt((QUESTION, asked), (WEATHER,)))
    assert "response_output" not in player.requests[0].body["messages"][1]


FAILED = {"type": "response.failed", "response": response(status="failed", error={"code": "server_error"})}
ERROR = {"type": "error", "code": "server_error", "message": "SECRET", "param": None}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (streamed(text_item("杭"), last=FAILED), UpstreamUnavailable),
        (streamed(text_item("杭"), last=ERROR), UpstreamUnavailable),
        (streamed(text_item("杭"), last={"type": "response.in_progress"}), UpstreamInvalid),
        (whole(FAILED["response"]), UpstreamUnavailable),
        (whole(response(status="failed")), UpstreamUnavailable),
        (streamed(text_item("杭"), status="cancelled"), UpstreamUnavailable),
        (whole(response(**FILTERED)), ContentFiltered),
        (sse(), UpstreamInvalid),
        (whole({"error": {"message": "no", "code": "invalid_api_key"}}, 401), ProviderAuth),
    ],
)
async def test_a_failure_is_an_error_wherever_it_is_told(answer: Answer, kind: type[ToolchatError]) -> None:
    with pytest.raises(kind) as caught:
        await turn(answer, STREAMED)
    assert "SECRET" not in str(caught.value)


NOT_ENCRYPTED = "Encrypted content is not supported with this model."


async def test_encrypted_reasoning_is_not_asked_for_once_the_model_has_refused_it() -> None:
    def answer(request: PlayedRequest) -> Answer:
        if "include" in request.body:
            return whole({"error": {"message": NOT_ENCRYPTED, "type": "invalid_request_error"}}, 400)
        return whole(response(text_item("晴")))

    async with played(answer) as (model, player):
        concurrent = await asyncio.gather(response_of(model, AT_ONCE), response_of(model, AT_ONCE))
        assert [each.message.text for each in concurrent] == ["晴", "晴"]
        assert (await response_of(model, AT_ONCE)).message.text == "晴"
    assert sorted("include" in each.body for each in player.requests) == [False, False, False, True, True]


async def test_calls_can_be_forbidden_while_tools_are_defined() -> None:
    async with played([ANSWER]) as (model, player):
        await events_of(model, Prompt((QUESTION,), (WEATHER,), ChatOptions(tool_choice="none")))
    body = player.requests[0].body
    assert (body["tool_choice"], [each["name"] for each in body["tools"]]) == ("none", ["get_weather"])


async def test_the_last_event_ends_a_response_without_waiting() -> None:
    text = {"type": "response.output_text.delta", "delta": "晴"}
    end = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    assert (await turn(sse(text, end, done=False, ending="hang"), STREAMED)).message.text == "晴"


def test_an_item_that_comes_again_is_no_second_call() -> None:
    answer = ResponsesTurn("asked")
    answer.add(response(REASONING, CALL, OTHER_CALL, CALL | {"id": "fc_3"}))
    message = answer.response().message
    assert [one.id for one in message.tool_calls] == ["call_1", "call_2"]
    assert message.extra["response_output"] == [REASONING, "call_1", "call_2", "call_1"]


async def test_the_phase_of_a_message_is_sent_back_in_every_turn() -> None:
    # https://openrouter.ai/docs/cookbook/evaluate-and-optimize/model-migrations/gpt-5-4
    told = text_item("Let me look.") | {"phase": "commentary"}
    asked = (await turn(streamed(REASONING, told, CALL), STREAMED)).message
    results = ToolResponseMessage((ToolResponse("call_1", "get_weather", "晴"),))
    changed = replace(asked, text="Other words.")
    running = await sent(QUESTION, asked, results)
    later = await sent(QUESTION, asked, results, UserMessage("again"))
    edited = await sent(QUESTION, changed, results)
    called = CALLED | {"call_id": "call_1"}
    assert running[1:4] == [REASONING, told, called]
    assert later[1:3] == [told, called]
    assert edited[1:4] == [REASONING, {"role": "assistant", "content": "Other words."}, called]
