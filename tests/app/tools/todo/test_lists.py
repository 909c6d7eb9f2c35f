"""What a todo list takes, whose it is, and how it is shown."""

from typing import Any

import httpx
import pytest
from pydantic_core import from_json

from app.tools.todo.lists import TodoLists
from tests.app.tools.todo.caller import Caller
from tests.application import read_configuration
from tests.chat.played import JSON, asks, says, turns
from tests.players.openai_player import OpenAIPlayer
from tests.serving import service
from toolchat.service.composition.lifespan import open_service
from toolchat.service.settings.service_settings import Settings
from toolchat.state.sqlite import SqliteStateStore
from toolchat.tool_calling.context import CONVERSATION_ID, ToolContext
from toolchat.tool_calling.errors import ToolExecutionError


async def test_the_model_and_the_client_are_shown_the_same_text(caller: Caller) -> None:
    record = await caller.updated(
        items=[
            {"id": "1", "text": "look", "status": "completed"},
            {"id": "2", "text": "think", "status": "in_progress"},
            {"id": "3", "text": "say", "status": "pending"},
        ]
    )
    text = "[x] #1: look\n[>] #2: think\n[ ] #3: say\n(1/3 completed)"
    assert (record["result"], record["outcome"]) == (text, "ok")
    document = await caller.shown()
    assert document["text"] == text
    assert document["items"][1] == {"id": "2", "text": "think", "status": "in_progress"}
    assert (document["completed"], document["total"]) == (1, 3)


TAKEN = [
    pytest.param([{"text": "a"}, {"text": "b"}], "[ ] #1: a\n[ ] #2: b\n(0/2 completed)", id="no id, no status"),
    pytest.param([{"id": None, "text": "a", "status": None}], "[ ] #1: a\n(0/1 completed)", id="null"),
    pytest.param([{"id": 7, "text": "a", "status": "COMPLETED"}], "[x] #7: a\n(1/1 completed)", id="number, capitals"),
    pytest.param([{"id": "x", "text": "a", "status": "In_Progress"}], "[>] #x: a\n(0/1 completed)", id="mixed case"),
    pytest.param([{"text": "a", "owner": "me"}], "[ ] #1: a\n(0/1 completed)", id="a key too many"),
    pytest.param(
        [{"text": "a\n[x] #2: b\r\n\u2028c\x85\x1b[1m\u0000\v"}],
        "[ ] #1: a [x] #2: b c [1m\n(0/1 completed)",
        id="lines",
    ),
    pytest.param(
        [{"text": "\u0000 👩\u200d💻 \u202eb \u200b"}], "[ ] #1: 👩\u200d💻 b\n(0/1 completed)", id="invisible"
    ),
    pytest.param([{"id": "1: a\n[x] #2", "text": "b"}], "[ ] #1: a [x] #2: b\n(0/1 completed)", id="lines in an id"),
]


@pytest.mark.parametrize(("items", "text"), TAKEN)
async def test_a_text_is_one_line_and_missing_fields_have_defaults(items: list[Any], text: str, caller: Caller) -> None:
    assert (await caller.updated(items=items))["result"] == text
    assert (await caller.shown())["text"] == text


REFUSED = [
    pytest.param([{"text": "a"}] * 21, "Max 20 todos allowed", id="21 items"),
    pytest.param([{"id": "a", "text": " \n ", "status": "pending"}], "Item a: text required", id="blank"),
    pytest.param([{"text": "\u200b\u0000"}], "Item 1: text required", id="invisible"),
    pytest.param([{"text": "a"}, {"status": "pending"}], "Item 2: text required", id="no text"),
    pytest.param([{"text": "a", "status": "Done"}], "Item 1: invalid status 'done'", id="status"),
    pytest.param(
        [{"text": "a", "status": "in_progress"}, {"text": "b", "status": "IN_PROGRESS"}],
        "Only one task can be in_progress at a time",
        id="two in progress",
    ),
    pytest.param([{"id": 1, "text": "a"}, {"id": "1", "text": "b"}], "Item 1: 2 items have this id", id="ids"),
    pytest.param([{"id": 2, "text": "a"}, {"text": "b"}], "Item 2: 2 items have this id", id="id and place"),
    pytest.param([{"text": "ä" * 501}], "Item 1: a text may have 500 characters, not 501", id="long text"),
    pytest.param([{"id": "i" * 65, "text": "a"}], f"Item {'i' * 64}...: an id may have 64 characters", id="long id"),
]


@pytest.mark.parametrize(("items", "message"), REFUSED)
async def test_a_list_that_breaks_a_rule_is_an_error_and_the_one_before_stays(
    items: list[Any], message: str, caller: Caller
) -> None:
    await caller.updated(items=[{"text": "kept"}])
    record = await caller.updated(items=items)
    assert (record["outcome"], record["error_kind"]) == ("error", "invalid-todos")
    assert from_json(record["result"])["error"]["message"] == message
    assert (await caller.shown())["text"] == "[ ] #1: kept\n(0/1 completed)"


@pytest.mark.parametrize("items", [[], None])
async def test_an_empty_list_clears(items: object, caller: Caller) -> None:
    await caller.updated(items=[{"text": "gone"}])
    record = await caller.updated(items=items)
    assert (record["result"], record["outcome"]) == ("No todos.", "ok")
    assert (await caller.shown())["items"] == []


async def test_a_call_that_forgets_the_list_does_not_clear_it(caller: Caller) -> None:
    await caller.updated(items=[{"text": "kept"}])
    assert (await caller.updated())["error_kind"] == "invalid-arguments"
    assert (await caller.shown())["total"] == 1


async def test_the_largest_list_is_stored_and_read_back_whole() -> None:
    items = [{"id": f"{n}", "text": f"{n:03}" + "字" * 497} for n in range(20)]
    script = turns(asks(("todoUpdate", {"items": items})), asks(("todoRead", "")), says("done"))
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = await client.get("/todo/chat", params={"sessionId": "s-1"}, headers=JSON)
        text = (await Caller(client).shown())["text"]
    assert [each["result"] for each in answer.json()["tool_calls"]] == [text, text]
    assert text.count("\n") == 20
    assert all(f"[ ] #{item['id']}: {item['text']}\n" in text for item in items)


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
    async with open_service(read_configuration()) as state:
        for name, arguments in (("todoUpdate", '{"items":[{"text":"a"}]}'), ("todoRead", "")):
            tool = state.tools.tool(name)
            with pytest.raises(ToolExecutionError) as caught:
                await tool.call(arguments, ToolContext())
            assert caught.value.kind == "no-conversation"


async def test_a_list_lives_as_long_as_a_session() -> None:
    # The second list is kept for an hour, the first one was for no time at all.
    store = SqliteStateStore()
    brief, long = (TodoLists(store, Settings(session_ttl=ttl)) for ttl in (1e-6, 3600))
    async with open_service(read_configuration()) as state:
        tool = state.tools.tool("todoUpdate")
        await tool.call('{"items":[{"text":"a"}]}', ToolContext({CONVERSATION_ID: "s"}))
        items = await (await state.containers["todo"].get(TodoLists)).get("s")
    await brief.put("s", items)
    assert await long.get("s") == ()
    await long.put("s", items)
    assert await long.get("s") == items


async def test_an_unreadable_list_counts_as_empty() -> None:
    store = SqliteStateStore()
    lists = TodoLists(store, Settings())
    for value in (b"{", b'[{"id":1}]', b"\xff", b'{"a":1}'):
        await store.put("todo:s", value, ttl=60)
        await store.put("todo-rounds:s", value, ttl=60)
        assert (await lists.get("s"), await lists.rounds("s")) == ((), 0)
