"""What comes beside the answer: the tokens that it took, and the model's reasoning."""

from typing import Any

import pytest

from tests.models.openai.playing import QUESTION, turn
from tests.players.openai_player import chunk, delta, sse
from toolchat.messages import AssistantMessage, ToolCall, Usage
from toolchat.models.openai.mapping import map_message, map_messages


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
async def test_usage_is_the_last_reported_one(usages: list[Any], usage: Usage) -> None:
    chunks = [delta("stop", content="晴"), *(chunk(usage=one) for one in usages)]
    assert (await turn(sse(*chunks))).usage == usage


async def test_usage_within_the_choice_is_read_too() -> None:
    last = chunk({"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 7, "completion_tokens": 2}})
    assert (await turn(sse(delta(content="晴"), last))).usage == Usage(7, 2)


async def test_reasoning_is_stored_as_the_provider_sent_it() -> None:
    detail = {"type": "reasoning.text", "index": 0, "format": "x"}
    chunks = [
        delta(reasoning_content="今天", reasoning="a", reasoning_details=[detail | {"text": "1"}, 3]),
        delta(reasoning_content="下雨", reasoning="b", reasoning_details=[detail | {"text": "2"}]),
        delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "zz", "id": None}], extra_content={"s": 1}),
        delta("tool_calls", tool_calls=[{"index": 0, "id": "a", "function": {"name": "w"}, "extra_content": {"t": 2}}]),
    ]
    reply = (await turn(sse(*chunks))).message
    assert reply.extra == {
        "reasoning_content": "今天下雨",
        "reasoning": "ab",
        "reasoning_details": [detail | {"text": "12"}, {"type": "reasoning.encrypted", "data": "zz", "id": None}],
        "extra_content": {"s": 1},
    }
    assert reply.tool_calls[0].extra == {"extra_content": {"t": 2}}
    assert map_message(reply)[0].items() >= reply.extra.items()


def test_reasoning_is_sent_back_within_its_own_turn_only() -> None:
    earlier = AssistantMessage("晴", extra={"reasoning_content": "old"})
    running = AssistantMessage("", (ToolCall("a", "now", "{}"),), {"reasoning_content": "new"})
    mapped = map_messages([QUESTION, earlier, QUESTION, running])
    assert [one.get("reasoning_content") for one in mapped] == [None, None, None, "new"]
