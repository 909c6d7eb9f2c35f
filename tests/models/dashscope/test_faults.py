"""DashScope's errors, by their code, and what is no answer."""

import gzip
from json import dumps

import pytest

from tests.models.dashscope.playing import DONE, KEY, SILENCE, TEXT, asking, failure, fragment, played
from tests.models.responding import response_of
from tests.players.dashscope_player import Answer, event, json_answer, sse_answer, stream_of, whole
from toolchat.errors import ProviderRateLimited, ToolchatError, UpstreamInvalid, UpstreamUnavailable
from toolchat.models.resilience import ResilientChatModel, RetryPolicy

REFUSALS = [
    (400, "InvalidParameter", "url error, please check url", "not-configured"),
    (400, "InvalidParameter", "Range of input length should be [1, 30720]", "context-too-long"),
    (400, "DataInspectionFailed", "Output data may contain inappropriate content.", "content-filtered"),
    (401, "InvalidApiKey", "Invalid API-key provided.", "provider-auth"),
    (429, "Throttling.AllocationQuota", "Allocated quota exceeded", "provider-rate-limited"),
    (429, "Throttling.AllocationQuota", "Free allocated quota exceeded.", "provider-quota"),
    (500, "InternalError", "", "upstream-unavailable"),
]
"""Of each kind some; ``test_provider_errors.py`` has all codes."""


@pytest.mark.parametrize("form", ["http", "http, streamed", "http as events", "event", "event after text"])
@pytest.mark.parametrize(("status", "code", "message", "expected"), REFUSALS)
async def test_a_refusal_is_known_by_its_code_wherever_it_comes(
    form: str, status: int, code: str, message: str, expected: str
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
    assert caught.value.code == expected
    assert len(player.requests) == 1


async def test_the_retry_after_of_a_refusal_is_passed_on() -> None:
    async with played(json_answer(failure("Throttling"), 429, {"Retry-After": "7"})) as (model, _):
        with pytest.raises(ProviderRateLimited) as caught:
            await response_of(model, asking())
    assert caught.value.retry_after == 7


HTML = {"Content-Type": "text/html"}
JSON = {"Content-Type": "application/json"}
HALF_A_CALL = stream_of({"tool_calls": [fragment("call_1", "f", '{"a": ')]}, finish_reason=None)
ENDLESS = stream_of({"content": "a" * 2**20}, {"content": "b" * 2**20}, finish_reason=None) * 9
DEEP = b'{"output":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
NESTED = b'{"output":' + b"[" * 500 + b"]" * 500 + b"}"
PACKED = JSON | {"Content-Encoding": "gzip"}
BOMB = gzip.compress(dumps(whole({"content": "ok"})).encode() + b" " * 2**23)


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
    "too long once unpacked": (False, Answer((BOMB,), headers=PACKED), UpstreamInvalid),
    "error too long once unpacked": (False, Answer((BOMB,), 503, PACKED | HTML), UpstreamInvalid),
    "redirect": (False, Answer(status=307, headers={"Location": "/SECRET-BODY"}), UpstreamInvalid),
    "redirect, streamed": (True, Answer(status=307, headers={"Location": "/SECRET-BODY"}), UpstreamInvalid),
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
    "line longer than two mebibytes": (True, sse_answer(*stream_of({"content": "x" * 2**22})), UpstreamInvalid),
    "no end": (True, sse_answer(*ENDLESS), UpstreamInvalid),
    "error event with a blank": (True, failing(failure("Throttling"), "event: error"), UpstreamInvalid),
    "error event without a code": (True, failing({"message": "SECRET-BODY"}), UpstreamInvalid),
    "error event without a message": (True, failing({"code": "Throttling"}), UpstreamInvalid),
    "error without an event name": (True, failing(failure("Throttling"), "event:result"), UpstreamInvalid),
    "no byte": (False, SILENCE, UpstreamUnavailable),
}  # fmt: skip


@pytest.mark.parametrize("case", UNUSABLE)
async def test_an_invalid_response_becomes_an_error_without_its_content(case: str) -> None:
    stream, answer, expected = UNUSABLE[case]
    async with played(answer) as (model, player):
        with pytest.raises(ToolchatError) as caught:
            await response_of(model, asking(stream=stream))
        shown = caught.value.detail
    assert type(caught.value) is expected
    assert not any(secret in shown for secret in ("SECRET-BODY", KEY, player.base_url, "127.0.0.1"))
    assert ("check DASHSCOPE_BASE_URL" in shown) is case.startswith(("HTML", "events for"))


@pytest.mark.parametrize("stream", [False, True])
async def test_a_page_at_a_wrong_address_is_not_requested_again(stream: bool) -> None:
    async with played(Answer((b"<html>",), 200, HTML)) as (model, player):
        with pytest.raises(UpstreamInvalid) as caught:
            await response_of(ResilientChatModel(model, total_timeout=5, idle_timeout=5), asking(stream=stream))
    assert (caught.value.retryable, len(player.requests)) == (False, 1)


async def test_a_kept_connection_that_was_closed_costs_no_attempt() -> None:
    answers = iter([json_answer(whole({"content": "杭州"})), Answer(ending="cut", is_silent=True)])
    async with played(lambda _: next(answers, json_answer(whole({"content": "晴"})))) as (model, player):
        once = ResilientChatModel(model, total_timeout=60, idle_timeout=60, retry=RetryPolicy(1))
        texts = [(await response_of(once, asking())).message.text for _ in range(2)]
    assert (texts, len(player.requests), player.connections) == (["杭州", "晴"], 3, 2)
