"""What a provider says about its refusal: what operators learn of it, and what is advised."""

import json
import logging
from contextlib import aclosing
from typing import Any

import pytest

from tests.models.dashscope.playing import asking
from tests.models.openai.playing import AT_ONCE
from tests.models.responding import response_of
from tests.players.dashscope_player import DashScopePlayer, json_answer
from tests.players.openai_player import OpenAIPlayer, whole
from tests.serving import service
from toolchat.errors import ToolchatError, UpstreamInvalid
from toolchat.http.client import OutboundHttp
from toolchat.models.base import ChatModel, Prompt
from toolchat.models.dashscope.model import DashScopeChatModel
from toolchat.models.openai.model import OpenAICompatibleChatModel
from toolchat.models.provider_errors import quotable
from toolchat.models.resilience import ResilientChatModel

KEY = "sk-canary-5f1d"
NO_TOOLS = "; the model cannot call tools there, set OPENAI_MODEL to one that can"


@pytest.mark.parametrize(
    ("status", "body", "advice"),
    [
        pytest.param(
            400,
            '{"object": "error", "message": "\\"auto\\" tool choice requires --enable-auto-tool-choice and '
            '--tool-call-parser to be set", "type": "BadRequestError", "param": null, "code": 400}',
            "; start vLLM with --enable-auto-tool-choice and --tool-call-parser",
            id="langchain4j#3475",
        ),
        pytest.param(
            500,
            '{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}',
            "; start llama.cpp's server with --jinja",
            id="LLMKube#126, ramalama#988",
        ),
        pytest.param(
            400,
            '{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools",'
            '"type":"invalid_request_error","param":null,"code":null}}',
            NO_TOOLS,
            id="ollama#5793, picobot#6",
        ),
        pytest.param(
            404,
            '{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, '
            'visit: https://openrouter.ai/docs/guides/routing/provider-selection","code":404}}',
            NO_TOOLS,
            id="bobrchat#60",
        ),
    ],
)
async def test_a_known_refusal_comes_with_advice_and_is_not_tried_again(status: int, body: str, advice: str) -> None:
    error, requests = await _refused(json.loads(body), status)
    assert type(error) is UpstreamInvalid
    assert error.detail == f"the provider refused the request{advice}"
    assert requests == 1


async def test_a_wrong_path_comes_with_advice() -> None:
    error, _ = await _refused({"detail": "Not Found"}, 404)
    assert error.detail.endswith("check OPENAI_BASE_URL, which usually ends in /v1")


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        ("Extra inputs are not permitted", "Extra inputs are not permitted"),
        ("不支持 tools", "不支持 tools"),
        ("x\r\ny\x1b[31m\u202ez\u2028", "x\\r\\ny\\x1b[31m\\u202ez\\u2028"),
        ("x" * 1000, "x" * 300),
        (f"Incorrect API key provided: {KEY}.", "Incorrect API key provided: ***"),
        (f"Incorrect API key provided: {KEY[:10]}", "Incorrect API key provided: ***"),
        (f"{'x' * 295} {KEY}", f"{'x' * 295} ***"),
        ("team a asks about a cat", "team *** asks about *** cat"),
        ("", ""),
    ],
)
def test_words_of_a_provider_are_short_printable_and_without_our_secrets(said: str, quoted: str) -> None:
    assert quotable(said, (KEY, "a")) == quoted


SAID = f"tool_choice: no such thing\n({KEY}, header-secret-7)"
SHOWN = "tool_choice: no such thing\\n(*** ***"


@pytest.mark.parametrize("logged", [False, True])
@pytest.mark.parametrize("provider", ["openai_compatible", "dashscope"])
async def test_the_log_has_them_only_if_a_setting_allows_it(provider: str, logged: bool) -> None:
    refusal: dict[str, Any] = {"code": "InvalidParameter", "message": SAID}
    if provider == "dashscope":
        error, _ = await _refused_by_dashscope(refusal, log_provider_messages=logged)
    else:
        error, _ = await _refused({"error": refusal}, 400, log_provider_messages=logged)
    assert error.provider_message == SHOWN
    assert error.log_fields.get("provider_message") == (SHOWN if logged else None)
    assert "tool_choice" not in error.detail


@pytest.mark.parametrize(("setting", "logged"), [({}, set()), ({"LOG_PROVIDER_MESSAGES": "true"}, {"no: ***"})])
async def test_the_setting_of_the_service_is_off_by_default(
    setting: dict[str, str], logged: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with OpenAIPlayer(lambda _: whole({"error": {"message": f"no: {KEY}"}}, 400)) as player:
        variables = {"OPENAI_BASE_URL": player.base_url, "OPENAI_API_KEY": KEY, **setting}
        async with service(**variables) as client:
            answer = await client.post("/time/chat", json={"query": "?"})
    assert answer.status_code == 502
    assert "no:" not in answer.text
    told = {record.__dict__.get("provider_message") for record in caplog.records} - {None}
    assert told == logged
    assert KEY not in caplog.text


async def _refused(body: object, status: int, **arguments: Any) -> tuple[ToolchatError, int]:
    async with aclosing(OutboundHttp()) as http, OpenAIPlayer(lambda _: whole(body, status)) as player:
        headers = {"X-Gateway": "Token header-secret-7"}
        model = OpenAICompatibleChatModel(
            base_url=player.base_url, api_key=KEY, extra_headers=headers, api="chat", http=http
        )
        return await _error_of(model, AT_ONCE, **arguments), len(player.requests)


async def _refused_by_dashscope(body: object, **arguments: Any) -> tuple[ToolchatError, int]:
    async with aclosing(OutboundHttp()) as http, DashScopePlayer(json_answer(body, 400)) as player:
        headers = {"X-Gateway": "Token header-secret-7"}
        model = DashScopeChatModel(api_key=KEY, base_url=player.base_url, extra_headers=headers, http=http)
        return await _error_of(model, asking(), **arguments), len(player.requests)


async def _error_of(model: ChatModel, prompt: Prompt, **arguments: Any) -> ToolchatError:
    with pytest.raises(ToolchatError) as caught:
        await response_of(ResilientChatModel(model, total_timeout=60, idle_timeout=60, **arguments), prompt)
    return caught.value
