"""The OpenAI-compatible model against a server that plays the bytes of real ones."""

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from app.chat_models.base import ChatOptions, ChatResponse, ModelEvent, Progress, Prompt, TextDelta
from app.chat_models.openai_compatible.mapping import map_message, map_messages, map_tool_call
from app.chat_models.openai_compatible.model import OpenAICompatibleChatModel, OpenAISettings
from app.errors import (
    ContentFiltered,
    ContextTooLong,
    NotConfigured,
    ProviderAuth,
    ProviderRateLimited,
    ToolchatError,
    UpstreamError,
    UpstreamInvalid,
    UpstreamUnavailable,
)
from app.http import OutboundHttp
from app.messages import (
    AssistantMessage,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    Usage,
    UserMessage,
)
from app.tool_calling.definition import ToolDefinition
from tests.players.openai_player import (
    Answer,
    OpenAIPlayer,
    Script,
    body,
    bytewise,
    chunk,
    delta,
    event,
    finish,
    message,
    sensible_model,
    sse,
    whole,
)

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = ToolDefinition("get_weather", "Tells the weather", SCHEMA)
QUESTION = UserMessage("杭州天气怎么样？")
SECRET = "sk-canary-5f1d"
STREAMED = Prompt((QUESTION,), stream=True)
AT_ONCE = Prompt((QUESTION,))
SSE = {"Content-Type": "text/event-stream"}


@pytest.fixture
async def http() -> AsyncGenerator[OutboundHttp, None]:
    outbound = OutboundHttp()
    yield outbound
    await outbound.aclose()


def model_at(base_url: str, http: OutboundHttp, key: str | None = SECRET) -> OpenAICompatibleChatModel:
    settings = OpenAISettings.model_validate({"api_key": key, "base_url": base_url, "model": "asked"})
    return OpenAICompatibleChatModel(settings, http)


async def play(script: Script, http: OutboundHttp, prompt: Prompt = STREAMED) -> list[ModelEvent]:
    async with OpenAIPlayer(script) as player:
        return [event async for event in model_at(player.base_url, http).respond(prompt)]


async def turn(answer: Answer, http: OutboundHttp, prompt: Prompt = STREAMED) -> ChatResponse:
    """Play one answer; what was streamed must be what the response says."""
    *events, last = await play([answer], http, prompt)
    assert isinstance(last, ChatResponse)
    assert not any(isinstance(event, ChatResponse) for event in events)
    if prompt.stream:
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == last.message.text
    return last


def calls_of(response: ChatResponse) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for call in response.message.tool_calls]


def tool_delta(index: int | None = 0, **fields: Any) -> dict[str, Any]:
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    call = fields | ({"function": function} if function else {}) | ({} if index is None else {"index": index})
    return delta(tool_calls=[call])


CITY = '{"city": "杭州"}'
ONE_CALL = [("a", "get_weather", CITY)]


@pytest.mark.parametrize(
    ("chunks", "calls"),
    [
        pytest.param(
            [
                delta(role="assistant", content=None),
                tool_delta(id="a", type="function", name="get_weather", arguments=""),
                tool_delta(arguments='{"city": '),
                tool_delta(arguments='"杭州"}'),
                finish("tool_calls"),
                chunk(usage={"prompt_tokens": 67, "completion_tokens": 5}),
            ],
            ONE_CALL,
            id="OpenAI",
        ),
        pytest.param(
            [
                tool_delta(id="a", type="function", name="get_weather", arguments=""),
                tool_delta(id="", type="function", name=None, arguments='{"city": "杭州"}'),
                finish("tool_calls"),
            ],
            ONE_CALL,
            id="trap 1: empty ids (DashScope)",
        ),
        pytest.param(
            [tool_delta(None, id="a", name="get_weather", arguments=CITY), finish("stop")],
            ONE_CALL,
            id="traps 2, 4, 6: no index, whole call, then stop (Ollama)",
        ),
        pytest.param(
            [
                tool_delta(id="a", name="get_weather", arguments=CITY),
                tool_delta(id="b", name="get_weather", arguments="{}"),
                finish("tool_calls"),
            ],
            [*ONE_CALL, ("b", "get_weather", "{}")],
            id="trap 3: one index for all (LiteLLM before Ollama)",
        ),
        pytest.param(
            [
                chunk(
                    {
                        "index": 0,
                        "delta": {
                            "tool_calls": [
                                {"index": 0, "id": "a", "function": {"name": "get_weather", "arguments": CITY}}
                            ]
                        },
                        "finish_reason": "tool_calls",
                    }
                ),
                finish("tool_calls"),
            ],
            ONE_CALL,
            id="trap 5: the finish reason with the call, and again (GLM)",
        ),
        pytest.param(
            [
                tool_delta(id="a", type="function"),
                tool_delta(name="get_weather"),
                tool_delta(arguments=CITY),
                finish("stop"),
            ],
            ONE_CALL,
            id="trap 7: id, name and arguments apart (vLLM)",
        ),
        pytest.param(
            [tool_delta(id="a", name="get_weather", arguments={"city": 1}), finish("tool_calls")],
            [("a", "get_weather", '{"city":1}')],
            id="trap 8: arguments are an object",
        ),
        pytest.param(
            [tool_delta(id="a", name="now", arguments=None), finish("tool_calls")],
            [("a", "now", "")],
            id="trap 9: arguments null",
        ),
        pytest.param(
            [tool_delta(id="a", name="get_weather", arguments='{"city": "杭'), finish("length")],
            [("a", "get_weather", '{"city": "杭')],
            id="trap 10: arguments cut by the token limit are kept for the manager",
        ),
        pytest.param(
            [tool_delta(id="a", name="get_weather", arguments=CITY), tool_delta(name="get_weather"), finish("stop")],
            ONE_CALL,
            id="trap 23: the name again",
        ),
        pytest.param(
            [tool_delta(id="a", name="", arguments=CITY), finish("stop")], [("a", "", CITY)], id="trap 23: no name"
        ),
        pytest.param(
            [tool_delta(id="a", name="w", arguments=r'{"c":"\u53'), tool_delta(arguments=r'57"}'), finish("stop")],
            [("a", "w", r'{"c":"\u5357"}')],
            id="trap 27: cut within an escape (vLLM)",
        ),
    ],
)
@pytest.mark.parametrize("cut", [lambda answer: answer, bytewise], ids=["whole events", "byte by byte"])
async def test_a_streamed_call_arrives_whole_from_every_dialect(
    chunks: list[Any], calls: list[tuple[str, str, str]], cut: Any, http: OutboundHttp
) -> None:
    response = await turn(cut(sse(*chunks)), http)
    assert calls_of(response) == calls
    assert response.finish_reason == "tool_calls"
    assert response.message.text == ""


async def test_calls_without_ids_get_ids_of_their_own(http: OutboundHttp) -> None:
    one, other = (
        await turn(sse(tool_delta(0, name="w"), tool_delta(1, name="v"), finish("stop")), http)
    ).message.tool_calls
    assert one.id.startswith("call_")
    assert one.id != other.id


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        pytest.param([delta(content="杭州"), delta(content="：晴"), finish("stop")], "杭州：晴", id="OpenAI"),
        pytest.param(
            [delta(content=None), delta(content=""), delta(), delta(content=[{"text": "晴"}]), finish("stop")],
            "晴",
            id="trap 11: content null, empty, absent, a list",
        ),
        pytest.param([delta(role="", content="晴"), finish("stop")], "晴", id="trap 12: an empty role (MiniMax)"),
        pytest.param(
            [delta(content="<think>hm"), delta(content="</think>\n晴"), finish("stop")], "晴", id="trap 13: <think>"
        ),
        pytest.param(
            [delta(reasoning_content="hm", content=""), delta(content="晴"), finish("stop")],
            "晴",
            id="trap 13: reasoning_content (DeepSeek)",
        ),
        pytest.param(
            [delta(reasoning="hm"), delta(content="晴"), finish("stop")], "晴", id="trap 13: reasoning (vLLM)"
        ),
        pytest.param(
            [delta(reasoning_details=[{"type": "t", "text": "hm"}]), delta(content="晴"), finish("stop")],
            "晴",
            id="trap 13: reasoning_details (MiniMax)",
        ),
        pytest.param(
            [delta(content="杭州今天"), delta(content="杭州今天晴"), delta(content="杭州今天晴。"), finish("stop")],
            "杭州今天晴。",
            id="trap 16: snapshots",
        ),
        pytest.param(
            [delta(content="杭州"), finish("stop"), message(content="杭州", usage={"prompt_tokens": 1})],
            "杭州",
            id="trap 16: the whole message at the end (MiniMax)",
        ),
        pytest.param([delta(content="哈"), delta(content="哈哈"), finish("stop")], "哈哈哈", id="not a snapshot"),
        pytest.param([message(content="杭州")], "杭州", id="a whole message for a stream"),
        pytest.param(
            [chunk(prompt_filter_results=[{}]), delta(content="晴"), finish("stop"), chunk(usage={})],
            "晴",
            id="trap 17: chunks without a choice (Azure)",
        ),
        pytest.param(
            [
                b": keep-alive\n\n",
                b":HTTP_STATUS/200\ndata:" + event(delta(content="晴"))[6:],
                b"data: \n\n",
                finish("stop"),
            ],
            "晴",
            id="trap 19: comments, no blank after data:, empty data (DeepSeek, DashScope)",
        ),
        pytest.param([delta(content="晴"), finish("stop"), delta(content="。")], "晴。", id="a chunk after the finish"),
        pytest.param([chunk({"index": 0, "delta": None}), delta(content="晴"), finish("stop")], "晴", id="delta null"),
        pytest.param([delta(content="晴", new_field={"a": [1]}), finish("stop")], "晴", id="unknown fields"),
        pytest.param([delta(refusal="不"), delta(refusal="行"), finish("stop")], "不行", id="a refusal is an answer"),
        pytest.param(
            [delta("stop", content="data: x\n\n[DONE]\r\u2028")], "data: x\n\n[DONE]\r\u2028", id="text like SSE"
        ),
        pytest.param(
            [chunk({"delta": {"content": "晴"}}), chunk({"finish_reason": "eos"})], "晴", id="odd finish reason"
        ),
        pytest.param([chunk("x"), chunk([]), {"choices": "x"}, delta("stop", content="晴")], "晴", id="odd choices"),
    ],
)
@pytest.mark.parametrize("cut", [lambda answer: answer, bytewise], ids=["whole events", "byte by byte"])
async def test_streamed_text_is_exact_from_every_dialect(
    chunks: list[Any], text: str, cut: Any, http: OutboundHttp
) -> None:
    response = await turn(cut(sse(*chunks)), http)
    assert response.message.text == text
    assert response.finish_reason == "stop"


async def test_text_beside_calls_is_streamed_and_kept(http: OutboundHttp) -> None:
    chunks = [delta(content="我查一下。"), tool_delta(id="a", name="get_weather", arguments=CITY), finish("tool_calls")]
    response = await turn(sse(*chunks), http)
    assert (response.message.text, calls_of(response)) == ("我查一下。", ONE_CALL)


async def test_every_chunk_without_text_is_progress_and_a_comment_is_not(http: OutboundHttp) -> None:
    chunks = [b": keep-alive\n\n", delta(role="assistant"), delta(reasoning="hm"), delta(content="晴"), finish("stop")]
    events = await play([sse(*chunks)], http)
    assert events[:-1] == [Progress(), Progress(), TextDelta("晴"), Progress()]


async def test_a_piece_of_text_is_handed_on_before_the_next_one_comes(http: OutboundHttp) -> None:
    async with (
        OpenAIPlayer([sse(delta(content="晴"), done=False, ending="hang")]) as player,
        aclosing(model_at(player.base_url, http).respond(STREAMED)) as events,
    ):
        assert await anext(events) == TextDelta("晴")


@pytest.mark.parametrize(
    ("usages", "usage"),
    [
        pytest.param([None, None, {"prompt_tokens": 7, "completion_tokens": 2}], Usage(7, 2), id="at the end"),
        pytest.param([{"prompt_tokens": 7, "completion_tokens": n} for n in (1, 2, 3)], Usage(7, 3), id="cumulative"),
        pytest.param(
            [{"prompt_tokens": 7, "completion_tokens": 2}, {"prompt_tokens": 0, "completion_tokens": 0}],
            Usage(7, 2),
            id="zero later",
        ),
        pytest.param([{"prompt_tokens": "7"}, 3, []], Usage(), id="nonsense"),
        pytest.param([], Usage(), id="none at all"),
    ],
)
async def test_usage_is_the_last_that_was_told(usages: list[Any], usage: Usage, http: OutboundHttp) -> None:
    chunks = [delta("stop", content="晴"), *(chunk(usage=one) for one in usages)]
    assert (await turn(sse(*chunks), http)).usage == usage


async def test_usage_within_the_choice_is_read_too(http: OutboundHttp) -> None:
    last = chunk({"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 7, "completion_tokens": 2}})
    assert (await turn(sse(delta(content="晴"), last), http)).usage == Usage(7, 2)


async def test_reasoning_is_kept_as_the_provider_sent_it(http: OutboundHttp) -> None:
    detail = {"type": "reasoning.text", "index": 0, "format": "x"}
    chunks = [
        delta(reasoning_content="今天", reasoning="a", reasoning_details=[detail | {"text": "1"}, 3]),
        delta(reasoning_content="下雨", reasoning="b", reasoning_details=[detail | {"text": "2"}]),
        delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "zz", "id": None}], extra_content={"s": 1}),
        delta("tool_calls", tool_calls=[{"index": 0, "id": "a", "function": {"name": "w"}, "extra_content": {"t": 2}}]),
    ]
    reply = (await turn(sse(*chunks), http)).message
    assert reply.extra == {
        "reasoning_content": "今天下雨",
        "reasoning": "ab",
        "reasoning_details": [detail | {"text": "12"}, {"type": "reasoning.encrypted", "data": "zz", "id": None}],
        "extra_content": {"s": 1},
    }
    assert reply.tool_calls[0].extra == {"extra_content": {"t": 2}}
    assert map_message(reply)[0].items() >= reply.extra.items()


@pytest.mark.parametrize(
    ("value", "text", "calls", "reason"),
    [
        pytest.param(message(content="晴"), "晴", [], "stop", id="text"),
        pytest.param(message("length", content="晴"), "晴", [], "length", id="cut by the token limit"),
        pytest.param(message("content_filter", content="晴"), "晴", [], "content_filter", id="filtered in the middle"),
        pytest.param(message(None, content="晴"), "晴", [], "stop", id="no finish reason"),
        pytest.param(message("tool_calls", content="晴"), "晴", [], "stop", id="tool_calls without calls"),
        pytest.param(
            message("stop", tool_calls=[{"id": "a", "function": {"name": "get_weather", "arguments": CITY}}]),
            "",
            ONE_CALL,
            "tool_calls",
            id="traps 2, 4, 11: a call without index and content, stop",
        ),
        pytest.param(
            message("length", content=None, tool_calls=[{"id": "a", "function": {"name": "w", "arguments": '{"c'}}]),
            "",
            [("a", "w", '{"c')],
            "tool_calls",
            id="trap 10: broken arguments",
        ),
        pytest.param(
            message(content="<think>hm</think>晴", reasoning_content="hm"), "晴", [], "stop", id="trap 13: reasoning"
        ),
    ],
)
@pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED], ids=["asked at once", "asked for a stream"])
async def test_a_whole_answer_is_read_whatever_was_asked_for(
    value: Any, text: str, calls: list[Any], reason: str, prompt: Prompt, http: OutboundHttp
) -> None:
    response = await turn(whole(value), http, prompt)
    assert (response.message.text, calls_of(response), response.finish_reason) == (text, calls, reason)


async def test_without_streaming_the_response_is_the_only_event(http: OutboundHttp) -> None:
    assert len(await play([whole(message(content="晴"))], http, AT_ONCE)) == 1
    assert len(await play([sse(delta(content="晴"), finish("stop"))], http, AT_ONCE)) == 1


@pytest.mark.parametrize("start", [b"\n\n\n  \r\n", b"\xef\xbb\xbf"], ids=["blank lines", "byte order mark"])
async def test_what_stands_before_a_json_body_is_skipped(start: bytes, http: OutboundHttp) -> None:
    answer = body(start + json.dumps(message(content="晴")).encode(), Content_Type="application/json; charset=utf-8")
    assert (await turn(answer, http, AT_ONCE)).message.text == "晴"


@pytest.mark.parametrize(
    ("named", "model"), [("qwen-max-1", "qwen-max-1"), ("", "asked"), (3, "asked"), ("a\nb", "asked")]
)
async def test_the_model_is_named_as_the_provider_does_or_as_asked(named: Any, model: str, http: OutboundHttp) -> None:
    answer = whole(message(content="晴") | {"model": named})
    assert (await turn(answer, http, AT_ONCE)).model == model


TRUNCATED = [delta(content="杭州"), tool_delta(id="a", name="get_weather", arguments='{"ci')]


@pytest.mark.parametrize("ending", ["whole", "close", "cut", "reset"])
@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(TRUNCATED[:1], id="within the text"),
        pytest.param(TRUNCATED, id="within arguments"),
        pytest.param([*TRUNCATED, b'data: {"choices": [{"del'], id="within an event"),
        pytest.param([delta(role="assistant")], id="before the text"),
        pytest.param([], id="before everything"),
    ],
)
async def test_a_stream_that_was_cut_is_never_an_answer(ending: Any, chunks: list[Any], http: OutboundHttp) -> None:
    with pytest.raises(UpstreamError) as caught:
        await play([sse(*chunks, done=False, ending=ending)], http)
    assert ending == "reset" or type(caught.value) is UpstreamInvalid  # a reset may overtake the headers


@pytest.mark.parametrize("ending", ["whole", "close", "cut"])
async def test_a_stream_may_end_without_done_after_the_finish_reason(ending: Any, http: OutboundHttp) -> None:
    answer = sse(delta(content="晴"), finish("stop"), done=False, ending=ending)
    assert (await turn(answer, http)).message.text == "晴"


async def test_a_cut_after_the_finish_reason_costs_the_usage_only(http: OutboundHttp) -> None:
    answer = sse(delta("stop", content="晴"), b'data: {"choices": [], "usa', done=False, ending="cut")
    response = await turn(answer, http)
    assert (response.message.text, response.usage) == ("晴", Usage())


async def test_done_ends_a_stream_that_the_server_does_not_end(http: OutboundHttp) -> None:
    response = await asyncio.wait_for(turn(sse(delta("stop", content="晴"), ending="hang"), http), 3)
    assert response.message.text == "晴"


async def test_done_without_a_finish_reason_and_without_a_line_end_is_an_end(http: OutboundHttp) -> None:
    answer = sse(delta(content="晴"), b"data: [DONE]", done=False)
    assert (await turn(answer, http)).message.text == "晴"


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
        pytest.param(sse(b"data: \xff\xfe\n\n"), id="not UTF-8"),
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
async def test_nonsense_is_upstream_invalid_and_none_of_it_is_shown(
    answer: Answer, prompt: Prompt, http: OutboundHttp
) -> None:
    with pytest.raises(UpstreamInvalid) as caught:
        await play([answer], http, prompt)
    assert not any(word in caught.value.detail for word in ("SECRET", "html", "127.0.0.1", "http:"))


async def test_a_gzipped_answer_is_read(http: OutboundHttp) -> None:
    content = gzip.compress(json.dumps(message(content="晴")).encode())
    answer = body(content, Content_Type="application/json", Content_Encoding="gzip")
    assert (await turn(answer, http, AT_ONCE)).message.text == "晴"


LIMIT = {"message": "Rate limit SECRET", "type": "requests", "code": "rate_limit_exceeded"}
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
async def test_an_error_is_mapped_wherever_it_stands_and_never_quoted(
    answer: Answer, kind: type[ToolchatError], http: OutboundHttp
) -> None:
    with pytest.raises(ToolchatError) as caught:
        await play([answer], http)
    assert type(caught.value) is kind
    assert "SECRET" not in caught.value.detail
    assert SECRET not in str(caught.value)


async def test_the_wait_that_the_provider_asks_for_is_passed_on(http: OutboundHttp) -> None:
    with pytest.raises(ProviderRateLimited) as caught:
        await play([whole({"error": LIMIT}, 429, **{"Retry-After": "2"})], http)
    assert caught.value.retry_after == 2


async def test_no_connection_is_upstream_unavailable(http: OutboundHttp) -> None:
    async with OpenAIPlayer([]) as player:
        url = player.base_url
    with pytest.raises(UpstreamUnavailable):
        [event async for event in model_at(url, http).respond(STREAMED)]


async def test_leaving_the_stream_closes_the_upstream_connection(http: OutboundHttp) -> None:
    async with OpenAIPlayer([sse(delta(content="晴"), done=False, ending="hang")]) as player:
        events = model_at(player.base_url, http).respond(STREAMED)
        assert await anext(events) == TextDelta("晴")
        await events.aclose()
        await asyncio.wait_for(player.aborted.wait(), 2)


@pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED], ids=["at once", "stream"])
async def test_cancelling_the_question_closes_the_upstream_connection(prompt: Prompt, http: OutboundHttp) -> None:
    asked = asyncio.Event()

    def silence(request: object) -> Answer:
        asked.set()
        return Answer(ending="hang")

    async with OpenAIPlayer(silence) as player:
        task = asyncio.create_task(anext(model_at(player.base_url, http).respond(prompt)))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(player.aborted.wait(), 2)


async def test_one_connection_serves_all_questions_and_all_kinds_of_answers(http: OutboundHttp) -> None:
    answers = [
        sse(delta("stop", content="a")),
        whole(message(content="b")),
        whole({"error": LIMIT}, 429),
        sse(delta("stop", content="c")),
    ]
    async with OpenAIPlayer(answers) as player:
        model = model_at(player.base_url, http)
        for _ in range(2):
            [event async for event in model.respond(STREAMED)]
        with pytest.raises(ProviderRateLimited):
            [event async for event in model.respond(STREAMED)]
        [event async for event in model.respond(STREAMED)]
        assert player.connections == 1


async def test_the_request_says_what_is_asked_and_nothing_else(http: OutboundHttp) -> None:
    async with OpenAIPlayer([whole(message(content="晴"))]) as player:
        [event async for event in model_at(player.base_url, http).respond(AT_ONCE)]
        (request,) = player.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.body == {"model": "asked", "messages": [{"role": "user", "content": QUESTION.text}]}
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept"] == "application/json"


async def test_the_request_carries_options_tools_and_streaming_when_they_are_set(http: OutboundHttp) -> None:
    options = ChatOptions(model="other", temperature=0.5, top_p=0.9, max_tokens=100)
    async with OpenAIPlayer([sse(delta("stop", content="晴"))]) as player:
        prompt = Prompt((SystemMessage("简短"), QUESTION), (WEATHER,), options, stream=True)
        [event async for event in model_at(player.base_url, http, None).respond(prompt)]
        (request,) = player.requests
    function = {"name": "get_weather", "description": "Tells the weather", "parameters": SCHEMA}
    assert request.body == {
        "model": "other",
        "messages": [{"role": "system", "content": "简短"}, {"role": "user", "content": QUESTION.text}],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 100,
        "tools": [{"type": "function", "function": function}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert "authorization" not in request.headers
    assert request.headers["accept"] == "text/event-stream"


def test_a_tool_round_is_written_as_the_provider_sent_it() -> None:
    signed = ToolCall("a", "get_weather", CITY, {"extra_content": {"t": 2}, "function": {"signature": "s"}})
    asked = AssistantMessage("", (signed, ToolCall("b", "now", "")), {"reasoning_content": "hm"})
    answered = ToolResponseMessage((ToolResponse("a", "get_weather", "晴"), ToolResponse("b", "now", "12:00")))
    assert map_messages([QUESTION, asked, answered], {"get_weather", "now"})[1:] == [
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "extra_content": {"t": 2},
                    "function": {"name": "get_weather", "arguments": CITY, "signature": "s"},
                },
                {"id": "b", "type": "function", "function": {"name": "now", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "晴"},
        {"role": "tool", "tool_call_id": "b", "content": "12:00"},
    ]


def test_reasoning_is_sent_back_within_its_own_turn_only() -> None:
    earlier = AssistantMessage("晴", extra={"reasoning_content": "old"})
    running = AssistantMessage("", (ToolCall("a", "now", "{}"),), {"reasoning_content": "new"})
    mapped = map_messages([QUESTION, earlier, QUESTION, running])
    assert [one.get("reasoning_content") for one in mapped] == [None, None, None, "new"]


@pytest.mark.parametrize(
    "arguments",
    ["", " ", '{"ci', "null", "[1]", '"x"', "{} {}", "{'a': 1}", '{"a": NaN}', "[" * 5000, '{"a":"\\ud800"}'],
)
def test_broken_arguments_are_sent_back_as_an_empty_object(arguments: str) -> None:
    assert map_tool_call(ToolCall("a", "now", arguments))["function"]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("get_weather", "get_weather"),
        ("天气", "天气"),
        ("default_api:view", "default_api_view"),
        ("", "unknown"),
        ("a\nb", "a_b"),
        ("x" * 300, "x" * 64),
    ],
)
def test_an_invented_name_is_sent_back_in_a_form_that_strict_servers_take(name: str, sent: str) -> None:
    assert map_tool_call(ToolCall("a", name, "{}"), {"天气"})["function"]["name"] == sent


@pytest.mark.parametrize("stream", [False, True], ids=["at once", "stream"])
async def test_a_whole_tool_round_goes_through_the_sensible_player(stream: bool, http: OutboundHttp) -> None:
    async with OpenAIPlayer(sensible_model({"city": "杭州"})) as player:
        model = model_at(player.base_url, http)
        *_, first = [event async for event in model.respond(Prompt((QUESTION,), (WEATHER,), stream=stream))]
        assert isinstance(first, ChatResponse)
        (call,) = first.message.tool_calls
        assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "杭州"})
        answered = ToolResponseMessage((ToolResponse(call.id, call.name, "晴 21 °C"),))
        prompt = Prompt((QUESTION, first.message, answered), (WEATHER,), stream=stream)
        *_, second = [event async for event in model.respond(prompt)]
    assert isinstance(second, ChatResponse)
    assert second.message.text == "The tools say: 晴 21 °C"
    assert (second.usage, second.model) == (Usage(20, 5), "played")


def test_the_key_is_stripped_and_never_printed() -> None:
    settings = OpenAISettings.model_validate({"api_key": f" {SECRET} "})
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == SECRET
    assert SECRET not in repr(settings)
