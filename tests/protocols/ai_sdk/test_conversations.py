"""Messages of a page as the model receives them."""

from typing import Any

import httpx
import pytest

from tests.players.openai_player import OpenAIPlayer
from tests.protocols.ai_sdk.asking import ended, parts_of, said, says, sent, text, user
from tests.protocols.openai.asking import played


def given(player: OpenAIPlayer) -> list[Any]:
    """The last request to the model, without instructions: texts, and the arguments of calls."""
    told = [each for each in player.requests[-1].body["messages"] if each["role"] != "system"]
    return [
        (
            each["role"],
            each.get("content") or "",
            *(call["function"]["arguments"] for call in each.get("tool_calls", ())),
        )
        for each in told
    ]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([user("Hi")], [("user", "Hi")], id="a question"),
        pytest.param([user("Look:", "here")], [("user", "Look:\nhere")], id="texts of one message"),
        pytest.param(
            [{"role": "user", "parts": [text("a"), {"type": "file", "url": "data:image/png;base64,AA=="}]}, user("b")],
            [("user", "a\n[image left out]"), ("user", "b")],
            id="an image, for a model without images",
        ),
        pytest.param(
            [{"role": "user", "parts": [text("a"), {"type": "file", "url": "data:text/plain;base64,AA=="}]}, user("b")],
            [("user", "a\n[file left out: it is no image]"), ("user", "b")],
            id="a file of an earlier message",
        ),
        pytest.param(
            [user("a"), said(text("b")), user("c")], [("user", "a"), ("assistant", "b"), ("user", "c")], id="an answer"
        ),
        pytest.param(
            [user("a"), said(text("I"), ended(input={"at": 1}, output={"x": 2}), {"type": "step-start"}, text("b"))],
            [("user", "a"), ("assistant", "I", '{"at":1}'), ("tool", '{"x":2}'), ("assistant", "b")],
            id="a call and its result",
        ),
        pytest.param(
            [user("a"), said(ended(output="2"), text("b"))],
            [("user", "a"), ("assistant", "", "{}"), ("tool", "2"), ("assistant", "b")],
            id="text behind a call in one step",
        ),
        pytest.param(
            [user("a"), said({**ended(output=[1]), "type": "tool-look", "toolName": None})],
            [("user", "a"), ("assistant", "", "{}"), ("tool", "[1]")],
            id="a tool that the page knows",
        ),
        pytest.param(
            [user("a"), said(ended("output-error", errorText="away"))],
            [("user", "a"), ("assistant", "", "{}"), ("tool", '{"error":{"message":"away"}}')],
            id="a call that failed",
        ),
        pytest.param(
            [user("a"), said(ended("output-denied", approval={"id": "x", "approved": False, "reason": "no"}))],
            [("user", "a"), ("assistant", "", "{}"), ("tool", '{"error":{"message":"no"}}')],
            id="a call that was rejected",
        ),
        pytest.param(
            [
                user("a"),
                said(
                    {"type": "reasoning", "text": "hm"},
                    {"type": "data-todo", "data": {}},
                    {"type": "source-url", "sourceId": "1", "url": "https://example.org"},
                    ended("approval-requested", approval={"id": "x"}),
                    ended("input-available"),
                    ended(toolName="no such name", output=1),
                    text("b"),
                ),
                user("c"),
            ],
            [("user", "a"), ("assistant", "b"), ("user", "c")],
            id="what only pages show",
        ),
        pytest.param([user("a"), user(" "), said(), user("c")], [("user", "a"), ("user", "c")], id="empty messages"),
    ],
)
async def test_each_message_is_converted_for_the_provider(messages: list[Any], expected: list[Any]) -> None:
    async with played([says("ok")]) as (client, player):
        parts_of(await sent(client, *messages))
    assert given(player) == expected


async def test_instructions_of_the_page_are_appended_to_those_of_the_service() -> None:
    system = {"id": "s", "role": "system", "parts": [text("Be brief.")]}
    async with played([says("ok")], SYSTEM_PROMPT="Be kind.") as (client, player):
        parts_of(await sent(client, system, user("Hi")))
    assert player.requests[0].body["messages"][0] == {"role": "system", "content": "Be kind.\n\nBe brief."}


async def test_in_a_session_only_the_last_question_is_read() -> None:
    named = {"X-Session-ID": "s-1"}
    async with played([says("one"), says("two")]) as (client, player):
        first = await sent(client, user("first"), headers=named)
        await sent(client, user("of another page"), said(text("?")), user("second"), headers=named)
        kept = (await client.get("/chat/s-1")).json()
    assert first.headers["x-session-id"] == "s-1"
    assert given(player) == [("user", "first"), ("assistant", "one"), ("user", "second")]
    assert kept["turns"] == 2


async def test_the_tools_of_every_conversation_are_offered() -> None:
    async with played([says("ok")]) as (client, player):
        await sent(client, user("Hi"))
    offered = {each["function"]["name"] for each in player.requests[0].body["tools"]}
    assert offered == {"getCityTimeFunction"}


async def test_unknown_triggers_and_fields_are_ignored(offline: httpx.AsyncClient) -> None:
    answer = await sent(offline, user("Hi"), trigger="regenerate-message", messageId="gone", theme="dark")
    assert parts_of(answer)[-1]["type"] == "finish"
