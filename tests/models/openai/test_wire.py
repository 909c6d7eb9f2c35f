"""What is sent to the provider, and the connections that it is sent over."""

import asyncio
import json
from collections import UserDict
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest
from pydantic_core import from_json

from tests.models.openai.playing import (
    AT_ONCE,
    CITY,
    LIMIT,
    QUESTION,
    SCHEMA,
    SECRET,
    STREAMED,
    WEATHER,
    model_at,
    played,
)
from tests.models.responding import begun, events_of, response_of
from tests.players.openai_player import Answer, OpenAIPlayer, delta, message, sensible_model, sse, whole
from toolchat.chat.client import ChatClient
from toolchat.errors import ProviderRateLimited, UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.messages import AssistantMessage, SystemMessage, ToolCall, ToolResponse, ToolResponseMessage, Usage
from toolchat.models.base import ChatOptions, Prompt, TextDelta
from toolchat.models.openai.mapping import map_tool_call, write_messages
from toolchat.models.openai.model import OpenAICompatibleChatModel
from toolchat.tool_calling.callback import ClientToolCallback
from toolchat.tool_calling.definition import ToolDefinition


@pytest.mark.parametrize("slash", ["", "/"])
async def test_a_classic_deployment_of_azure_gets_its_version_and_its_key(slash: str) -> None:
    # https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle
    async with aclosing(OutboundHttp()) as http, OpenAIPlayer([whole(message(content="晴"))]) as player:
        url = f"{player.base_url.removesuffix('/v1')}/openai/deployments/d{slash}?api-version=2024-10-21"
        await events_of(model_at(url, http), AT_ONCE)
    (request,) = player.requests
    assert request.path == "/openai/deployments/d/chat/completions?api-version=2024-10-21"
    assert request.headers["api-key"] == SECRET
    assert "authorization" not in request.headers


async def test_the_request_contains_only_the_fields_in_use() -> None:
    async with played([whole(message(content="晴"))]) as (model, player):
        await events_of(model, AT_ONCE)
    (request,) = player.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.body == {"model": "asked", "messages": [{"role": "user", "content": QUESTION.text}]}
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept"] == "application/json"


async def test_the_request_carries_options_tools_and_streaming_when_they_are_set() -> None:
    options = ChatOptions(model="other", temperature=0.5, top_p=0.9, max_tokens=100)
    prompt = Prompt((SystemMessage("简短"), QUESTION), (WEATHER,), options, stream=True)
    async with played([sse(delta("stop", content="晴"))]) as (model, player):
        await events_of(model, prompt)
    (request,) = player.requests
    function = {"name": "get_weather", "description": "Tells the weather", "parameters": SCHEMA}
    assert request.body == {
        "model": "other",
        "messages": [{"role": "system", "content": "简短"}, {"role": "user", "content": QUESTION.text}],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 100,
        "tools": [{"type": "function", "function": function}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert request.headers["accept"] == "text/event-stream"


async def test_options_that_have_one_name_on_both_sides_are_sent_as_they_are() -> None:
    options: dict[str, Any] = {
        "stop": ["\n"],
        "seed": 7,
        "frequency_penalty": 0.5,
        "presence_penalty": -0.5,
        "reasoning_effort": "low",
        "response_format": {"type": "json_object"},
    }
    async with played([whole(message(content="晴"))]) as (model, player):
        await events_of(model, Prompt((QUESTION,), options=ChatOptions(**options)))
    assert player.requests[0].body.items() >= options.items()


@pytest.mark.parametrize(
    ("choice", "tools", "sent"),
    [
        ("required", (WEATHER,), "required"),
        ("get_weather", (WEATHER,), {"type": "function", "function": {"name": "get_weather"}}),
        ("not_there", (WEATHER,), None),
        ("none", (WEATHER,), "none"),
        ("required", (), None),
    ],
)
async def test_a_tool_is_forced_only_where_it_is_offered(choice: str, tools: tuple[Any, ...], sent: Any) -> None:
    options = ChatOptions(tool_choice=choice, parallel_tool_calls=False)
    async with played([whole(message(content="晴"))]) as (model, player):
        await events_of(model, Prompt((QUESTION,), tools, options))
    body = player.requests[0].body
    assert (body.get("tool_choice"), body.get("parallel_tool_calls")) == (sent, False if tools else None)


async def test_calls_can_be_forbidden_while_tools_are_defined_on_the_other_api_too() -> None:
    output = [{"type": "message", "content": [{"type": "output_text", "text": "晴"}]}]
    answer = whole({"object": "response", "status": "completed", "output": output})
    async with (
        OpenAIPlayer([answer]) as player,
        OpenAICompatibleChatModel(api="responses", base_url=player.base_url) as model,
    ):
        await events_of(model, Prompt((QUESTION,), (WEATHER,), ChatOptions(tool_choice="none")))
    body = player.requests[0].body
    assert (body["tool_choice"], [each["name"] for each in body["tools"]]) == ("none", ["get_weather"])


class _CountedSchema(UserDict[str, Any]):
    """A schema that counts how often it is read as a whole."""

    reads = 0

    def __iter__(self) -> Iterator[str]:
        self.reads += 1
        return super().__iter__()


async def test_the_tools_of_a_limited_caller_are_serialized_once_for_all_questions() -> None:
    schema = _CountedSchema(SCHEMA)
    offered = ClientToolCallback(ToolDefinition("look_up", "Looks up", schema))
    async with played([whole(message(content="晴"))] * 2) as (model, player):
        client = ChatClient.create(model, tools=[offered, read_clock])
        for _ in range(2):
            await client.prompt("天气").filter_tools(lambda name: name != "read_clock").call().content()
    assert [[each["function"]["name"] for each in one.body["tools"]] for one in player.requests] == [["look_up"]] * 2
    assert schema.reads == 1


def read_clock() -> str:
    """Reads the clock."""
    return "12:00"


@pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED], ids=["at once", "stream"])
async def test_without_a_key_the_request_names_none(prompt: Prompt) -> None:
    async with played([whole(message(content="晴"))], key=None) as (model, player):
        await events_of(model, prompt)
    assert "authorization" not in player.requests[0].headers


def test_a_tool_round_is_written_as_the_provider_sent_it() -> None:
    signed = ToolCall("a", "get_weather", CITY, {"extra_content": {"t": 2}, "function": {"signature": "s"}})
    asked = AssistantMessage("", (signed, ToolCall("b", "now", "")), {"reasoning_content": "hm"})
    answered = ToolResponseMessage((ToolResponse("a", "get_weather", "晴"), ToolResponse("b", "now", "12:00")))
    assert from_json(write_messages([QUESTION, asked, answered]))[1:] == [
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "extra_content": {"t": 2},
                    "function": {"name": "get_weather", "arguments": CITY, "signature": "s"},
                },
                {"id": "b", "type": "function", "function": {"name": "now", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "晴"},
        {"role": "tool", "tool_call_id": "b", "content": "12:00"},
    ]


@pytest.mark.parametrize(
    "arguments",
    ["", " ", '{"ci', "null", "[1]", '"x"', "{} {}", "{'a': 1}", '{"a": NaN}', "[" * 5000, '{"a":"\\ud800"}'],
)
def test_broken_arguments_are_sent_back_as_an_empty_object(arguments: str) -> None:
    assert map_tool_call(ToolCall("a", "now", arguments))["function"]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("get_weather", "get_weather"),
        ("天气", "天气"),
        ("default_api:view", "default_api_view"),
        ("", "unknown"),
        ("a\nb", "a_b"),
        ("x" * 300, "x" * 64),
    ],
)
def test_an_invented_name_is_sent_back_in_a_form_that_strict_servers_take(name: str, sent: str) -> None:
    assert map_tool_call(ToolCall("a", name, "{}"), [ToolDefinition("天气", "weather", {})])["function"]["name"] == sent


@pytest.mark.parametrize("stream", [False, True], ids=["at once", "stream"])
async def test_a_whole_tool_round_goes_through_the_sensible_player(stream: bool) -> None:
    async with played(sensible_model({"city": "杭州"})) as (model, _):
        first = await response_of(model, Prompt((QUESTION,), (WEATHER,), stream=stream))
        (call,) = first.message.tool_calls
        assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "杭州"})
        answered = ToolResponseMessage((ToolResponse(call.id, call.name, "晴 21 °C"),))
        prompt = Prompt((QUESTION, first.message, answered), (WEATHER,), stream=stream)
        second = await response_of(model, prompt)
    assert second.message.text == "The tools say: 晴 21 °C"
    assert (second.usage, second.model) == (Usage(20, 5), "played")


async def test_no_connection_is_upstream_unavailable() -> None:
    async with OpenAIPlayer([]) as player:
        url = player.base_url
    async with aclosing(OutboundHttp()) as http:
        with pytest.raises(UpstreamUnavailable):
            await events_of(model_at(url, http), STREAMED)


async def test_leaving_the_stream_closes_the_upstream_connection() -> None:
    async with played([sse(delta(content="晴"), done=False, ending="hang")]) as (model, player):
        async with begun(model, STREAMED) as first:
            assert first == TextDelta("晴")
        await player.aborted.wait()


@pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED], ids=["at once", "stream"])
async def test_cancelling_the_question_closes_the_upstream_connection(prompt: Prompt) -> None:
    async with played([Answer(ending="hang")]) as (model, player):
        task = asyncio.create_task(events_of(model, prompt))
        await player.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await player.aborted.wait()


async def test_one_connection_serves_all_questions_and_all_kinds_of_answers() -> None:
    answers = [
        sse(delta("stop", content="a")),
        whole(message(content="b")),
        whole({"error": LIMIT}, 429),
        sse(delta("stop", content="c")),
    ]
    async with played(answers) as (model, player):
        for _ in range(2):
            await events_of(model, STREAMED)
        with pytest.raises(ProviderRateLimited):
            await events_of(model, STREAMED)
        await events_of(model, STREAMED)
    assert player.connections == 1
