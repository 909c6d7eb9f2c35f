"""Whose a todo list is, how long it is kept, and what becomes of it without its store."""

import httpx
import pytest

from app.composition.configuration import read_configuration
from app.composition.lifespan import open_service
from app.settings.service_settings import Settings
from app.tools.todo.advisors import REMINDER
from app.tools.todo.lists import TodoLists
from tests.chat.played import asks, clock, says, turns, update
from tests.players.openai_player import OpenAIPlayer
from tests.players.redis_server import REDIS_SERVER, RedisServer
from tests.serving import service
from tests.tools.todo.caller import Caller
from toolchat.state.memory import InMemoryStateStore
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import CONVERSATION_ID, ToolContext
from toolchat.tool_calling.errors import ToolExecutionError


async def test_each_session_has_a_list_of_its_own(dutiful_service: httpx.AsyncClient) -> None:
    # Lists are kept by conversation, so that one caller's plan is never another's.
    one, two, three = (Caller(dutiful_service, session) for session in ("s-1", "s-2", "s-3"))
    for caller in (one, two):
        await caller.updated(items=[{"text": f"plan of {caller.session}"}])
    assert [(await caller.shown())["text"] for caller in (one, two, three)] == [
        "[ ] #1: plan of s-1\n(0/1 completed)",
        "[ ] #1: plan of s-2\n(0/1 completed)",
        "No todos.",
    ]


async def test_a_call_outside_any_conversation_is_refused() -> None:
    # It has nowhere to keep a list, and says so instead of sharing one.
    async with open_service(read_configuration()) as (state, _):
        for name, arguments in (("todoUpdate", '{"items":[{"text":"a"}]}'), ("todoRead", "")):
            tool = await state.container.get(ToolCallback, component=name)
            with pytest.raises(ToolExecutionError) as caught:
                await tool.call(arguments, ToolContext())
            assert caught.value.kind == "no-conversation"


async def test_a_list_lives_as_long_as_a_session() -> None:
    # The second list is kept for an hour, the first one was for no time at all.
    store = InMemoryStateStore()
    brief, long = (TodoLists(store, Settings(session_ttl=ttl)) for ttl in (1e-6, 3600))
    async with open_service(read_configuration()) as (state, _):
        tool = await state.container.get(ToolCallback, component="todoUpdate")
        await tool.call('{"items":[{"text":"a"}]}', ToolContext({CONVERSATION_ID: "s"}))
        items = await (await state.container.get(TodoLists)).get("s")
    await brief.put("s", items)
    assert await long.get("s") == ()
    await long.put("s", items)
    assert await long.get("s") == items


async def test_an_unreadable_list_counts_as_empty() -> None:
    store = InMemoryStateStore()
    lists = TodoLists(store, Settings())
    for value in (b"{", b'[{"id":1}]', b"\xff", b'{"a":1}'):
        await store.put("todo:s", value, ttl=60)
        await store.put("todo-rounds:s", value, ttl=60)
        assert (await lists.get("s"), await lists.rounds("s")) == ((), 0)


async def test_without_the_store_the_list_is_503_and_not_empty() -> None:
    async with service(REDIS_URL="redis://127.0.0.1:1/0") as client:
        answer = await client.get("/todo/s-1")
        asked = await client.get("/todo/chat")
    for each in (answer, asked):
        assert (each.status_code, each.json()["code"], each.json()["retryable"]) == (503, "store-unavailable", True)
        assert int(each.headers["retry-after"]) >= 1


@pytest.mark.skipif(REDIS_SERVER is None, reason="redis-server is not installed")
async def test_replicas_share_the_lists_and_the_rounds_since_the_last_update() -> None:
    # The list is written by one service and read from another; the reminder comes after rounds on both.
    rounds = [asks(clock(f"Etc/GMT+{n}")) for n in range(3)]
    given = turns(asks(update(("a", "pending"))), *rounds[:2], says("done"), rounds[2], says("done"))
    async with OpenAIPlayer(given) as player, RedisServer() as redis:
        shared = {"OPENAI_BASE_URL": player.base_url, "REDIS_URL": redis.url}
        async with service(**shared) as one, service(**shared) as other:
            for client in (one, other):
                answer = await client.get("/todo/chat", params={"sessionId": "s-1"})
                assert answer.status_code == 200
                assert (await Caller(client).shown())["text"] == "[ ] #1: a\n(0/1 completed)"
    assert [REMINDER in str(each.body) for each in player.requests] == [False] * 5 + [True]
