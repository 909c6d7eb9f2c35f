"""Errors of real servers, and answers that are no chat completion."""

import gzip
import json

import pytest

from tests.models.openai.playing import AT_ONCE, LIMIT, SECRET, STREAMED, play
from tests.players.openai_player import Answer, body, chunk, delta, message, sse, whole
from toolchat.errors import (
    ContentFiltered,
    ContextTooLong,
    NotConfigured,
    ProviderAuth,
    ProviderRateLimited,
    ToolchatError,
    UpstreamInvalid,
    UpstreamUnavailable,
)
from toolchat.models.base import Prompt

THROTTLED = {"code": "Throttling.RateQuota", "message": "SECRET", "request_id": "1"}
MINIMAX = {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "rate limit SECRET"}}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(whole({"error": LIMIT}, 429), ProviderRateLimited, id="429"),
        pytest.param(body(b"<html>SECRET", 429, Content_Type="text/html"), ProviderRateLimited, id="429 with HTML"),
        pytest.param(Answer([b'{"err'], 429, ending="cut"), ProviderRateLimited, id="429, cut"),
        pytest.param(body(b"SECRET" * 20_000, 429), ProviderRateLimited, id="429 with a long body"),
        pytest.param(
            whole([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}], 429), ProviderRateLimited, id="Gemini"
        ),
        pytest.param(whole({"error": {"type": "invalid_request_error", "code": None}}, 401), ProviderAuth, id="401"),
        pytest.param(whole({"error": {"message": "SECRET", "code": "model_not_found"}}, 404), NotConfigured, id="404"),
        pytest.param(whole({"detail": "Not Found SECRET"}, 404), NotConfigured, id="404 of something else"),
        pytest.param(whole({"error": "model 'x' not found SECRET"}, 404), NotConfigured, id="Ollama"),
        pytest.param(
            whole({"object": "error", "message": "maximum context length is 8 SECRET", "code": 400}, 400),
            ContextTooLong,
            id="vLLM",
        ),
        pytest.param(whole({"error": {"code": "data_inspection_failed"}}, 400), ContentFiltered, id="moderation"),
        pytest.param(whole({"error": {"code": "odd SECRET"}}, 400), UpstreamInvalid, id="400"),
        pytest.param(body(b"<html>SECRET</html>", 502, Content_Type="text/html"), UpstreamUnavailable, id="502 HTML"),
        pytest.param(whole({"error": {"code": 429, "message": "SECRET"}}), ProviderRateLimited, id="429 within a 200"),
        pytest.param(whole({"error": LIMIT}), ProviderRateLimited, id="trap 22: error in a 200"),
        pytest.param(whole(THROTTLED), ProviderRateLimited, id="trap 22: code and message in a 200"),
        pytest.param(whole(MINIMAX), ProviderRateLimited, id="trap 22: base_resp"),
        pytest.param(sse(delta(content="晴"), {"error": LIMIT}), ProviderRateLimited, id="trap 21: error in a stream"),
        pytest.param(sse(THROTTLED), ProviderRateLimited, id="trap 21: code and message in a stream"),
        pytest.param(sse(delta(content="晴") | {"error": LIMIT}), ProviderRateLimited, id="error beside choices"),
        pytest.param(
            sse(b"event:error\n:HTTP_STATUS/429\ndata:" + json.dumps(THROTTLED).encode() + b"\n\n"),
            ProviderRateLimited,
            id="trap 21: event: error (DashScope)",
        ),
        pytest.param(sse(b'event: error\ndata: {"SECRET": 1}\n\n'), UpstreamUnavailable, id="trap 21: unknown shape"),
        pytest.param(sse(b"event: error\ndata: SECRET\n\n"), UpstreamUnavailable, id="trap 21: no JSON"),
        pytest.param(sse(MINIMAX), ProviderRateLimited, id="trap 21: base_resp in a stream"),
        pytest.param(sse(delta("error", content="晴")), UpstreamUnavailable, id="finish reason error (OpenRouter)"),
        pytest.param(sse(delta("content_filter", content="")), ContentFiltered, id="nothing left by moderation"),
    ],
)
async def test_an_error_is_mapped_in_every_format_and_never_quoted(answer: Answer, kind: type[ToolchatError]) -> None:
    with pytest.raises(ToolchatError) as caught:
        await play([answer])
    assert type(caught.value) is kind
    assert "SECRET" not in caught.value.detail
    assert SECRET not in str(caught.value)


XAI = "Failed to deserialize the JSON body into the target type: messages[0]: unknown variant"
"""With status 422 as plain text: https://github.com/Usagi-org/ai-goofish-monitor/issues/57"""


@pytest.mark.parametrize(
    ("content", "media_type", "kept"),
    [
        (XAI.encode(), "text/plain; charset=utf-8", XAI),
        (b"no \xff", "text/plain", "no \ufffd"),
        (b" <html><title>502</title>", "text/plain", ""),
        (b"<html>no</html>", "text/html", ""),
        (b"", "text/plain", ""),
        (b"\x00" * 70_000, "text/plain", ""),
    ],
)
async def test_the_words_of_a_plain_text_are_kept_for_the_log(content: bytes, media_type: str, kept: str) -> None:
    with pytest.raises(UpstreamInvalid) as caught:
        await play([body(content, 422, Content_Type=media_type)])
    assert caught.value.provider_message == kept
    assert caught.value.detail == "the provider refused the request (status 422)"


async def test_a_plain_text_that_refuses_a_field_explains_itself() -> None:
    with pytest.raises(UpstreamInvalid, match="it does not support seed"):
        await play([body(b"Unsupported parameter: 'seed'", 422, Content_Type="text/plain")])


async def test_the_retry_after_of_the_provider_is_passed_on() -> None:
    with pytest.raises(ProviderRateLimited) as caught:
        await play([whole({"error": LIMIT}, 429, **{"Retry-After": "2"})])
    assert caught.value.retry_after == 2


SSE = {"Content-Type": "text/event-stream"}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(sse(), id="only [DONE]"),
        pytest.param(sse(done=False), id="an empty stream"),
        pytest.param(sse(b": keep-alive\n\n", done=False), id="only a comment"),
        pytest.param(sse(chunk(usage={"prompt_tokens": 1})), id="only usage"),
        pytest.param(sse(b"data: {broken\n\n"), id="broken JSON"),
        pytest.param(sse(b'data: {"choices": [' + b"[" * 100_000 + b"\n\n"), id="deep JSON"),
        pytest.param(sse(b'data: {"n": ' + b"9" * 5000 + b"}\n\n"), id="a huge number"),
        pytest.param(sse(b'data: {"choices":[{"delta":{"content":"\\ud800"}}]}\n\n'), id="half a character"),
        pytest.param(sse(b'data: {"choices":[{"delta":{"content":"\xe4\xbd"}}]}\n\n'), id="not UTF-8"),
        pytest.param(sse(b"data: null\n\n"), id="null"),
        pytest.param(sse(b"data: [1]\n\n"), id="a list"),
        pytest.param(Answer([b"data: " + b"x" * 65536] * 33, headers=SSE), id="an endless event"),
        pytest.param(whole({}), id="an empty object"),
        pytest.param(whole({"choices": []}), id="no choices"),
        pytest.param(whole({"choices": None}), id="choices null"),
        pytest.param(whole([1, 2]), id="a list as the body"),
        pytest.param(body(b"", Content_Type="application/json"), id="an empty body"),
        pytest.param(body(b""), id="nothing at all"),
        pytest.param(body(b"<html>SECRET</html>", Content_Type="text/html"), id="HTML"),
        pytest.param(body(b"<html>SECRET</html>", Content_Type="application/json"), id="HTML that claims to be JSON"),
        pytest.param(
            body(json.dumps(message(content="x")).encode(), Content_Type="image/png"), id="a wrong content type"
        ),
        pytest.param(body('{"a": "é"}'.encode("latin-1"), Content_Type="application/json"), id="a wrong charset"),
        pytest.param(body(b"{}", Content_Type="application/json", Content_Encoding="gzip"), id="gzip that is none"),
        pytest.param(
            body(gzip.compress(b" " * 20_000_000), Content_Type="application/json", Content_Encoding="gzip"),
            id="a gzip bomb",
        ),
        pytest.param(
            body(
                gzip.compress((b": " + b"x" * 1000 + b"\n") * 40_000),
                Content_Type="text/event-stream",
                Content_Encoding="gzip",
            ),
            id="a gzip bomb as a stream",
        ),
        pytest.param(body(b"", 302, Location="http://127.0.0.1:1/"), id="a redirect"),
    ],
)
@pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED], ids=["asked at once", "asked for a stream"])
async def test_nonsense_is_upstream_invalid_and_none_of_it_is_shown(answer: Answer, prompt: Prompt) -> None:
    with pytest.raises(UpstreamInvalid) as caught:
        await play([answer], prompt)
    assert not any(word in caught.value.detail for word in ("SECRET", "html", "127.0.0.1", "http:"))
