"""What is sent to the provider: the fields of the request, its tools, and the messages of a tool round."""

from collections import UserDict
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from pydantic_core import from_json

from tests.models.openai.playing import AT_ONCE, CITY, QUESTION, SCHEMA, SECRET, STREAMED, WEATHER, model_at, played
from tests.models.responding import events_of
from tests.players.openai_player import OpenAIPlayer, delta, message, sse, whole
from toolchat.chat.client import ChatClient
from toolchat.http.client import OutboundHttp
from toolchat.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
)
from toolchat.models.base import ChatOptions, Prompt
from toolchat.models.dashscope.mapping import parts
from toolchat.models.openai.mapping import (
    map_message,
    map_messages,
    map_tool_call,
    map_tool_definition,
    write_messages,
)
from toolchat.models.openai.responses_wire import ResponsesWire
from toolchat.models.profiles import Profile
from toolchat.tool_calling.callback import ClientToolCallback
from toolchat.tool_calling.definition import ToolDefinition

ANSWER = whole(message(content="晴"))
ASKED = {"model": "asked", "messages": [{"role": "user", "content": QUESTION.text}]}
FUNCTION = {"name": "get_weather", "description": "Tells the weather", "parameters": SCHEMA}


@pytest.mark.parametrize("slash", ["", "/"])
async def test_a_classic_deployment_of_azure_gets_its_version_and_its_key(slash: str) -> None:
    # https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle
    async with aclosing(OutboundHttp()) as http, OpenAIPlayer([ANSWER]) as player:
        url = f"{player.base_url.removesuffix('/v1')}/openai/deployments/d{slash}?api-version=2024-10-21"
        await events_of(model_at(url, http), AT_ONCE)
    (request,) = player.requests
    assert request.path == "/openai/deployments/d/chat/completions?api-version=2024-10-21"
    assert (request.headers["api-key"], "authorization" in request.headers) == (SECRET, False)


async def test_the_request_contains_only_the_fields_in_use() -> None:
    async with played([ANSWER]) as (model, player):
        await events_of(model, AT_ONCE)
    (request,) = player.requests
    assert (request.method, request.path, request.body) == ("POST", "/v1/chat/completions", ASKED)
    expected = {"authorization": f"Bearer {SECRET}", "content-type": "application/json", "accept": "application/json"}
    assert request.headers.items() >= expected.items()


async def test_a_definition_does_not_say_which_properties_there_are_not() -> None:
    # Gemini refuses that: https://github.com/BerriAI/litellm/issues/14330, https://github.com/Laisky/one-api/issues/60
    def place(closed: Mapping[str, Any], name: str = "additionalProperties") -> dict[str, Any]:
        return {"type": "object", **closed, "properties": {name: {"type": "string"}}}

    def input_of(closed: Mapping[str, Any]) -> dict[str, Any]:
        within = {
            "place": place(closed),
            "places": {"type": "array", "items": place(closed)},
            "any": {"anyOf": [place(closed)]},
        }
        return {"type": "object", **closed, "properties": within, "$defs": {"Place": place(closed)}}

    tool = ToolDefinition("find", "Finds", input_of({"additionalProperties": False}))
    assert map_tool_definition(tool)["function"]["parameters"] == input_of({})
    others: list[dict[str, Any]] = [
        {"type": "object", "properties": {}, "additionalProperties": False},
        place({"additionalProperties": True}),
        place({"additionalProperties": {"type": "string"}}),
    ]
    for schema in others:
        assert map_tool_definition(replace(tool, input_schema=schema))["function"]["parameters"] == schema


async def test_the_request_carries_options_tools_and_streaming_when_they_are_set() -> None:
    sampling = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 100, "frequency_penalty": 0.5, "presence_penalty": -0.5}
    more = {"stop": ["\n"], "seed": 7, "reasoning_effort": "low", "response_format": {"type": "json_object"}}
    options: dict[str, Any] = {"model": "other", **sampling, **more}
    prompt = Prompt((SystemMessage("简短"), QUESTION), (WEATHER,), ChatOptions(**options), stream=True)
    async with played([sse(delta("stop", content="晴"))]) as (model, player):
        await events_of(model, prompt)
    (request,) = player.requests
    assert request.body == {
        **options,
        "messages": [{"role": "system", "content": "简短"}, *ASKED["messages"]],
        "tools": [{"type": "function", "function": FUNCTION}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert request.headers["accept"] == "text/event-stream"


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
    async with played([ANSWER]) as (model, player):
        await events_of(model, Prompt((QUESTION,), tools, options))
    body = player.requests[0].body
    assert (body.get("tool_choice"), body.get("parallel_tool_calls")) == (sent, False if tools else None)


class CountedSchema(UserDict[str, Any]):
    """A schema that counts how often it is read as a whole."""

    reads = 0

    def __iter__(self) -> Iterator[str]:
        self.reads += 1
        return super().__iter__()


async def test_the_tools_of_a_limited_caller_are_serialized_once_for_all_questions() -> None:
    def hidden() -> str:
        """Reads the clock."""
        return "12:00"

    schema = CountedSchema(SCHEMA)
    offered = ClientToolCallback(ToolDefinition("look_up", "Looks up", schema))
    async with played([ANSWER] * 2) as (model, player):
        client = ChatClient.create(model, tools=[offered, hidden])
        for _ in range(2):
            await client.prompt("天气").filter_tools(lambda name: name != "hidden").call().content()
    assert [[each["function"]["name"] for each in one.body["tools"]] for one in player.requests] == [["look_up"]] * 2
    assert schema.reads == 1


@pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED], ids=["at once", "stream"])
async def test_without_a_key_the_request_names_none(prompt: Prompt) -> None:
    async with played([ANSWER], key=None) as (model, player):
        await events_of(model, prompt)
    assert "authorization" not in player.requests[0].headers


def test_a_tool_round_is_written_as_the_provider_sent_it() -> None:
    signed = ToolCall("a", "get_weather", CITY, {"extra_content": {"t": 2}, "function": {"signature": "s"}})
    asked = AssistantMessage("", (signed, ToolCall("b", "now", "")), {"reasoning_content": "hm"})
    answered = ToolResponseMessage((ToolResponse("a", "get_weather", "晴"), ToolResponse("b", "now", "12:00")))
    function = {"name": "get_weather", "arguments": CITY, "signature": "s"}
    calls = [
        {"id": "a", "type": "function", "extra_content": {"t": 2}, "function": function},
        {"id": "b", "type": "function", "function": {"name": "now", "arguments": "{}"}},
    ]
    assert from_json(write_messages([QUESTION, asked, answered]))[1:] == [
        {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": calls},
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
        *(("get_weather", "get_weather"), ("天气", "天气"), ("default_api:view", "default_api_view")),
        *(("", "unknown"), ("a\nb", "a_b"), ("x" * 300, "x" * 64)),
    ],
)
def test_an_invented_name_is_sent_back_in_a_form_that_strict_servers_take(name: str, sent: str) -> None:
    assert map_tool_call(ToolCall("a", name, "{}"), [ToolDefinition("天气", "weather", {})])["function"]["name"] == sent


URL = "https://a.example/b.png"
PICTURED = UserMessage("What is it?", (URL,))
DRAWN = ToolResponseMessage((ToolResponse("1", "draw", "a house", images=(URL,)), ToolResponse("2", "look", "seen")))
TURN = (PICTURED, AssistantMessage("", (ToolCall("1", "draw", "{}"), ToolCall("2", "look", "{}"))), DRAWN)
TOLD = "What draw has returned:"


def by_completions(messages: tuple[Message, ...], profile: Profile) -> Any:
    return from_json(write_messages(messages, (), profile))


def by_responses(messages: tuple[Message, ...], profile: Profile) -> Any:
    return ResponsesWire().body("m", Prompt(messages), ChatOptions(), profile)["input"]


def by_dashscope(messages: tuple[Message, ...], profile: Profile) -> Any:
    return map_messages(messages, (), profile, partial(map_message, parts=parts))


@pytest.mark.parametrize(
    ("written", "text", "picture"),
    [
        (by_completions, lambda text: {"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": URL}}),
        (by_dashscope, lambda text: {"text": text}, {"image": URL}),
    ],
)
def test_images_are_parts_and_those_of_tools_follow_all_results(written: Any, text: Any, picture: Any) -> None:
    asked, _, drawn, seen, shown = written(TURN, Profile(images=True))
    assert asked["content"] == [text("What is it?"), picture]
    assert [each["role"] for each in (drawn, seen, shown)] == ["tool", "tool", "user"]
    assert (drawn["content"], shown["content"]) == ("a house", [text(TOLD), picture])


def test_responses_have_images_within_results() -> None:
    picture = {"type": "input_image", "image_url": URL}
    asked, *_, drawn, seen = by_responses(TURN, Profile(images=True))
    assert asked["content"] == [{"type": "input_text", "text": "What is it?"}, picture]
    assert drawn["output"] == [{"type": "input_text", "text": "a house"}, picture]
    assert seen["output"] == "seen"


@pytest.mark.parametrize("written", [by_completions, by_responses, by_dashscope])
def test_models_without_images_receive_a_note(written: Any) -> None:
    asked, *_, drawn, seen = written(TURN, Profile())
    assert asked["content"] == "What is it?\n[image left out]"
    assert drawn.get("output", drawn.get("content")) == "a house\n[image left out]"
    assert seen.get("output", seen.get("content")) == "seen"
