"""Whole and streamed answers of real servers, in their dialects, and what is no answer."""

import asyncio
import gzip
import json
from typing import Any

import pytest

from tests.models.openai.playing import (
    AT_ONCE,
    CITY,
    LIMIT,
    ONE_CALL,
    SECRET,
    STREAMED,
    calls_of,
    play,
    tool_delta,
    turn,
)
from tests.players.openai_player import Answer, body, bytewise, chunk, delta, event, finish, message, sse, whole
from toolchat.errors import (
    ContentFiltered,
    ContextTooLong,
    NotConfigured,
    ProviderRateLimited,
    ToolchatError,
    UpstreamError,
    UpstreamInvalid,
    UpstreamUnavailable,
)
from toolchat.messages import Usage
from toolchat.models.base import Progress, Prompt, TextDelta
from toolchat.models.openai.mapping import map_message
from toolchat.models.profiles import Profile
from toolchat.models.resilience import KEEPALIVE

JSON, SSE = "application/json", "text/event-stream"
STOP = finish("stop")
BOTH = pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED], ids=["asked at once", "asked for a stream"])


def called(name: str, **arguments: str) -> dict[str, Any]:
    return {"content": None, "tool_calls": [{"index": 0, "id": "a", "function": {"name": name, **arguments}}]}


WHOLE: dict[str, tuple[Any, str, list[Any], str]] = {
    "text": (message(content="晴"), "晴", [], "stop"),
    "cut by the token limit": (message("length", content="晴"), "晴", [], "length"),
    "filtered in the middle": (message("content_filter", content="晴"), "晴", [], "content_filter"),
    "no finish reason": (message(None, content="晴"), "晴", [], "stop"),
    "tool_calls without calls": (message("tool_calls", content="晴"), "晴", [], "stop"),
    "a call, stop": (message("stop", **called("get_weather", arguments=CITY)), "", ONE_CALL, "tool_calls"),
    "broken arguments": (message("length", **called("w", arguments='{"c')), "", [("a", "w", '{"c')], "length"),
    "filtered in a call": (message("content_filter", **called("w")), "", [("a", "w", "")], "content_filter"),
    "reasoning": (message(content="<think>hm</think>晴", reasoning_content="hm"), "晴", [], "stop"),
}


@pytest.mark.parametrize("case", WHOLE)
@BOTH
async def test_a_complete_response_to_a_stream_request_is_accepted(case: str, prompt: Prompt) -> None:
    value, *expected = WHOLE[case]
    response = await turn(whole(value), prompt)
    assert [response.message.text, calls_of(response), response.finish_reason] == expected


@pytest.mark.parametrize(
    "answer", [whole(message(content="晴")), sse(delta(content="晴"), STOP)], ids=["JSON", "events"]
)
async def test_without_streaming_the_response_is_the_only_event_but_for_signs_of_life(answer: Answer) -> None:
    assert len([each for each in await play([answer], AT_ONCE) if each != KEEPALIVE]) == 1


PLAIN = json.dumps(message(content="晴")).encode()


@pytest.mark.parametrize(
    "answer",
    [
        body(b"\n\n\n  \r\n" + PLAIN, Content_Type=f"{JSON}; charset=utf-8"),
        body(b"\xef\xbb\xbf" + PLAIN, Content_Type=JSON),
        body(gzip.compress(PLAIN), Content_Type=JSON, Content_Encoding="gzip"),
    ],
    ids=["blank lines", "byte order mark", "gzip"],
)
async def test_what_json_is_wrapped_in_does_not_matter(answer: Answer) -> None:
    assert (await turn(answer, AT_ONCE)).message.text == "晴"


@pytest.mark.parametrize(
    ("named", "model"), [("qwen-max-1", "qwen-max-1"), ("", "asked"), (3, "asked"), ("a\nb", "asked")]
)
async def test_the_model_name_is_the_providers_or_the_requested_one(named: Any, model: str) -> None:
    answer = whole(message(content="晴") | {"model": named})
    assert (await turn(answer, AT_ONCE)).model == model


@pytest.mark.parametrize(
    ("usages", "usage"),
    [
        ([None, None, {"prompt_tokens": 7, "completion_tokens": 2}], Usage(7, 2)),
        ([{"prompt_tokens": 7, "completion_tokens": n} for n in (1, 2, 3)], Usage(7, 3)),
        ([{"prompt_tokens": 7, "completion_tokens": 2}, {"prompt_tokens": 0, "completion_tokens": 0}], Usage(7, 2)),
        ([{"prompt_tokens": "7"}, 3, []], Usage()),
        ([], Usage()),
    ],
    ids=["at the end", "cumulative", "zero later", "nonsense", "none at all"],
)
async def test_usage_is_the_last_reported_one(usages: list[Any], usage: Usage) -> None:
    chunks = [delta("stop", content="晴"), *(chunk(usage=one) for one in usages)]
    assert (await turn(sse(*chunks))).usage == usage


async def test_usage_within_the_choice_is_read_too() -> None:
    last = chunk({"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 7, "completion_tokens": 2}})
    assert (await turn(sse(delta(content="晴"), last))).usage == Usage(7, 2)


async def test_reasoning_is_stored_as_the_provider_sent_it() -> None:
    detail, encrypted = {"type": "reasoning.text", "index": 0}, {"type": "reasoning.encrypted", "data": "z", "id": None}
    chunks = [
        delta(reasoning_content="今天", reasoning="a", reasoning_details=[detail | {"text": "1"}, 3]),
        delta(reasoning_content="下雨", reasoning="b", reasoning_details=[detail | {"text": "2"}]),
        delta(reasoning_details=[encrypted], extra_content={"s": 1}),
        delta("tool_calls", tool_calls=[{"index": 0, "id": "a", "function": {"name": "w"}, "extra_content": {"t": 2}}]),
    ]
    reply = (await turn(sse(*chunks))).message
    assert reply.extra == {
        "reasoning_content": "今天下雨",
        "reasoning": "ab",
        "reasoning_details": [detail | {"text": "12"}, encrypted],
        "extra_content": {"s": 1},
        "by": "127.0.0.1/asked",
    }
    assert reply.tool_calls[0].extra == {"extra_content": {"t": 2}}
    [sent] = map_message(reply, profile=Profile(by="127.0.0.1/asked"))
    assert sent.keys() - {"role", "content", "tool_calls"} == reply.extra.keys() - {"by"}


# https://docs.litellm.ai/docs/reasoning_content
THOUGHT = {"type": "thinking", "thinking": "The capital of France is Paris."}
BLOCK = THOUGHT | {"signature": "EqoBCkgIARABGAIiQL2UoU0b1OHYi+"}
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"}
CUT_BLOCK = [
    THOUGHT | {"thinking": "The capital of ", "signature": None},
    THOUGHT | {"thinking": "France is Paris."},
    BLOCK | {"thinking": ""},
]


@pytest.mark.parametrize("pieces", [[[BLOCK, REDACTED, BLOCK]], [[each] for each in (*CUT_BLOCK, REDACTED, BLOCK)]])
async def test_thinking_blocks_are_kept_as_they_were_signed(pieces: list[list[dict[str, Any]]]) -> None:
    reply = (await turn(sse(*(delta(thinking_blocks=each) for each in pieces), delta("stop", content="Paris")))).message
    assert reply.extra["thinking_blocks"] == [BLOCK, REDACTED, BLOCK]


@pytest.mark.parametrize("text", ["", None])
async def test_reasoning_that_is_empty_is_kept_and_what_is_missing_is_not(text: str | None) -> None:
    first = delta(role="assistant", content=None, reasoning_content=text)
    call = called("now", arguments="{}")
    for answer in (
        sse(first, delta("tool_calls", **call)),
        whole(message("tool_calls", reasoning_content=text, **call)),
    ):
        extra = (await turn(answer)).message.extra
        assert extra == ({} if text is None else {"reasoning_content": "", "by": "127.0.0.1/asked"})


def said(*contents: Any) -> list[Any]:
    return [*(delta(content=each) for each in contents), STOP]


LIKE_SSE = "data: x\n\n[DONE]\r\u2028"
THROTTLED = {"code": "Throttling.RateQuota", "message": "SECRET", "request_id": "1"}
DIALECTS: dict[str, tuple[list[Any], str]] = {
    "OpenAI": (said("杭州", "：晴"), "杭州：晴"),
    "content null, empty, absent, a list": ([delta(), *said(None, "", [{"text": "晴"}])], "晴"),
    "an empty role (MiniMax)": ([delta(role=""), *said("晴")], "晴"),
    "<think>": (said("<think>hm", "</think>\n晴"), "晴"),
    "reasoning_content (DeepSeek)": ([delta(reasoning_content="hm", content=""), *said("晴")], "晴"),
    "reasoning (vLLM)": ([delta(reasoning="hm"), *said("晴")], "晴"),
    "reasoning_details (MiniMax)": ([delta(reasoning_details=[{"type": "t", "text": "hm"}]), *said("晴")], "晴"),
    "snapshots": (said("杭州今天", "杭州今天晴", "杭州今天晴。"), "杭州今天晴。"),
    "the whole message at the end (MiniMax)": ([*said("杭州"), message(content="杭州", usage={})], "杭州"),
    "not a snapshot": (said("哈", "哈哈"), "哈哈哈"),
    "a whole message for a stream": ([message(content="杭州")], "杭州"),
    "chunks without a choice (Azure)": ([chunk(prompt_filter_results=[{}]), *said("晴"), chunk(usage={})], "晴"),
    "comments, no blank after data:, empty data (DeepSeek, DashScope)": (
        [b": keep-alive\n\n", b":HTTP_STATUS/200\ndata:" + event(delta(content="晴"))[6:], b"data: \n\n", STOP],
        "晴",
    ),
    "a chunk after the finish": ([*said("晴"), delta(content="。")], "晴。"),
    "delta null": ([chunk({"index": 0, "delta": None}), *said("晴")], "晴"),
    "unknown fields": ([delta(content="晴", new_field={"a": [1]}), STOP], "晴"),
    "a refusal is an answer": ([delta(refusal="不"), delta(refusal="行"), STOP], "不行"),
    "text like SSE": (said(LIKE_SSE), LIKE_SSE),
    "odd finish reason": ([chunk({"delta": {"content": "晴"}}), chunk({"finish_reason": "eos"})], "晴"),
    "odd choices": ([chunk("x"), chunk([]), {"choices": "x"}, *said("晴")], "晴"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("cut", [lambda answer: answer, bytewise], ids=["whole events", "byte by byte"])
async def test_streamed_text_is_exact_from_every_dialect(dialect: str, cut: Any) -> None:
    chunks, text = DIALECTS[dialect]
    response = await turn(cut(sse(*chunks)))
    assert (response.message.text, response.finish_reason) == (text, "stop")


async def test_every_chunk_without_text_is_progress_and_a_comment_is_a_keepalive() -> None:
    events = await play([sse(b": keep-alive\n\n", delta(role="assistant"), delta(reasoning="hm"), *said("晴"))])
    assert events[:-1] == [KEEPALIVE, Progress(), Progress("hm"), TextDelta("晴"), Progress()]


CUT = [delta(content="杭州"), tool_delta(id="a", name="get_weather", arguments='{"ci'), b'data: {"choices": [{"del']


@pytest.mark.parametrize("ending", ["whole", "close", "cut", "reset"])
@pytest.mark.parametrize(
    "chunks",
    [CUT[:1], CUT[:2], CUT, [delta(role="assistant")], []],
    ids=["the text", "arguments", "an event", "before the text", "before everything"],
)
async def test_a_stream_that_was_cut_is_never_an_answer(ending: Any, chunks: list[Any]) -> None:
    with pytest.raises(UpstreamError) as caught:
        await play([sse(*chunks, done=False, ending=ending)])
    assert ending == "reset" or type(caught.value) is UpstreamInvalid  # a reset may overtake the headers


@pytest.mark.parametrize("ending", ["whole", "close", "cut"])
async def test_a_stream_may_end_without_done_after_the_finish_reason(ending: Any) -> None:
    assert (await turn(sse(*said("晴"), done=False, ending=ending))).message.text == "晴"


async def test_a_cut_after_the_finish_reason_costs_the_usage_only() -> None:
    response = await turn(sse(*said("晴"), b'data: {"choices": [], "usa', done=False, ending="cut"))
    assert (response.message.text, response.usage) == ("晴", Usage())


async def test_done_ends_a_stream_that_the_server_does_not_end() -> None:
    response = await asyncio.wait_for(turn(sse(*said("晴"), ending="hang")), 20)
    assert response.message.text == "晴"


async def test_done_without_a_finish_reason_and_without_a_line_end_is_an_end() -> None:
    assert (await turn(sse(delta(content="晴"), b"data: [DONE]", done=False))).message.text == "晴"


HTML = b"<html>SECRET</html>"
VLLM = {"object": "error", "message": "maximum context length is 8 SECRET", "code": 400}
MINIMAX = {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "rate limit SECRET"}}
ERRORS: dict[str, tuple[Answer, type[ToolchatError]]] = {
    "429": (whole({"error": LIMIT}, 429), ProviderRateLimited),
    "429 with HTML": (body(HTML, 429, Content_Type="text/html"), ProviderRateLimited),
    "429, cut": (Answer([b'{"err'], 429, ending="cut"), ProviderRateLimited),
    "429 with a long body": (body(b"SECRET" * 20_000, 429), ProviderRateLimited),
    "Gemini": (whole([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}], 429), ProviderRateLimited),
    "Ollama": (whole({"error": "model 'x' not found SECRET"}, 404), NotConfigured),
    "vLLM": (whole(VLLM, 400), ContextTooLong),
    "429 within a 200": (whole({"error": {"code": 429, "message": "SECRET"}}), ProviderRateLimited),
    "error in a 200": (whole({"error": LIMIT}), ProviderRateLimited),
    "code and message in a 200": (whole(THROTTLED), ProviderRateLimited),
    "base_resp in a 200": (whole(MINIMAX), ProviderRateLimited),
    "error in a stream": (sse(delta(content="晴"), {"error": LIMIT}), ProviderRateLimited),
    "code and message in a stream": (sse(THROTTLED), ProviderRateLimited),
    "base_resp in a stream": (sse(MINIMAX), ProviderRateLimited),
    "error beside choices": (sse(delta(content="晴") | {"error": LIMIT}), ProviderRateLimited),
    "event: error (DashScope)": (
        sse(b"event:error\n:HTTP_STATUS/429\ndata:" + json.dumps(THROTTLED).encode() + b"\n\n"),
        ProviderRateLimited,
    ),
    "an error of unknown shape": (sse(b'event: error\ndata: {"SECRET": 1}\n\n'), UpstreamUnavailable),
    "an error that is no JSON": (sse(b"event: error\ndata: SECRET\n\n"), UpstreamUnavailable),
    "finish reason error (OpenRouter)": (sse(delta("error", content="晴")), UpstreamUnavailable),
    "nothing left by moderation": (sse(delta("content_filter", content="")), ContentFiltered),
}


@pytest.mark.parametrize("case", ERRORS)
async def test_an_error_is_mapped_in_every_format_and_never_quoted(case: str) -> None:
    answer, kind = ERRORS[case]
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


BOMB, LONG_BOMB = gzip.compress(b" " * 20_000_000), gzip.compress((b": " + b"x" * 1000 + b"\n") * 40_000)
NONSENSE: dict[str, Answer] = {
    "only [DONE]": sse(),
    "an empty stream": sse(done=False),
    "only a comment": sse(b": keep-alive\n\n", done=False),
    "only usage": sse(chunk(usage={"prompt_tokens": 1})),
    "broken JSON": sse(b"data: {broken\n\n"),
    "deep JSON": sse(b'data: {"choices": [' + b"[" * 100_000 + b"\n\n"),
    "a huge number": sse(b'data: {"n": ' + b"9" * 5000 + b"}\n\n"),
    "half a character": sse(b'data: {"choices":[{"delta":{"content":"\\ud800"}}]}\n\n'),
    "not UTF-8": sse(b'data: {"choices":[{"delta":{"content":"\xe4\xbd"}}]}\n\n'),
    "null": sse(b"data: null\n\n"),
    "a list": sse(b"data: [1]\n\n"),
    "an endless event": Answer([b"data: " + b"x" * 65536] * 33, headers={"Content-Type": SSE}),
    "an empty object": whole({}),
    "no choices": whole({"choices": []}),
    "choices null": whole({"choices": None}),
    "a list as the body": whole([1, 2]),
    "an empty body": body(b"", Content_Type=JSON),
    "nothing at all": body(b""),
    "HTML": body(HTML, Content_Type="text/html"),
    "HTML that claims to be JSON": body(HTML, Content_Type=JSON),
    "a wrong content type": body(PLAIN, Content_Type="image/png"),
    "a wrong charset": body('{"a": "é"}'.encode("latin-1"), Content_Type=JSON),
    "gzip that is none": body(b"{}", Content_Type=JSON, Content_Encoding="gzip"),
    "a gzip bomb": body(BOMB, Content_Type=JSON, Content_Encoding="gzip"),
    "a gzip bomb as a stream": body(LONG_BOMB, Content_Type=SSE, Content_Encoding="gzip"),
    "a redirect": body(b"", 302, Location="http://127.0.0.1:1/"),
}


@pytest.mark.parametrize("case", NONSENSE)
@BOTH
async def test_nonsense_is_upstream_invalid_and_none_of_it_is_shown(case: str, prompt: Prompt) -> None:
    with pytest.raises(UpstreamInvalid) as caught:
        await play([NONSENSE[case]], prompt)
    assert not any(word in caught.value.detail for word in ("SECRET", "html", "127.0.0.1", "http:"))
