"""Requests that a provider refuses in words that say how to ask instead: asked so at once, and from then on."""

from contextlib import aclosing
from typing import Any

import pytest

from tests.models.openai.playing import QUESTION, WEATHER, played
from tests.models.responding import response_of
from tests.players.openai_player import Answer, PlayedRequest, delta, message, sse, whole
from toolchat.errors import ToolchatError
from toolchat.http.client import OutboundHttp
from toolchat.messages import AssistantMessage, ToolCall, ToolResponse, ToolResponseMessage
from toolchat.models.base import ChatOptions, Prompt
from toolchat.models.openai.model import OpenAICompatibleChatModel
from toolchat.models.profiles import Profile
from toolchat.models.refusals import adapted

TOP_P = "Unsupported parameter: 'top_p' is not supported with this model."
MAX_TOKENS = TOP_P.replace("top_p", "max_tokens") + " Use 'max_completion_tokens' instead."
LITELLM = "gpt-5 models don't support temperature=0.84. Only temperature=1 is supported."
TEMPERATURE = (
    "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported."
)
PARALLEL = "Unrecognized request argument supplied: parallel_tool_calls"
GROQ = (
    "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property "
    "'reasoning_content' is unsupported)]"
)
CEREBRAS = "messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is unsupported"
DEEPSEEK = "The `reasoning_content` in the thinking mode must be passed back to the API."
KIMI = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"
ONLY_STREAMS = "parameter.enable_thinking must be set to false for non-streaming calls"
NEVER = {"sent_back": {"reasoning_content": "never"}}
DEMANDED = {"sent_back": {"reasoning_content": "all"}, "filled": {"reasoning_content": " "}}


@pytest.mark.parametrize(
    ("status", "refusal", "change"),
    [  # beside those of recorded_refusals.toml
        # https://github.com/BeehiveInnovations/pal-mcp-server/issues/78
        (400, TEMPERATURE, {"renamed": {"temperature": ""}}),
        (400, f"litellm.UnsupportedParamsError: {LITELLM}", {"renamed": {"temperature": ""}}),
        # https://github.com/cursor/cursor/issues/2786
        (400, "Unknown parameter: 'reasoning_effort'.", {"renamed": {"reasoning_effort": ""}}),
        # https://github.com/dnakov/anon-kode/issues/53, https://github.com/charmbracelet/crush/issues/1590
        (422, "body.stream_options.include_usage: Extra inputs are not permitted", {"renamed": {"stream_options": ""}}),
        (422, "body.messages.31.assistant.reasoning_content: Extra inputs are not permitted", NEVER),
        # https://github.com/janhq/jan/issues/8136, https://github.com/Kilo-Org/kilocode/issues/10375
        (400, GROQ, NEVER),
        (400, CEREBRAS, NEVER),
        # https://github.com/anomalyco/opencode/issues/24722, https://github.com/langchain-ai/langchain/pull/34516
        (400, DEEPSEEK, DEMANDED),
        (400, "Missing `reasoning_content` field in the assistant message at message index 1", DEMANDED),
        # https://github.com/continuedev/continue/issues/11711
        (400, KIMI, DEMANDED),
        (400, "parameter.enable_thinking必须设置为false才能进行非流式调用", {"streams_only": True}),
        # Several at once.
        (
            400,
            f"{PARALLEL}, seed".replace("argument", "arguments"),
            {"renamed": {"parallel_tool_calls": "", "seed": ""}},
        ),
        (400, "Validation: Unsupported parameter(s): `top_p`, `n`, `seed`", {"renamed": {"top_p": "", "seed": ""}}),
        (400, f'litellm.APIError: Error code: 400 - {{"error": {{"message": "{TOP_P}"}}', {"renamed": {"top_p": ""}}),
        # Nothing that was asked for is left out: https://github.com/partITech/php-mistral/issues/76
        (422, "body.tools: Extra inputs are not permitted", {}),
        (400, "Unknown parameter: 'max_tokens'.", {}),
        (400, MAX_TOKENS.replace("'max_tokens'", "'response_format.json_schema'").replace("max_completion_", ""), {}),
        (400, MAX_TOKENS.replace("'max_tokens'", "'stop'"), {}),
        # No refusal of the request, or words that somebody else has written.
        (500, TEMPERATURE, {}),
        (429, TEMPERATURE, {}),
        (400, f"cannot parse '{TEMPERATURE}'", {}),
        (400, f"the user said: {DEEPSEEK}", {}),
        (400, f'cannot parse {{"error": {{"message": "{TOP_P}"}}', {}),
        (400, "", {}),
    ],
)
def test_only_the_exact_words_change_a_profile(status: int, refusal: str, change: dict[str, Any]) -> None:
    expected = Profile(**change) if change else None
    assert adapted(Profile(), status, refusal) == expected
    assert expected is None or adapted(expected, status, refusal) is None


def refusing(*fields: tuple[str, str]) -> Any:
    """A server that refuses each of the fields in its words."""

    def answer(request: PlayedRequest) -> Answer:
        for field, words in fields:
            if field in request.body:
                return whole({"error": {"message": words, "type": "invalid_request_error"}}, 400)
        return whole(message(content="晴"))

    return answer


OPTIONS = ChatOptions(max_tokens=9, temperature=0.2)


async def test_a_refused_field_is_left_out_at_once_and_from_then_on() -> None:
    prompt = Prompt((QUESTION,), options=OPTIONS)
    async with played(refusing(("max_tokens", MAX_TOKENS), ("temperature", TEMPERATURE))) as (model, player):
        for _ in range(2):
            assert (await response_of(model, prompt)).message.text == "晴"
        changes = {"renamed": {"max_tokens": "max_completion_tokens", "temperature": ""}}
        assert model.adapted == {"asked": changes}
    *_, last, again = (each.body for each in player.requests)
    assert (len(player.requests), last) == (4, again)
    assert (last["max_completion_tokens"], "temperature" in last, "max_tokens" in last) == (9, False, False)


async def test_nothing_is_learned_if_the_other_way_fails_too() -> None:
    other = refusing(("temperature", TEMPERATURE), ("model", "no such model"))
    async with played(other) as (model, player):
        for _ in range(2):
            with pytest.raises(ToolchatError, match="does not support temperature"):
                await response_of(model, Prompt((QUESTION,), options=OPTIONS))
        assert model.adapted == {}
    assert ["temperature" in each.body for each in player.requests] == [True, False] * 2


@pytest.mark.parametrize(
    ("status", "fault", "code"),
    [
        (400, {"code": "content_filter", "message": "filtered"}, "content-filtered"),
        (400, {"code": "context_length_exceeded", "message": "long"}, "context-too-long"),
        (401, {"message": "no"}, "provider-auth"),
        (402, {"message": "no"}, "provider-quota"),
        (429, {"message": "no"}, "provider-rate-limited"),
        (400, {"message": "no"}, "upstream-invalid"),
    ],
)
async def test_a_refusal_of_another_kind_is_not_hidden_by_the_first(
    status: int, fault: dict[str, str], code: str
) -> None:
    answers = [whole({"error": {"message": TEMPERATURE}}, 400), whole({"error": fault}, status)]
    async with played(answers) as (model, _):
        with pytest.raises(ToolchatError) as caught:
            await response_of(model, Prompt((QUESTION,), options=OPTIONS))
    assert (caught.value.code, "temperature" in str(caught.value)) == (code, code == "upstream-invalid")


async def test_what_one_clients_options_change_does_not_change_the_requests_of_others() -> None:
    def strict(request: PlayedRequest) -> Answer:
        if {"temperature", "reasoning_effort"} <= request.body.keys():
            return whole({"error": {"message": TEMPERATURE}}, 400)
        return whole(message(content="晴"))

    thinking, plain = ChatOptions(temperature=0.2, reasoning_effort="high"), ChatOptions(temperature=0)
    async with played(strict) as (model, player):
        for options in (thinking, plain, thinking):
            await response_of(model, Prompt((QUESTION,), options=options))
    assert ["temperature" in each.body for each in player.requests] == [True, False, True, False]


async def test_many_refused_fields_are_left_out_one_after_the_other() -> None:
    words = TOP_P.replace("top_p", "{}")
    names = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "seed", "parallel_tool_calls")
    fields = [(each, words.format(each)) for each in names] + [("max_tokens", MAX_TOKENS)]
    options = ChatOptions(
        temperature=1, top_p=1, frequency_penalty=1, presence_penalty=1, seed=1, parallel_tool_calls=True, max_tokens=1
    )
    async with played(refusing(*fields)) as (model, player):
        for _ in range(2):
            await response_of(model, Prompt((QUESTION,), (WEATHER,), options=options))
    assert len(player.requests) == len(fields) + 2


async def test_a_refused_field_of_the_extra_body_is_asked_for_once() -> None:
    async with played(refusing(("top_p", TOP_P))) as (_, player), aclosing(OutboundHttp()) as http:
        model = OpenAICompatibleChatModel(base_url=player.base_url, extra_body={"top_p": 1}, http=http)
        with pytest.raises(ToolchatError, match="does not support top_p"):
            await response_of(model, Prompt((QUESTION,)))
    assert len(player.requests) == 1


async def test_what_one_model_refuses_is_sent_to_another() -> None:
    async with played(refusing(("temperature", TEMPERATURE))) as (model, player):
        await response_of(model, Prompt((QUESTION,), options=OPTIONS))
        await response_of(model, Prompt((QUESTION,), options=ChatOptions(model="other", temperature=0.2)))
    assert ["temperature" in each.body for each in player.requests] == [True, False, True, False]


async def test_a_model_that_only_streams_is_asked_for_a_stream() -> None:
    def answer(request: PlayedRequest) -> Answer:
        if not request.body.get("stream"):
            return whole({"error": {"message": ONLY_STREAMS, "code": "invalid_parameter_error"}}, 400)
        return sse(delta(content="晴"), delta("stop"))

    async with played(answer) as (model, player):
        for _ in range(2):
            assert (await response_of(model, Prompt((QUESTION,)))).message.text == "晴"
    assert [each.body.get("stream", False) for each in player.requests] == [False, True, True]


@pytest.mark.parametrize("words", [DEEPSEEK, KIMI])
async def test_reasoning_that_is_demanded_back_is_sent(words: str) -> None:
    def strict(request: PlayedRequest) -> Answer:
        calls = [each for each in request.body["messages"] if each.get("tool_calls")]
        if any("reasoning_content" not in each for each in calls):
            return whole({"error": {"message": words, "type": "invalid_request_error"}}, 400)
        return whole(message(content="晴"))

    call, result = ToolCall("a", "now", "{}"), ToolResponseMessage((ToolResponse("a", "now", "12:00"),))
    earlier = (QUESTION, AssistantMessage("", (call,), {"reasoning_content": "why"}), result, AssistantMessage("12:00"))
    async with played(strict) as (model, player):
        assert (await response_of(model, Prompt((*earlier, QUESTION)))).message.text == "晴"
    assert [each.body["messages"][1].get("reasoning_content") for each in player.requests] == [None, "why"]
