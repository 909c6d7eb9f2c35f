"""What is kept of a turn beside its messages: calls, tokens and times, for whoever looks at the conversation again."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.chat.scripted import client_of, says
from tests.players.openai_player import OpenAIPlayer
from tests.players.redis_server import RedisServer
from tests.service.api.sessions.conversing import JSON, ask, conversation, faults, sociable
from tests.service.api.sessions.deciding import approve, lit, waiting
from tests.serving import service
from toolchat.chat.advisors.memory import MemoryAdvisor
from toolchat.chat.memory import ChatMemory
from toolchat.chat.session_records import parse_turn_summary
from toolchat.messages import AssistantMessage, ToolCall
from toolchat.service.api.schemas import Conversation
from toolchat.state.locks import Locks
from toolchat.state.sqlite import SqliteStateStore
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.function_callback import FunctionToolCallback

QUESTION = "Compare Europe/Paris and Asia/Tokyo."
TRACE = {"tool_calls", "usage", "duration_ms", "model", "sandbox"}


async def messages(client: httpx.AsyncClient, session: str = "s-1") -> list[dict[str, Any]]:
    """What a conversation's page is given, held against its schema."""
    answer = await client.get(f"/chat/{session}")
    Conversation.model_validate(answer.json())
    listed: list[dict[str, Any]] = answer.json()["messages"]
    return listed


@asynccontextmanager
async def talking(store: str, **variables: str) -> AsyncGenerator[tuple[httpx.AsyncClient, OpenAIPlayer], None]:
    async with AsyncExitStack() as stack:
        if store == "redis":
            redis = await stack.enter_async_context(RedisServer())
            variables["REDIS_URL"] = redis.url
        player = await stack.enter_async_context(OpenAIPlayer(sociable))
        yield await stack.enter_async_context(service(OPENAI_BASE_URL=player.base_url, **variables)), player


@pytest.mark.parametrize("store", ["memory", "redis"])
@pytest.mark.parametrize("rounds", ["false", "true"])
async def test_a_turn_is_shown_with_the_calls_tokens_and_model_of_its_answer(store: str, rounds: str) -> None:
    # The second turn leaves the first one's trace as it was, and the model is given neither.
    async with talking(store, MEMORY_TOOL_ROUNDS=rounds) as (client, player):
        answer = (await ask(client, QUESTION, **JSON)).json()
        await ask(client, "thanks")
        listed = await messages(client)
        sent = player.requests[-1].body["messages"]
    ended = [each for each in listed if "usage" in each]
    assert [each["text"] for each in ended] == [
        each["text"] for each in listed if each.get("text", "").startswith("I heard")
    ]
    assert {name: ended[0][name] for name in ("tool_calls", "usage", "model")} == {
        name: answer[name] for name in ("tool_calls", "usage", "model")
    }
    assert [call["arguments"]["timeZoneId"] for call in ended[0]["tool_calls"]] == ["Europe/Paris", "Asia/Tokyo"]
    assert 0 < ended[0]["duration_ms"] <= answer["duration_ms"]
    assert "tool_calls" not in ended[1]
    assert faults(sent) == []
    assert not [each for each in sent if TRACE - {"tool_calls"} & set(each)]
    assert sum("tool_calls" in each for each in sent) == (2 if rounds == "true" else 0)


async def test_a_turn_that_paused_twice_is_stored_with_all_calls_and_tokens() -> None:
    async with lit() as (client, _):
        place, call = await waiting(client, "/chat", userInput="please, please", sessionId="s-1")
        assert await conversation(client) == []
        again = (await approve(client, place, call)).json()
        assert again["finish_reason"] == "approval_required"
        last = (await approve(client, f"/approvals/{again['approval']['id']}", call)).json()
        *_, ended = await messages(client)
    calls = [(each["name"], each["result"], each["round"]) for each in ended["tool_calls"]]
    assert calls == [("switchLight", "on in the hall", 1), ("switchLight", "on in the hall", 2)]
    assert ended["text"] == last["answer"]
    assert ended["usage"]["total_tokens"] == 50 + last["usage"]["total_tokens"]


DEEP = "[" * 190 + "]" * 190


async def test_a_turn_summary_is_bounded_and_readable_for_any_calls() -> None:
    # Forty results of 30,000 characters, arguments as deep as JSON may be, and half a character in a name.
    def tell(about: Any) -> str:
        return "长" * 30_000

    calls = tuple(ToolCall(f"c{n}" * 300, "tell", f'{{"about": [{n}, {DEEP}, "{"x" * 5000}"]}}') for n in range(40))
    asking = AssistantMessage("", calls)
    memory = ChatMemory(store := SqliteStateStore(), Locks(store))
    tool = FunctionToolCallback.from_function(tell, name="tell", description="Tells.")
    client, _ = client_of(asking, says("told"), advisors=(MemoryAdvisor(memory),))
    await client.prompt("?").tools(tool).tool_context({CONVERSATION_ID: "s"}).call().content()
    (turn,) = await memory.turns("s")
    shown = parse_turn_summary(turn.summary)["tool_calls"]
    assert len(shown) == 40
    assert all("left out" in each["result"] for each in shown)
    assert len(turn.summary) < 60_000
