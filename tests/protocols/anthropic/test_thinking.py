"""The model's reasoning as thinking blocks: for clients that ask for it, whole and streamed, and what comes back."""

from typing import Any

import pytest

from tests.players.openai_player import delta, finish, sse
from tests.protocols.anthropic.asking import events_of, message, said, sent, text, user
from tests.protocols.openai.asking import asks, call, played, says

THOUGHT = {"type": "thinking", "thinking": "2 and 2", "signature": ""}
TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}', "call_time")
ENABLED = {"type": "enabled", "budget_tokens": 1024}


@pytest.mark.parametrize(
    ("asked", "is_shown"),
    [
        (ENABLED, True),
        ({"type": "adaptive"}, True),
        ({"type": "adaptive", "display": "omitted"}, False),
        ({"type": "disabled"}, False),
        (None, False),
    ],
)
async def test_thinking_stands_before_the_text_if_the_client_asks_for_it(asked: Any, is_shown: bool) -> None:
    thinks = sse(delta(reasoning_content="2 and"), delta(reasoning_content=" 2"), delta("stop", content="4"))
    async with played([says("4", reasoning_content="2 and 2"), thinks]) as (client, _):
        whole = await message(client, user("?"), thinking=asked)
        events = events_of((await sent(client, user("?"), thinking=asked, stream=True)).text)
    assert whole["content"] == [*([THOUGHT] if is_shown else []), text("4")]
    blocks = [each["content_block"] for each in events if "content_block" in each]
    assert blocks == [*([THOUGHT | {"thinking": ""}] if is_shown else []), text("")]
    deltas = [each["delta"] for each in events if each["type"] == "content_block_delta"]
    thoughts = [{"type": "thinking_delta", "thinking": each} for each in ("2 and", " 2")] if is_shown else []
    assert deltas == [*thoughts, {"type": "text_delta", "text": "4"}]
    assert [each["index"] for each in events if "content_block" in each] == list(range(len(blocks)))


async def test_each_round_has_a_block_of_its_own() -> None:
    calls = sse(delta(reasoning_content="Ask."), delta(tool_calls=[{"index": 0, **TIME}]), finish("tool_calls"))
    async with played([calls, sse(delta(reasoning_content="Noon."), delta("stop", content="12"))]) as (client, _):
        events = events_of((await sent(client, user("?"), thinking=ENABLED, stream=True)).text)
    kinds = [each["content_block"]["type"] for each in events if "content_block" in each]
    assert kinds == ["thinking", "mcp_tool_use", "mcp_tool_result", "thinking", "text"]


async def test_thinking_that_comes_back_is_passed_over() -> None:
    redacted = {"type": "redacted_thinking", "data": "AA=="}
    async with played([asks(TIME), says("Noon.")]) as (client, player):
        await message(client, user("Hi"), said(THOUGHT, redacted, text("Hello.")), user("?"), thinking=ENABLED)
    assert player.requests[0].body["messages"][1:] == [
        user("Hi"),
        {"role": "assistant", "content": "Hello."},
        user("?"),
    ]
