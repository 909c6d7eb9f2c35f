"""The stream of parts: text and tool calls, live, in the order that a page expects."""

import asyncio
from typing import Any

import pytest

from tests.players.openai_player import delta, finish, sse
from tests.protocols.ai_sdk.asking import CHAT, asks, parts_of, says, sent, user
from tests.protocols.openai.asking import call, played
from tests.waiting import PATIENCE
from toolchat.service.settings.service_settings import Tuning

TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}')
HANGS = sse(delta(content="Hel"), done=False, ending="hang")


def kinds(parts: list[dict[str, Any]]) -> list[str]:
    return [each["type"] for each in parts]


async def test_text_is_a_part_within_a_step_of_a_message() -> None:
    async with played([says("Hel", "lo.")]) as (client, player):
        answer = await sent(client, user("Hi"))
    assert parts_of(answer) == [
        {"type": "start"},
        {"type": "start-step"},
        {"type": "text-start", "id": "1"},
        {"type": "text-delta", "id": "1", "delta": "Hel"},
        {"type": "text-delta", "id": "1", "delta": "lo."},
        {"type": "text-end", "id": "1"},
        {"type": "finish-step"},
        {"type": "finish", "finishReason": "stop"},
    ]
    assert player.requests[0].body["messages"][-1] == {"role": "user", "content": "Hi"}
    assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert "x-session-id" not in answer.headers


async def test_a_call_has_its_result_and_the_next_text_starts_a_step() -> None:
    async with played([asks(TIME, content="Looking."), says("Noon.")]) as (client, _):
        parts = parts_of(await sent(client, user("What time is it in Shanghai?")))
    spoken = ["text-start", "text-delta", "text-end"]
    called = ["tool-input-available", "tool-output-available"]
    first = ["start-step", *spoken, *called, "finish-step"]
    assert kinds(parts) == ["start", *first, "start-step", *spoken, "finish-step", "finish"]
    told = {each["type"]: each for each in parts}
    assert told["tool-input-available"] == {
        "type": "tool-input-available",
        "toolCallId": "call_1",
        "toolName": "getCityTimeFunction",
        "input": {"timeZoneId": "Asia/Shanghai"},
        "dynamic": True,
        "providerExecuted": True,
    }
    assert told["tool-output-available"]["toolCallId"] == "call_1"
    assert told["tool-output-available"]["output"].startswith("The current time zone is Asia/Shanghai")


async def test_calls_of_one_round_share_a_step() -> None:
    london = call("getCityTimeFunction", '{"timeZoneId":"Europe/London"}', "call_2")
    async with played([asks(TIME, london), asks(TIME), says("Noon.")]) as (client, _):
        parts = parts_of(await sent(client, user("?")))
    steps: list[list[str]] = []
    for kind in kinds(parts):
        if kind == "start-step":
            steps.append([])
        elif kind.startswith("tool-"):
            steps[-1].append(kind)
    called, result = "tool-input-available", "tool-output-available"
    assert steps == [[called, called, result, result], [called, result], []]


@pytest.mark.parametrize(
    ("asked", "given", "words"),
    [
        (call("nobody"), {}, "there is no tool 'nobody'"),
        (call("getCityTimeFunction", "{}"), {}, "timeZoneId"),
        (call("getCityTimeFunction", "{broken"), "{broken", "JSON"),
    ],
    ids=["an unknown tool", "a missing argument", "arguments that are no JSON"],
)
async def test_a_failed_call_is_reported_as_text(asked: dict[str, Any], given: Any, words: str) -> None:
    async with played([asks(asked), says("Sorry.")], TOOL_CALL_REPAIRS="0") as (client, _):
        parts = parts_of(await sent(client, user("?")))
    told = {each["type"]: each for each in parts}
    assert told["tool-input-available"]["input"] == given
    assert words in told["tool-output-error"]["errorText"]
    assert not told["tool-output-error"]["errorText"].startswith("{")
    assert parts[-1]["finishReason"] == "stop"


async def test_reasoning_is_a_separate_part_before_the_text() -> None:
    script = [sse(delta(reasoning_content="2 and 2"), delta(reasoning_content=" make 4"), delta("stop", content="4"))]
    async with played(script) as (client, _):
        parts = parts_of(await sent(client, user("?")))
    assert parts[2:8] == [
        {"type": "reasoning-start", "id": "1"},
        {"type": "reasoning-delta", "id": "1", "delta": "2 and 2"},
        {"type": "reasoning-delta", "id": "1", "delta": " make 4"},
        {"type": "reasoning-end", "id": "1"},
        {"type": "text-start", "id": "2"},
        {"type": "text-delta", "id": "2", "delta": "4"},
    ]


@pytest.mark.parametrize(
    ("reason", "told"),
    [("stop", "stop"), ("length", "length"), ("content_filter", "content-filter"), ("pause_turn", "other")],
)
async def test_the_finish_reason_is_one_of_the_sdk(reason: str, told: str) -> None:
    async with played([sse(delta(content="Hel"), finish(reason))]) as (client, _):
        parts = parts_of(await sent(client, user("?")))
    assert parts[-1] == {"type": "finish", "finishReason": told}


async def test_notices_of_advisors_are_transient_data() -> None:
    async with played([says("Calm.")], "tests.protocols.ai_sdk.folders") as (client, _):
        parts = parts_of(await sent(client, user("?")))
    (told,) = [each for each in parts if each["type"] == "data-harbour"]
    assert (told["transient"], told["data"]) == (True, {"ships": 2})
    assert "text-delta" in kinds(parts)


async def test_text_is_streamed_live_and_a_disconnect_stops_the_model() -> None:
    async with played([HANGS]) as (client, player):
        async with client.stream("POST", CHAT, json={"messages": [user("?")]}) as answer:
            received = b""
            async for piece in answer.aiter_bytes():
                received += piece
                if b'"Hel"' in received:
                    break
        async with asyncio.timeout(PATIENCE):
            await player.aborted.wait()
    assert b"text-end" not in received


@pytest.mark.slow
async def test_a_silent_stream_is_kept_alive_by_comments() -> None:
    async with played([HANGS], Tuning(stream_keep_alive=0.05), REQUEST_TIMEOUT="1") as (client, _):
        answer = await sent(client, user("?"))
    assert ": keep-alive\n\n" in answer.text
    assert [each["type"] for each in parts_of(answer)][-2:] == ["text-end", "error"]


async def test_the_offline_model_answers_with_the_same_parts(offline: Any) -> None:
    parts = parts_of(await sent(offline, user("What time is it in London?")))
    assert "tool-output-available" in kinds(parts)
    assert kinds(parts)[-2:] == ["finish-step", "finish"]
    assert "London" in "".join(each.get("delta", "") for each in parts)
