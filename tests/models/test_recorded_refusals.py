"""What providers answered when they refused, from public reports and their own pages, and what it means."""

import json
import re
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.architecture import ROOT
from tests.models.openai.playing import AT_ONCE, STREAMED, play
from tests.models.responding import response_of
from tests.players.openai_player import Answer, OpenAIPlayer, delta, sse, whole
from toolchat.errors import ProviderQuota, ProviderRateLimited, ToolchatError, UpstreamUnavailable
from toolchat.models.base import Prompt
from toolchat.models.openai.model import OpenAICompatibleChatModel
from toolchat.models.openai.turn import Fault, fault_in
from toolchat.models.profiles import Profile, find_profile, profile_named
from toolchat.models.provider_errors import provider_error
from toolchat.models.refusals import adapted

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
    return error_of(fault, status if status >= 400 else fault.status or status, host)


def error_of(fault: Fault, status: int, host: str = "localhost") -> ToolchatError:
    profile = profile_named(fault.profile) if fault.profile else find_profile(f"https://{host}/v1", "any")
    return provider_error(
        status=status, code=fault.code, message=fault.message, retry_after=None, variables="OPENAI", profile=profile
    )


@pytest.mark.parametrize("recorded", REFUSALS, ids=lambda recorded: recorded["source"].removeprefix("https://"))
def test_a_recorded_refusal_has_its_meaning(recorded: dict[str, Any]) -> None:
    error = refusal(recorded["status"], json.loads(recorded["body"]), recorded["host"])
    assert error.code == recorded["means"]
    assert recorded.get("says", "") in error.detail
    assert error.provider_message != ""
    assert error.retryable is (recorded.get("again", False) or recorded["means"] == "provider-rate-limited")


@pytest.mark.parametrize("recorded", REFUSALS, ids=lambda recorded: recorded["source"].removeprefix("https://"))
def test_a_recorded_refusal_adapts_the_request_or_nothing(recorded: dict[str, Any]) -> None:
    fault = fault_in(json.loads(recorded["body"]), refused=True)
    change = recorded.get("adapts")
    assert fault is not None
    assert adapted(Profile(), recorded["status"], fault.message) == (change and Profile(**change))


@pytest.mark.parametrize("words", WORDINGS)
def test_each_wording_was_seen_in_a_refusal(words: str) -> None:
    faults = [fault_in(json.loads(each["body"]), refused=True) for each in REFUSALS]
    assert any(fault and re.search(words, fault.message.lower()) for fault in faults)


def test_many_providers_and_situations_are_recorded() -> None:
    assert len({(each["host"], each["means"]) for each in REFUSALS}) >= 40


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


@given(words=st.sampled_from(WORDS))
def test_no_text_beats_a_refused_key(words: str) -> None:
    assert refusal(401, {"error": {"message": words}}).code == "provider-auth"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"message": "m"}, "m"),
        ({"Message": "m"}, "m"),
        ({"detail": "m"}, "m"),
        ({"detail": [{"type": "missing", "loc": ["body", "model"], "msg": "m"}]}, "body.model: m"),
        ({"message": {"detail": [{"loc": ["body", "messages", 0, "name"], "msg": "m"}]}}, "body.messages.0.name: m"),
        ({"errors": [{"code": 7003, "message": "m"}]}, "m"),
        ({"errors": ["m"]}, "m"),
        ({"error_code": "BAD_REQUEST", "message": "m"}, "m"),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": '{"detail": "m"}'}}}, "m"),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": "m"}}}, "m"),
        ({"error": {"message": "m", "metadata": {"raw": None}}}, "m"),
        ({"error": True, "message": "m"}, "m"),
        ({"detail": []}, ""),
        ({"detail": [[[]]]}, ""),
        ({"errors": [None]}, ""),
        ({"detail": {"loc": 1}}, ""),
        ({}, ""),
    ],
)
def test_the_text_of_a_refusal_is_found_in_every_format(body: dict[str, Any], message: str) -> None:
    fault = fault_in(body, refused=True)
    assert fault is not None
    assert fault.message == message


@pytest.mark.parametrize("chunk", [{"message": "m"}, {"detail": "m"}, {"errors": []}, {"choices": [1], "errors": None}])
def test_a_text_alone_is_no_error_within_an_answer(chunk: dict[str, Any]) -> None:
    assert fault_in(chunk) is None


def gemini(delay: object) -> dict[str, Any]:
    """https://github.com/diegosouzapw/OmniRoute/issues/9504"""
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaValue": "20"}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]
    return {"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": details}}


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
