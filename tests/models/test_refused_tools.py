"""Refusals that name a tool: the question goes on without it, and so does every later one."""

import hashlib
import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.models.dashscope import playing as dashscope
from tests.models.openai import test_responses_wire as responses
from tests.models.openai.playing import QUESTION, played
from tests.models.responding import response_of
from tests.players.dashscope_player import event, json_answer, saying, sse_answer, stream_of
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.service.observability.reading import figures_of
from tests.serving import service
from toolchat.errors import ProviderRateLimited, ToolchatError, UpstreamInvalid
from toolchat.models.base import ChatModel, ChatOptions, Prompt
from toolchat.models.refused_tools import refused_tool
from toolchat.models.resilience import ResilientChatModel, RetryPolicy
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata

KEY = "operator-" + "k" * 30
OPERATOR = f"operator={hashlib.sha256(KEY.encode()).hexdigest()}"
SEARCH = "Tool names are not allowed to be [search]"
NO_ITEMS = "array schema missing items."
SCHEMA = {"type": "object", "properties": {}}
DRAFT = "JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12)."
GEMINI = "* GenerateContentRequest.tools[0].function_declarations[{}].parameters.properties[{}].items: missing field."
NULL = "schema must be a JSON Schema of 'type: \"object\"', got 'type: null'."
GROQ = "invalid JSON schema for tool {}, tools[24].function.parameters: 'required' present but 'properties' is missing"
PATTERN = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."


def tools(*names: str) -> tuple[ToolDefinition, ...]:
    return tuple(ToolDefinition(name, f"Does {name}", SCHEMA) for name in names)


MANY = tools(*(f"tool_{number}" for number in range(60)), "get_room", "ls", "view", "search", "items", "room")

RECORDED = [
    # OpenAI and what is compatible: modelscope/ms-agent#610, esengine/DeepSeek-Reasonix#4086, livekit/agents#4610
    (f"Invalid schema for function 'get_room': In context=('properties', 'items'), {NO_ITEMS}", "get_room"),
    ("Invalid schema for function 'ls': null is not of type \"array\"", "ls"),
    ("Invalid schema for function 'room': In context=('properties', 'kwargs'), schema must have a 'type' key.", "room"),
    # DeepSeek: Kilo-Org/kilocode#12237, zed-industries/zed#57531
    (f"Invalid schema for function 'view': {NULL}", "view"),
    (f"Invalid 'tools[11].function.name': {PATTERN}", "tool_11"),
    # OpenAI's Responses
    (f"Invalid 'tools[0].name': {PATTERN}", "tool_0"),
    # Groq, by LiteLLM: usestrix/strix#1088
    (f'litellm.BadRequestError: GroqException - {{"error":{{"message":"{GROQ.format("view")}"', "view"),
    # Anthropic: anthropics/claude-code#63673, by Bedrock: acomagu/vscode-as-mcp-server#6, langchain4j/langchain4j#5097
    (f"tools.12.custom.input_schema: {DRAFT}", "tool_12"),
    (f"The model returned the following errors: tools.18.custom.input_schema: {DRAFT}", "tool_18"),
    ("The model returned the following errors: tools.0.custom: Invalid schema: Reference to", "tool_0"),
    # Bedrock: kirodotdev/Kiro#11026
    ("The value at toolConfig.tools.26.toolSpec.inputSchema.json.type must be one of: object.", "tool_26"),
    # Gemini: cline/cline#7339
    ("\n".join(GEMINI.format(*each) for each in ((16, "includeTags"), (16, "actions"), (18, "sources"))), "tool_16"),
    # Mistral: mistralai/client-python#91
    ("body.tools.0.function.required: Extra inputs are not permitted", "tool_0"),
    # DashScope: QwenLM/qwen-code#384
    (f"<400> InternalError.Algo.InvalidParameter: {SEARCH}", "search"),
    # Which tool is meant is not said: MoonshotAI/kimi-cli#2061, vllm-project/vllm#16321
    ("tools.function.parameters is not a valid moonshot flavored json schema, details: <At path 'root'>", ""),
    ("The provided JSON schema contains features not supported by xgrammar.", ""),
    # It is not about a definition: BerriAI/litellm#19384 counts from 1; mcp-use/mcp-use#90
    ("Value at 'toolConfig.tools.1.member.toolSpec.name' failed to satisfy constraint", ""),
    (f"Invalid 'messages[9].tool_calls[0].function.name': {PATTERN}", ""),
    ("Invalid 'tools[99].function.name'", ""),
    ("Invalid 'tools': array too long. Expected an array with maximum length 128", ""),
    ("Unknown parameter: 'messages[1].view'.", ""),
    ("view_all and get-room are no function names", ""),
    ("Invalid value for content: 'tell me what get_room and tools[3] do'", ""),
    ("", ""),
]  # fmt: skip


PLACES = [
    ("Invalid parameter", "tools[2].function.parameters", "tool_2"),
    ("Invalid parameter", "tools.3.parameters", "tool_3"),
    ("Invalid schema for function 'view'", "tools[2].function.parameters", "view"),
    ("Invalid parameter", "messages[0].tools[2]", ""),
    ("Invalid parameter", "room", ""),
]
"""Words, the param apart from them, and the tool that either names."""


@pytest.mark.parametrize(("refusal", "param", "named"), [*((each[0], "", each[1]) for each in RECORDED), *PLACES])
def test_a_refusal_names_its_tool_or_none(refusal: str, param: str, named: str) -> None:
    found = refused_tool(refusal, MANY, param)
    assert (found.name if found else "") == named


@given(names=st.lists(st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True), min_size=1, unique=True), data=st.data())
def test_whatever_a_tool_is_called_openai_names_it(names: list[str], data: st.DataObject) -> None:
    meant = data.draw(st.sampled_from(names).filter(lambda name: name not in ("Invalid", "schema", "for", "function")))
    offered = [tool for tool in tools(*names) if tool.name not in ("Invalid", "schema", "for", "function")]
    found = refused_tool(f"Invalid schema for function '{meant}': {NO_ITEMS}", offered)
    assert found is not None
    assert found.name == meant


def refusal(words: str, status: int = 400) -> Answer:
    return whole({"error": {"message": words, "type": "invalid_request_error"}}, status)


def names_in(request: PlayedRequest) -> list[str]:
    """The names of the tools of a request, in either format."""
    return [each.get("function", each)["name"] for each in request.body.get("tools", [])]


def strict(bad: Iterable[str]) -> Callable[[PlayedRequest], Answer]:
    """A server that refuses each of the bad tools."""

    def answer(request: PlayedRequest) -> Answer:
        for name in names_in(request):
            if name in bad:
                return refusal(f"Invalid schema for function '{name}': {NO_ITEMS}")
        return whole(message(content="晴"))

    return answer


@asynccontextmanager
async def resilient(script: Any, **limits: Any) -> AsyncGenerator[tuple[ResilientChatModel, OpenAIPlayer], None]:
    async with played(script) as (model, player):
        yield resilient_of(model, **limits), player


def resilient_of(model: ChatModel, **limits: Any) -> ResilientChatModel:
    return ResilientChatModel(model, total_timeout=60, idle_timeout=60, **limits)


@pytest.mark.parametrize("allowed", [True, False], ids=["with the provider's words", "without them"])
async def test_a_refused_tool_is_left_out_at_once_and_from_then_on_and_the_log_says_why(
    allowed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    prompt = Prompt((QUESTION,), tools("good", "bad", "worse"))
    async with resilient(strict(("bad", "worse")), log_provider_messages=allowed) as (model, player):
        for _ in range(2):
            assert (await response_of(model, prompt)).message.text == "晴"
        assert model.adapted == {"asked": {"without": ["bad", "worse"]}}
        await response_of(model, Prompt((QUESTION,), tools("bad")))
    offered = [names_in(each) for each in player.requests]
    assert offered == [["good", "bad", "worse"], ["good", "worse"], ["good"], ["good"], []]
    (record,) = caplog.records
    fields = vars(record)
    assert (record.levelno, fields["model"], fields["tools"]) == (logging.ERROR, "asked", "bad, worse")
    assert (fields["upstream_status"], fields["provider_code"]) == (400, "invalid_request_error")
    words = f"Invalid schema for function 'bad': {NO_ITEMS}" if allowed else None
    assert fields.get("provider_message") == words


async def test_a_tool_that_was_left_out_is_sent_if_it_has_changed_or_must_be_called() -> None:
    async with resilient(strict(("bad",))) as (model, player):
        await response_of(model, Prompt((QUESTION,), tools("bad")))
        with pytest.raises(UpstreamInvalid):
            await response_of(model, Prompt((QUESTION,), tools("bad"), ChatOptions(tool_choice="bad")))
        await response_of(model, Prompt((QUESTION,), (ToolDefinition("bad", "Better", SCHEMA),)))
    assert [names_in(each) for each in player.requests] == [["bad"], [], ["bad"], ["bad"], []]


@pytest.mark.parametrize(
    ("prompt", "status", "words"),
    [
        (Prompt((QUESTION,), tools("bad"), ChatOptions(tool_choice="bad")), 400, "function 'bad'"),
        (Prompt((QUESTION,), tools("bad"), metadata={"bad": ToolMetadata(run_by_caller=True)}), 400, "function 'bad'"),
        (Prompt((QUESTION,), tools("bad")), 400, "function 'other'"),
        (Prompt((QUESTION,), tools("bad")), 404, "function 'bad'"),
        (Prompt((QUESTION,), tools("bad")), 500, "function 'bad'"),
        (Prompt((QUESTION,), tools("bad")), 400, "Failed to call a function. Please adjust your prompt: bad"),
        (Prompt((QUESTION,)), 400, "function 'bad'"),
    ],
    ids=["chosen", "the client's", "not offered", "another status", "a failure", "a malformed call", "no tools"],
)
async def test_such_a_refusal_stays_an_error(prompt: Prompt, status: int, words: str) -> None:
    async with resilient([refusal(words, status)] * 3, retry=RetryPolicy(max_attempts=1)) as (model, player):
        with pytest.raises(ToolchatError):
            await response_of(model, prompt)
        assert (len(player.requests), model.adapted) == (1, {})


async def test_a_tool_without_which_the_question_is_refused_as_well_is_not_to_blame() -> None:
    async with resilient([refusal("bad request: the time is over"), refusal("bad request")]) as (model, _):
        with pytest.raises(UpstreamInvalid) as caught:
            await response_of(model, Prompt((QUESTION,), tools("time")))
        assert (caught.value.provider_message, model.adapted) == ("bad request: the time is over", {})


async def test_another_error_without_the_tool_is_that_error() -> None:
    script = [refusal("Invalid schema for function 'bad'"), refusal("slow down", 429)]
    async with resilient(script, retry=RetryPolicy(max_attempts=1)) as (model, _):
        with pytest.raises(ProviderRateLimited):
            await response_of(model, Prompt((QUESTION,), tools("bad")))


async def test_one_question_leaves_out_a_handful_of_tools() -> None:
    names = [f"bad_{number}" for number in range(20)]
    async with resilient(strict(names)) as (model, player):
        with pytest.raises(UpstreamInvalid) as caught:
            await response_of(model, Prompt((QUESTION,), tools(*names)))
        assert "'bad_0'" in caught.value.provider_message
        assert (len(player.requests), model.adapted) == (9, {})


async def test_a_request_that_is_refused_for_a_field_and_for_a_tool_adapts_both() -> None:
    def answer(request: PlayedRequest) -> Answer:
        if "temperature" in request.body:
            return refusal("Unsupported parameter: 'temperature' is not supported with this model.")
        return strict(("bad",))(request)

    prompt = Prompt((QUESTION,), tools("good", "bad"), ChatOptions(temperature=0.5))
    async with resilient(answer) as (model, player):
        for _ in range(2):
            await response_of(model, prompt)
        assert model.adapted == {"asked": {"renamed": {"temperature": ""}, "without": ["bad"]}}
    assert names_in(player.requests[-1]) == ["good"]


async def test_dashscope_is_asked_without_the_tool_as_well() -> None:
    refused = dashscope.failure("InvalidParameter", "<400> InternalError.Algo.InvalidParameter: " + SEARCH)
    async with dashscope.played(json_answer(refused, 400), saying("晴")) as (model, server):
        response = await response_of(resilient_of(model), Prompt((QUESTION,), tools("good", "search")))
    assert response.message.text == "晴"
    offered = [[each["function"]["name"] for each in one.parameters["tools"]] for one in server.requests]
    assert offered == [["good", "search"], ["good"]]


ON_BOTH_APIS: list[tuple[Any, Any]] = [
    (played, message(content="晴")),
    (responses.played, responses.response(responses.text_item("晴"))),
]


@pytest.mark.parametrize(("played_on", "done"), ON_BOTH_APIS, ids=["chat completions", "Responses"])
async def test_a_place_that_only_the_param_names_is_understood(played_on: Any, done: object) -> None:
    error = {"message": "Invalid parameter", "type": "invalid_request_error", "param": "tools[1].parameters"}
    wrapped = {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps({"error": error})}}}
    refusals = iter([{"error": error}, wrapped])

    def answer(request: PlayedRequest) -> Answer:
        return whole(next(refusals), 400) if len(names_in(request)) > 1 else whole(done)

    async with played_on(answer) as (model, player):
        text = (await response_of(resilient_of(model), Prompt((QUESTION,), tools("good", "bad", "worse")))).message.text
    assert (text, [names_in(each) for each in player.requests][1:]) == ("晴", [["good", "worse"], ["good"]])


async def test_nothing_is_asked_again_once_text_has_come() -> None:
    refused = event(dashscope.failure("InvalidParameter", SEARCH), kind="event:error", status=400)
    answer = sse_answer(*stream_of({"content": "晴"}, finish_reason=None), refused)
    async with dashscope.played(answer) as (model, server):
        with pytest.raises(UpstreamInvalid):
            await response_of(resilient_of(model), Prompt((QUESTION,), tools("search"), stream=True))
        assert len(server.requests) == 1


async def test_operators_are_told_which_tools_are_left_out() -> None:
    async with (
        OpenAIPlayer(strict(("getCityTimeFunction",))) as player,
        service(OPENAI_BASE_URL=player.base_url, API_KEYS=OPERATOR, OPEN_PATHS="/metrics") as client,
    ):
        headers = {"X-API-Key": KEY}
        answer = await client.get("/time/chat-tool-function", headers=headers)
        health = (await client.get("/health/ready", headers=headers)).json()
        figures = await figures_of(client)
    assert answer.text == "晴"
    assert health["adapted"] == {"gpt-4o-mini": {"without": ["getCityTimeFunction"]}}
    labels = (("model", "gpt-4o-mini"), ("provider", "openai_compatible"), ("tool", "getCityTimeFunction"))
    assert figures["toolchat_model_tools_left_out_total", labels] == 1
