"""A provider's error is told by its code, its status and known words, and nothing of its text is shown."""

import json
import logging
import re
import tomllib
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.architecture import ROOT
from tests.models.dashscope.playing import asking
from tests.models.openai.playing import AT_ONCE, STREAMED, play
from tests.models.responding import response_of
from tests.players.dashscope_player import DashScopePlayer, json_answer
from tests.players.openai_player import Answer, OpenAIPlayer, delta, sse, whole
from tests.serving import service
from toolchat.errors import ProviderQuota, ProviderRateLimited, ToolchatError, UpstreamInvalid, UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.models.base import ChatModel, Prompt
from toolchat.models.dashscope.model import DashScopeChatModel
from toolchat.models.openai.model import OpenAICompatibleChatModel
from toolchat.models.openai.turn import fault_in
from toolchat.models.profiles import Profile, find_profile, profile_named
from toolchat.models.provider_errors import provider_error, quotable, retry_after_from
from toolchat.models.refusals import adapted
from toolchat.models.resilience import ResilientChatModel

FREE = "Free allocated quota exceeded."
TOKENS = "Allocated quota exceeded, please increase your quota limit."
PLAN = "You exceeded your current quota, please check your plan and billing details."
KEY = "sk-canary-5f1d"


def error_of(
    status: int, code: str = "", message: str = "", retry_after: float | None = None, profile: Profile = Profile()
) -> ToolchatError:
    return provider_error(
        status=status, code=code, message=message, retry_after=retry_after, variables="OPENAI", profile=profile
    )


MEANINGS: dict[str, list[tuple[int, str] | tuple[int, str, str]]] = {
    "context-too-long": [
        *((400, "context_length_exceeded"), (413, "BadRequest.TooLarge"), (413, "")),
        (400, "", "This model's maximum context length is 8192 tokens."),
        (400, "InvalidParameter", "Range of input length should be [1, 30720]"),
    ],
    "content-filtered": [(400, "DataInspectionFailed"), (400, "data_inspection_failed"), (400, "content_filter")],
    "provider-auth": [
        *((401, "InvalidApiKey"), (401, "invalid_api_key"), (401, ""), (403, "account_deactivated")),
        *((403, "Model.AccessDenied"), (401, "invalid_request_error", "You didn't provide an API key.")),
    ],
    "provider-quota": [
        *((402, ""), (402, "", "Insufficient Balance"), (403, "30001", "Sorry, your account balance is insufficient")),
        *((400, "invalid_request_error", "Your credit balance is too low."), (200, "1008", "insufficient balance")),
        *((403, "AccountOverdueError"), (429, "exceeded_current_quota_error"), (400, "billing_hard_limit_reached")),
        *((403, "AllocationQuota.FreeTierOnly"), (400, "Arrearage"), (429, "CommodityNotPurchased")),
        *((429, "PrepaidBillOverdue"), (429, "PostpaidBillOverdue"), (429, "insufficient_quota", PLAN)),
        *((429, "insufficient_quota", FREE), (429, "Throttling.AllocationQuota", FREE)),
    ],
    "provider-rate-limited": [
        *((429, "insufficient_quota", TOKENS), (429, "Throttling.AllocationQuota", TOKENS), (429, "")),
        *((400, "Throttling.AllocationQuota", TOKENS), (429, "Throttling"), (429, "Throttling.RateQuota")),
        *((429, "Throttling.BurstRate"), (429, "limit_requests"), (429, "limit_burst_rate")),
        (429, "rate_limit_exceeded"),
    ],
    "not-configured": [
        *((404, "model_not_found"), (404, "Model.NotExist"), (400, "model_not_supported"), (404, "")),
        (400, "InvalidParameter", "url error, please check url！"),
    ],
    "upstream-unavailable": [
        *((500, "InternalError"), (400, "InternalError.Algo", "Expecting ',' delimiter"), (500, "RequestTimeOut")),
        *((400, "ResponseTimeout"), (503, "ModelUnavailable"), (529, "overloaded_error"), (408, ""), (425, "")),
        *((502, "", "<html>"), (200, "", "something broke"), (200, "server_error"), (409, "conflict")),
    ],
    "upstream-invalid": [
        (400, "InternalError.Algo.InvalidParameter", "Repetitive tool calls"),
        *((200, "invalid_request_error"), (422, ""), (418, "")),
    ],
}


@pytest.mark.parametrize(("meaning", "fault"), [(name, fault) for name, faults in MEANINGS.items() for fault in faults])
def test_each_code_and_status_has_its_meaning(meaning: str, fault: tuple[Any, ...]) -> None:
    error = error_of(*fault)
    assert error.code == meaning
    assert len(fault) == 2 or fault[2] not in error.detail


REFUSED = "the provider refused the request (status 400)"
NOT_SERVED = "unsupported_country_region_territory", "Country, region, or territory not supported"


@pytest.mark.parametrize(
    ("status", "code", "message", "detail"),
    [
        (400, "InvalidParameter", "", "the provider refused the request (code InvalidParameter)"),
        *((400, code, "", REFUSED) for code in ("", "sk-key with blanks", "sk-canary-1234", "x" * 65, "<b>\n")),
        (403, *NOT_SERVED, "the chat provider does not answer from this server's country"),
    ],
)
def test_only_a_code_that_is_a_known_word_is_shown(status: int, code: str, message: str, detail: str) -> None:
    assert error_of(status, code, message).detail == detail


@pytest.mark.parametrize(
    ("status", "code", "message", "remedy"),
    [
        (404, "model_not_found", "", "set OPENAI_MODEL"),
        (404, "not_found_error", "model 'm' not found, try pulling it first", "set OPENAI_MODEL"),
        (400, "InvalidParameter", "url error, please check url", "set OPENAI_MODEL or OPENAI_ENDPOINT"),
        (404, "", "", "check OPENAI_BASE_URL, which usually ends in /v1"),
        (404, "", "Invalid URL (POST /v1/v1/chat/completions)", "check OPENAI_BASE_URL, which usually ends in /v1"),
        (401, "", "", "check OPENAI_API_KEY"),
    ],
)
def test_what_the_operator_can_set_right_names_the_variable(status: int, code: str, message: str, remedy: str) -> None:
    assert error_of(status, code, message).detail.endswith(remedy)


@pytest.mark.parametrize(
    ("status", "code", "logged"),
    [
        (429, "Throttling.AllocationQuota", {"upstream_status": 429, "provider_code": "Throttling.AllocationQuota"}),
        (200, "1008", {"upstream_status": 200}),
        (401, "sk-canary-1234", {"upstream_status": 401}),
    ],
)
def test_the_log_has_the_status_and_a_known_code(status: int, code: str, logged: dict[str, object]) -> None:
    assert error_of(status, code).log_fields == logged


@pytest.mark.parametrize(
    ("provider", "status", "code", "meaning"),
    [
        ("minimax", 200, "1002", "provider-rate-limited"),
        ("minimax", 200, "20132", "upstream-unavailable"),
        ("glm", 200, "1002", "provider-auth"),
        ("glm", 429, "1113", "provider-quota"),
        ("kimi", 429, "1113", "provider-rate-limited"),
        ("minimax", 401, "1002", "provider-auth"),
    ],
)
def test_a_number_counts_within_its_profile_but_never_against_a_401(
    provider: str, status: int, code: str, meaning: str
) -> None:
    assert error_of(status, code, profile=profile_named(provider)).code == meaning


def test_a_code_of_a_profile_is_shown_and_logged() -> None:
    error = error_of(200, "2013", profile=profile_named("minimax"))
    assert error.detail == "the provider refused the request (code 2013)"
    assert error.log_fields["provider_code"] == "2013"


@pytest.mark.parametrize("name", ["azure", "dashscope", "minimax", "kimi"])
def test_a_refused_key_comes_with_the_advice_of_the_profile(name: str) -> None:
    detail = error_of(401, profile=profile_named(name)).detail
    assert "check OPENAI_API_KEY, and that OPENAI_BASE_URL " in detail


def test_a_malformed_call_is_worth_another_try() -> None:
    error = error_of(400, "tool_use_failed", retry_after=1)
    assert (error.code, error.retryable, error.retry_after) == ("upstream-invalid", True, 1)


@pytest.mark.parametrize(
    ("status", "given", "passed"), [(429, 2, 2), (503, 7, 7), (429, 900, 60), (429, None, None), (401, 5, None)]
)
def test_the_wait_is_passed_on_and_bounded_if_waiting_helps(
    status: int, given: float | None, passed: float | None
) -> None:
    assert error_of(status, retry_after=given).retry_after == passed


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "3600"}, 60),
        ({"retry-after": "-4"}, 0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "Wed, 21 Oct 2099 07:28:00 -0000"}, 60),
        *(({"retry-after": each}, None) for each in ("nan", "inf", "tomorrow", "Wed, 99 Oct 2099 99:99:99 GMT")),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_from(headers) == seconds


def test_retry_after_as_a_date_counts_from_now() -> None:
    now = datetime.now(UTC)
    seconds = retry_after_from({"retry-after": format_datetime(now + timedelta(seconds=30), usegmt=True)})
    passed = (datetime.now(UTC) - now).total_seconds()
    assert seconds is not None
    assert 29 - passed < seconds <= 30  # a date has whole seconds


REFUSALS = tomllib.loads(Path(__file__).with_name("recorded_refusals.toml").read_text("utf-8"))["refusal"]
VOCABULARY = tomllib.loads((ROOT / "toolchat/models/provider_errors.toml").read_text("utf-8"))
WORDINGS = [*chain(*VOCABULARY["words"].values()), *(each["words"] for each in VOCABULARY["advice"])]
WORDS = [
    "This model's maximum context length is 8192 tokens",
    "prompt is too long",
    "insufficient balance",
    "Content Exists Risk",
    "model does not exist",
    "API key not valid",
    "does not support tools",
    '"auto" tool choice requires --enable-auto-tool-choice',
    "the tools param requires --jinja flag",
    "url error",
    "Failed to call a function. Please adjust your prompt",
]
"""Wordings that decide, each of another kind, as a user may quote them."""


def refusal(status: int, body: object, host: str = "localhost") -> ToolchatError:
    fault = fault_in(body, refused=status >= 400)
    assert fault is not None
    profile = profile_named(fault.profile) if fault.profile else find_profile(f"https://{host}/v1", "any")
    return error_of(status if status >= 400 else fault.status or status, fault.code, fault.message, None, profile)


@pytest.mark.parametrize("recorded", REFUSALS, ids=lambda recorded: recorded["source"].removeprefix("https://"))
def test_a_recorded_refusal_has_its_meaning_and_adapts_the_request_or_nothing(recorded: dict[str, Any]) -> None:
    body = json.loads(recorded["body"])
    error, fault = refusal(recorded["status"], body, recorded["host"]), fault_in(body, refused=True)
    change = recorded.get("adapts")
    assert error.code == recorded["means"]
    assert recorded.get("says", "") in error.detail
    assert error.provider_message != ""
    assert error.retryable is (recorded.get("again", False) or recorded["means"] == "provider-rate-limited")
    assert fault is not None
    assert adapted(Profile(), recorded["status"], fault.message) == (change and Profile(**change))


@pytest.mark.parametrize("words", WORDINGS)
def test_each_wording_was_seen_in_a_refusal(words: str) -> None:
    faults = [fault_in(json.loads(each["body"]), refused=True) for each in REFUSALS]
    assert any(fault and re.search(words, fault.message.lower()) for fault in faults)


@given(before=st.text(), words=st.sampled_from(WORDS), after=st.text(), status=st.sampled_from([500, 502, 503, 529]))
def test_no_text_in_a_failure_of_the_provider_makes_it_anything_else(
    before: str, words: str, after: str, status: int
) -> None:
    error = refusal(status, {"error": {"message": f"error parsing tool call: raw={before}{words}{after}"}})
    assert type(error) is UpstreamUnavailable


@given(
    before=st.text(st.characters(exclude_characters="'\"`")),
    words=st.sampled_from(WORDS),
    quote=st.sampled_from("'\"`"),
    status=st.sampled_from([400, 404, 422, 429]),
    wrapper=st.sampled_from(["", 'litellm.APIError: OpenAIException - {"error": {"message": "']),
)
def test_what_a_refusal_quotes_does_not_change_its_meaning(
    before: str, words: str, quote: str, status: int, wrapper: str
) -> None:
    silent = refusal(status, {"error": {"message": f"{wrapper}Invalid value for content:"}})
    said = f"{wrapper}Invalid value for content: {quote}, {before} {words}{quote}"
    quoting = refusal(status, {"error": {"message": said}})
    assert (type(quoting), quoting.detail) == (type(silent), silent.detail)


@pytest.mark.parametrize("words", WORDS)
def test_no_text_beats_a_refused_key(words: str) -> None:
    assert refusal(401, {"error": {"message": words}}).code == "provider-auth"


def wrapped(raw: object) -> dict[str, Any]:
    return {"error": {"message": "Provider returned error", "metadata": {"raw": raw}}}


TEXTS: list[tuple[dict[str, Any], str]] = [
    *(({key: "m"}, "m") for key in ("message", "Message", "detail")),
    ({"detail": [{"type": "missing", "loc": ["body", "model"], "msg": "m"}]}, "body.model: m"),
    ({"message": {"detail": [{"loc": ["body", "messages", 0, "name"], "msg": "m"}]}}, "body.messages.0.name: m"),
    *(({"errors": [each]}, "m") for each in ({"code": 7003, "message": "m"}, "m")),
    ({"error_code": "BAD_REQUEST", "message": "m"}, "m"),
    *((wrapped(each), "m") for each in ('{"detail": "m"}', "m")),
    ({"error": {"message": "m", "metadata": {"raw": None}}}, "m"),
    ({"error": True, "message": "m"}, "m"),
    ({"detail": []}, ""),
    ({"detail": [[[]]]}, ""),
    ({"errors": [None]}, ""),
    ({"detail": {"loc": 1}}, ""),
    ({}, ""),
]


@pytest.mark.parametrize(("body", "message"), TEXTS)
def test_the_text_of_a_refusal_is_found_in_every_format(body: dict[str, Any], message: str) -> None:
    fault = fault_in(body, refused=True)
    assert fault is not None
    assert fault.message == message


@pytest.mark.parametrize("chunk", [{"message": "m"}, {"detail": "m"}, {"errors": []}, {"choices": [1], "errors": None}])
def test_a_text_alone_is_no_error_within_an_answer(chunk: dict[str, Any]) -> None:
    assert fault_in(chunk) is None


def gemini(delay: object) -> dict[str, Any]:
    """https://github.com/diegosouzapw/OmniRoute/issues/9504"""
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    return {"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": [{}, *details]}}


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (whole([gemini("36s")], 429), 36),
        (whole([gemini("0.5s")], 429), 0.5),
        (whole([gemini("36s")], 429, **{"Retry-After": "2"}), 2),
        (whole([gemini(None)], 429), None),
        (whole([gemini("soon")], 429), None),
        (sse(delta(content="a"), gemini("36s")), 36),
    ],
)
async def test_geminis_delay_is_a_retry_after(answer: Answer, seconds: float | None) -> None:
    with pytest.raises(ProviderRateLimited) as caught:
        await play([answer])
    assert caught.value.retry_after == seconds


@pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED])
@pytest.mark.parametrize(
    "answer", [whole({"error": {"code": "77"}}, 400), whole({"error": {"code": "77"}}), sse({"error": {"code": "77"}})]
)
async def test_the_model_reads_errors_by_the_profile_of_its_server(prompt: Prompt, answer: Answer) -> None:
    profile = {"errors": {"77": "provider-quota"}}
    async with (
        OpenAIPlayer([answer]) as player,
        OpenAICompatibleChatModel(base_url=player.base_url, profile=profile) as model,
    ):
        with pytest.raises(ProviderQuota):
            await response_of(model, prompt)


NO_TOOLS = "; the model cannot call tools there, set OPENAI_MODEL to one that can"


@pytest.mark.parametrize(
    ("status", "message", "advice"),
    [
        # langchain4j#3475
        (
            400,
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            "; start vLLM with --enable-auto-tool-choice and --tool-call-parser",
        ),
        # LLMKube#126, ramalama#988
        (500, "tools param requires --jinja flag", "; start llama.cpp's server with --jinja"),
        # ollama#5793, picobot#6
        (400, "registry.ollama.ai/library/gemma:2b does not support tools", NO_TOOLS),
        # bobrchat#60
        (404, "No endpoints found that support tool use. To learn more about provider routing, visit: …", NO_TOOLS),
    ],
)
async def test_a_known_refusal_comes_with_advice_and_is_not_tried_again(status: int, message: str, advice: str) -> None:
    error, requests = await refused("openai_compatible", {"error": {"message": message}}, status)
    assert type(error) is UpstreamInvalid
    assert error.detail == f"the provider refused the request{advice}"
    assert requests == 1


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
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


async def refused(provider: str, body: object, status: int = 400, **arguments: Any) -> tuple[ToolchatError, int]:
    """The error of a refused question, and how often it was asked."""
    given: dict[str, Any] = {"api_key": KEY, "extra_headers": {"X-Gateway": "Token header-secret-7"}}
    model: ChatModel
    async with (
        aclosing(OutboundHttp()) as http,
        OpenAIPlayer(lambda _: whole(body, status)) as server,
        DashScopePlayer(json_answer(body, status)) as native,
    ):
        if provider == "dashscope":
            model = DashScopeChatModel(base_url=native.base_url, http=http, **given)
        else:
            model = OpenAICompatibleChatModel(base_url=server.base_url, api="chat", http=http, **given)
        resilient = ResilientChatModel(model, total_timeout=60, idle_timeout=60, **arguments)
        with pytest.raises(ToolchatError) as caught:
            await response_of(resilient, asking() if provider == "dashscope" else AT_ONCE)
        return caught.value, len(server.requests)


@pytest.mark.parametrize("logged", [False, True])
@pytest.mark.parametrize("provider", ["openai_compatible", "dashscope"])
async def test_the_log_has_them_only_if_a_setting_allows_it(provider: str, logged: bool) -> None:
    fault: dict[str, Any] = {"code": "InvalidParameter", "message": SAID}
    body = fault if provider == "dashscope" else {"error": fault}
    error, _ = await refused(provider, body, log_provider_messages=logged)
    assert error.provider_message == SHOWN
    assert error.log_fields.get("provider_message") == (SHOWN if logged else None)
    assert "tool_choice" not in error.detail


@pytest.mark.parametrize(("setting", "logged"), [({}, set()), ({"LOG_PROVIDER_MESSAGES": "true"}, {"no: ***"})])
async def test_the_setting_of_the_service_is_off_by_default(
    setting: dict[str, str], logged: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with (
        OpenAIPlayer(lambda _: whole({"error": {"message": f"no: {KEY}"}}, 400)) as player,
        service(OPENAI_BASE_URL=player.base_url, OPENAI_API_KEY=KEY, **setting) as client,
    ):
        answer = await client.post("/time/chat", json={"query": "?"})
    assert answer.status_code == 502
    assert "no:" not in answer.text
    assert {record.__dict__.get("provider_message") for record in caplog.records} - {None} == logged
    assert KEY not in caplog.text
