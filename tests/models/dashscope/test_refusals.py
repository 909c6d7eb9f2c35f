"""DashScope's errors, by their code."""

import pytest

from tests.models.dashscope.playing import asking, failure, played
from tests.models.responding import response_of
from tests.players.dashscope_player import event, json_answer, sse_answer, stream_of
from toolchat.errors import (
    ContentFiltered,
    ContextTooLong,
    NotConfigured,
    ProviderAuth,
    ProviderQuota,
    ProviderRateLimited,
    ToolchatError,
    UpstreamUnavailable,
)

REFUSALS: list[tuple[int, str, str, type[ToolchatError]]] = [
    (400, "InvalidParameter", "url error, please check url", NotConfigured),
    (400, "InvalidParameter", "Range of input length should be [1, 30720]", ContextTooLong),
    (400, "DataInspectionFailed", "Output data may contain inappropriate content.", ContentFiltered),
    (401, "InvalidApiKey", "Invalid API-key provided.", ProviderAuth),
    (429, "Throttling.AllocationQuota", "Allocated quota exceeded", ProviderRateLimited),
    (429, "Throttling.AllocationQuota", "Free allocated quota exceeded.", ProviderQuota),
    (500, "InternalError", "", UpstreamUnavailable),
]
"""Of each kind some; ``test_provider_errors.py`` has all codes."""


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


async def test_the_retry_after_of_a_refusal_is_passed_on() -> None:
    async with played(json_answer(failure("Throttling"), 429, {"Retry-After": "7"})) as (model, _):
        with pytest.raises(ProviderRateLimited) as caught:
            await response_of(model, asking())
    assert caught.value.retry_after == 7
