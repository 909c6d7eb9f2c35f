"""Streams of chunks: live, in OpenAI's format, with Open WebUI's status events on request."""

import asyncio
from typing import Any

import pytest

from tests.players.openai_player import Answer, chunk, delta, finish, sse, whole
from tests.protocols.openai.asking import COMPLETIONS, RESPONSES, call, chunks_of, events_of, played, streamed, user
from tests.waiting import PATIENCE
from toolchat.service.settings.service_settings import Tuning

TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}')
USAGE = chunk(usage={"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10})
HELLO = sse(delta(content="Hel"), delta(content="lo."), finish("stop"), USAGE)
PROGRESS = {"X-Toolchat-Progress": "open-webui"}


def asks_in_a_stream(asked: dict[str, Any] = TIME) -> Answer:
    return sse(delta(tool_calls=[{"index": 0, **asked}]), finish("tool_calls"))


def deltas(chunks: list[Any]) -> list[Any]:
    return [each["choices"][0]["delta"] for each in chunks if each != "[DONE]" and each["choices"]]


def text_of(chunks: list[Any]) -> str:
    return "".join(each.get("content") or "" for each in deltas(chunks))


async def test_a_stream_has_a_chunk_per_piece_then_the_finish_reason_and_done() -> None:
    async with played([HELLO]) as (client, _):
        answer = await streamed(client, user("Hi"), model="toolchat-plain")
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert int(answer.headers["openai-processing-ms"]) >= 0
    *chunks, done = chunks_of(answer.text)
    assert done == "[DONE]"
    assert deltas(chunks) == [{"role": "assistant", "content": "Hel"}, {"content": "lo."}, {}]
    assert [each["choices"][0]["finish_reason"] for each in chunks] == [None, None, "stop"]
    heads = {(each["id"], each["object"], each["created"], each["model"]) for each in chunks}
    ((identifier, kind, _, model),) = heads
    assert (identifier[:9], kind, model) == ("chatcmpl-", "chat.completion.chunk", "toolchat-plain")
    assert all("usage" not in each for each in chunks)


async def test_usage_is_sent_in_its_own_chunk_on_request() -> None:
    async with played([HELLO]) as (client, _):
        answer = await streamed(client, stream_options={"include_usage": True})
    *chunks, last, _ = chunks_of(answer.text)
    assert [each["usage"] for each in chunks] == [None] * len(chunks)
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 10)


async def test_calls_of_the_service_are_never_streamed() -> None:
    async with played([asks_in_a_stream(), HELLO]) as (client, _):
        answer = await streamed(client, user("What time is it?"), model="toolchat-time")
    chunks = chunks_of(answer.text)
    assert text_of(chunks) == "Hello."
    assert all("tool_calls" not in each for each in deltas(chunks))
    assert all("event" not in each for each in chunks)
    assert "getCityTime" not in answer.text


@pytest.mark.parametrize(("headers", "variables"), [(PROGRESS, {}), ({}, {"OPENAI_API_PROGRESS": "open-webui"})])
async def test_open_webui_gets_tool_status_in_ordinary_chunks(
    headers: dict[str, str], variables: dict[str, str]
) -> None:
    async with played([asks_in_a_stream(), HELLO], **variables) as (client, _):
        answer = await streamed(client, user("?"), model="toolchat-time", headers=headers)
    chunks = chunks_of(answer.text)
    told = [each for each in chunks if "event" in each]
    assert [(each["event"]["type"], each["event"]["data"]["done"]) for each in told] == [
        ("status", False),
        ("status", True),
    ]
    assert told[0]["event"]["data"]["description"] == "Running getCityTimeFunction …"
    assert told[1]["event"]["data"]["description"].startswith("getCityTimeFunction answered in ")
    assert [each["choices"][0]["delta"] for each in told] == [{}, {}]
    assert text_of(chunks) == "Hello."


async def test_reasoning_is_streamed_in_its_own_deltas() -> None:
    script = [sse(delta(reasoning_content="2 and 2"), delta(reasoning_content=" make 4"), delta("stop", content="4"))]
    async with played(script) as (client, _):
        answer = await streamed(client)
    told = deltas(chunks_of(answer.text))
    assert "".join(each.get("reasoning_content", "") for each in told) == "2 and 2 make 4"
    assert text_of(chunks_of(answer.text)) == "4"


async def test_progress_of_a_tool_is_streamed_while_it_runs() -> None:
    async with played([asks_in_a_stream(call("pack")), HELLO], "tests.protocols.openai.folders") as (client, _):
        answer = await streamed(client, user("Pack"), model="toolchat-ship", headers=PROGRESS)
    told = [each["event"]["data"] for each in chunks_of(answer.text) if "event" in each]
    assert [each["description"] for each in told[:-1]] == ["Running pack …", "pack: 2 of 2, box 2"]
    assert [each["done"] for each in told] == [False, False, True]


async def test_an_error_during_the_stream_is_its_last_event() -> None:
    script = [sse(delta(content="Hel"), done=False, ending="cut")]
    async with played(script) as (client, _):
        answer = await streamed(client)
    *_, last = chunks_of(answer.text)
    assert answer.status_code == 200
    assert last["error"].pop("message")
    assert last == {"error": {"type": "server_error", "param": None, "code": "upstream_invalid"}}


async def test_text_is_streamed_live() -> None:
    script = [sse(delta(content="Hel"), done=False, ending="hang")]
    async with played(script) as (client, player):
        body = {"model": "toolchat", "messages": [user("?")], "stream": True}
        async with client.stream("POST", COMPLETIONS, json=body) as answer:
            assert b'"Hel"' in await anext(answer.aiter_bytes())
        # The client has disconnected, so the request to the model must end, too.
        async with asyncio.timeout(PATIENCE):
            await player.aborted.wait()


async def test_a_silent_stream_is_kept_alive_by_comments() -> None:
    script = [sse(delta(content="Hel"), done=False, ending="hang")]
    async with played(script, Tuning(stream_keep_alive=0.05)) as (client, _):
        body = {"model": "toolchat", "messages": [user("?")], "stream": True}
        async with client.stream("POST", COMPLETIONS, json=body) as answer:
            async for piece in answer.aiter_bytes():
                if piece.startswith(b":"):
                    break
            else:
                raise AssertionError("the stream ended")


HANGS = [sse(done=False, ending="hang")]


async def test_a_response_begins_before_the_model_does() -> None:
    async with played(HANGS) as (client, _):
        body = {"model": "toolchat", "input": "?", "stream": True}
        async with client.stream("POST", RESPONSES, json=body) as answer:
            begun = await anext(answer.aiter_text())
    created, running = events_of(begun)
    assert (created["type"], running["type"]) == ("response.created", "response.in_progress")
    assert (created["response"]["status"], created["response"]["id"]) == ("in_progress", running["response"]["id"])


async def test_chunks_begin_with_a_comment_while_the_model_is_silent() -> None:
    async with played(HANGS, Tuning(stream_begin=0.05, stream_keep_alive=600), REQUEST_TIMEOUT="5") as (client, _):
        body = {"model": "toolchat", "messages": [user("?")], "stream": True}
        async with client.stream("POST", COMPLETIONS, json=body) as answer:
            assert await anext(answer.aiter_bytes()) == b": keep-alive\n\n"
            assert answer.headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (whole({"error": {"message": "x", "code": "context_length_exceeded"}}, 400), "context_length_exceeded"),
        (whole({"error": {"message": "x"}}, 429), "rate_limit_exceeded"),
        (whole({"error": {"message": "x", "code": "content_policy_violation"}}, 400), "invalid_prompt"),
        (whole({"error": {"message": "x"}}, 500), "server_error"),
    ],
)
async def test_an_error_before_the_first_word_is_a_failed_response_with_a_code_that_clients_know(
    error: Answer, code: str
) -> None:
    # The codes that codex-rs/codex-api/src/sse/responses.rs of openai/codex tells apart.
    async with played([error]) as (client, _):
        answer = await client.post(RESPONSES, json={"model": "toolchat", "input": "?", "stream": True})
    last = events_of(answer.text)[-1]
    assert (answer.status_code, last["type"], last["response"]["error"]["code"]) == (200, "response.failed", code)


async def test_a_timeout_during_the_stream_ends_it_with_an_error() -> None:
    script = [sse(delta(content="Hel"), done=False, ending="hang")]
    async with played(script, REQUEST_TIMEOUT="0.3") as (client, _):
        answer = await streamed(client)
    assert chunks_of(answer.text)[-1]["error"]["code"] == "deadline"
