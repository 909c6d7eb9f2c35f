"""The todo list: what it takes, how it is shown, whose it is, and what a client sees of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from pydantic_core import from_json, to_json

from app.main import open_service, read_configuration
from app.settings import Settings
from app.state_store.memory import InMemoryStateStore
from app.tool_calling.callback import ToolCallback
from app.tool_calling.context import CONVERSATION_ID, ToolContext
from app.tool_calling.errors import ToolExecutionError
from app.tools.todo.advisors import REMINDER
from app.tools.todo.lists import TodoLists
from tests.chat.played import asks, clock, says, turns, update
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, delta, sse
from tests.players.redis_server import REDIS_SERVER, RedisServer
from tests.serving import events_of, service

JSON = {"Accept": "application/json"}
EVENTS = {"Accept": "text/event-stream"}


def dutiful(request: PlayedRequest) -> Answer:
    """A model that hands the question to todoUpdate as its arguments and answers with the result."""
    last = request.body["messages"][-1]
    turn = asks(("todoUpdate", last["content"])) if last["role"] == "user" else says(last["content"])
    return turns(turn)(request)


@asynccontextmanager
async def dutiful_service() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with OpenAIPlayer(dutiful) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        yield client


async def updated(client: httpx.AsyncClient, items: object, session: str = "s-1") -> dict[str, Any]:
    """The record of a todoUpdate with these items."""
    query = to_json({"items": items}).decode()
    answer = await client.get("/todo/chat", params={"query": query, "sessionId": session}, headers=JSON)
    assert answer.status_code == 200, answer.text
    record: dict[str, Any] = answer.json()["tool_calls"][0]
    return record


async def shown(client: httpx.AsyncClient, session: str = "s-1") -> dict[str, Any]:
    answer = await client.get(f"/todo/{session}")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    document: dict[str, Any] = answer.json()
    return document


async def test_a_list_is_replaced_whole_and_shown_to_the_model_and_to_the_client() -> None:
    """Both get the same text; the second list leaves nothing of the first."""
    async with dutiful_service() as client:
        assert await shown(client) == {
            "session_id": "s-1",
            "items": [],
            "completed": 0,
            "total": 0,
            "text": "No todos.",
        }
        await updated(client, [{"id": "a", "text": "gone", "status": "pending"}] * 1)
        record = await updated(
            client,
            [
                {"id": "1", "text": "look", "status": "completed"},
                {"id": "2", "text": "think", "status": "in_progress"},
                {"id": "3", "text": "say", "status": "pending"},
            ],
        )
        text = "[x] #1: look\n[>] #2: think\n[ ] #3: say\n(1/3 completed)"
        assert (record["result"], record["outcome"]) == (text, "ok")
        document = await shown(client)
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
async def test_a_text_is_one_line_and_what_is_missing_has_a_default(items: list[Any], text: str) -> None:
    async with dutiful_service() as client:
        assert (await updated(client, items))["result"] == text
        assert (await shown(client))["text"] == text


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
async def test_a_list_that_breaks_a_rule_is_an_error_and_the_one_before_stays(items: list[Any], message: str) -> None:
    async with dutiful_service() as client:
        await updated(client, [{"text": "kept"}])
        record = await updated(client, items)
        assert (record["outcome"], record["error_kind"]) == ("error", "invalid-todos")
        assert from_json(record["result"])["error"]["message"] == message
        assert (await shown(client))["text"] == "[ ] #1: kept\n(0/1 completed)"


@pytest.mark.parametrize("items", [[], None])
async def test_an_empty_list_clears(items: object) -> None:
    async with dutiful_service() as client:
        await updated(client, [{"text": "gone"}])
        record = await updated(client, items)
        assert (record["result"], record["outcome"]) == ("No todos.", "ok")
        assert (await shown(client))["items"] == []


async def test_a_call_that_forgets_the_list_does_not_clear_it() -> None:
    async with dutiful_service() as client:
        await updated(client, [{"text": "kept"}])
        answer = await client.get("/todo/chat", params={"query": "{}", "sessionId": "s-1"}, headers=JSON)
        assert answer.json()["tool_calls"][0]["error_kind"] == "invalid-arguments"
        assert (await shown(client))["total"] == 1


async def test_the_largest_list_is_kept_and_read_back_whole() -> None:
    items = [{"id": f"{n}", "text": f"{n:03}" + "字" * 497} for n in range(20)]
    script = turns(asks(("todoUpdate", {"items": items})), asks(("todoRead", "")), says("done"))
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = await client.get("/todo/chat", params={"sessionId": "s-1"}, headers=JSON)
        text = (await shown(client))["text"]
    assert [each["result"] for each in answer.json()["tool_calls"]] == [text, text]
    assert text.count("\n") == 20
    assert all(f"[ ] #{item['id']}: {item['text']}\n" in text for item in items)


async def test_each_session_has_a_list_of_its_own() -> None:
    """Lists are kept by conversation, so that one caller's plan is never another's."""
    async with dutiful_service() as client:
        for session in ("s-1", "s-2"):
            await updated(client, [{"text": f"plan of {session}"}], session)
        assert [(await shown(client, each))["text"] for each in ("s-1", "s-2", "s-3")] == [
            "[ ] #1: plan of s-1\n(0/1 completed)",
            "[ ] #1: plan of s-2\n(0/1 completed)",
            "No todos.",
        ]


async def test_a_session_that_is_deleted_takes_its_list_along() -> None:
    async with dutiful_service() as client:
        await updated(client, [{"text": "secret"}])
        assert (await client.delete("/chat/s-1")).status_code == 204
        assert (await shown(client))["items"] == []


async def test_several_updates_in_one_message_are_all_refused() -> None:
    """They run side by side, so none may win by chance; the list before stays, and other calls run."""
    one, other = update(("one", "pending")), update(("other", "pending"))
    script = turns(
        asks(update(("first", "pending"))),
        asks(one, clock("Asia/Tokyo"), other),
        asks(("todoRead", "{}")),
        says("done"),
    )
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = await client.get("/todo/chat", headers=JSON)
    records = answer.json()["tool_calls"]
    assert [each.get("error_kind") for each in records] == [None, "several-updates", None, "several-updates", None]
    assert records[-1]["result"] == "[ ] #1: first\n(0/1 completed)"


async def test_every_call_of_a_message_keeps_its_own_id_and_result() -> None:
    """Results are paired with calls by id, not with the last call of the history."""
    script = turns(
        asks(clock("Asia/Tokyo"), update(("a", "pending")), ("nonsense", {}), ("todoRead", {})), says("done")
    )
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        records = (await client.get("/todo/chat", headers=JSON)).json()["tool_calls"]
        given = [each for each in player.requests[1].body["messages"] if each["role"] == "tool"]
    assert [(each["id"], each["name"]) for each in records] == [
        ("c0", "getCityTimeFunction"),
        ("c1", "todoUpdate"),
        ("c2", "nonsense"),
        ("c3", "todoRead"),
    ]
    assert [(each["tool_call_id"], each["content"]) for each in given] == [
        (each["id"], each["result"]) for each in records
    ]
    assert "Asia/Tokyo" in records[0]["result"]
    assert records[1]["result"] == "[ ] #1: a\n(0/1 completed)"
    assert records[2]["error_kind"] == "unknown-tool"


async def test_a_stream_tells_the_list_behind_every_successful_update_and_nowhere_else() -> None:
    script = turns(
        asks(update(("a", "in_progress"), ("b", "pending")), clock("Asia/Tokyo")),
        asks(("todoUpdate", {"items": [{"text": ""}]})),
        asks(update(("a", "completed"), ("b", "pending"))),
        says("done"),
    )
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        events = events_of((await client.get("/todo/chat", headers=EVENTS)).text)
    told = [place for place, event in enumerate(events) if event.name == "todo"]
    updates = [
        place
        for place, event in enumerate(events)
        if event.name == "tool_call_finished" and event.data["name"] == "todoUpdate" and event.data["outcome"] == "ok"
    ]
    assert told == [place + 1 for place in updates]
    a, b = ({"id": "1", "text": "a"}, {"id": "2", "text": "b", "status": "pending"})
    assert [events[place].data for place in told] == [
        {"items": [a | {"status": "in_progress"}, b], "completed": 0, "total": 2},
        {"items": [a | {"status": "completed"}, b], "completed": 1, "total": 2},
    ]
    assert [event.name for event in events].count("done") == 1


async def test_what_stands_around_the_loop_acts_once_for_a_question_of_many_rounds() -> None:
    """A question of four rounds ends once: one turn is remembered, and usage is told once."""
    rounds = [asks(clock(f"Etc/GMT+{n}")) for n in range(3)]
    async with (
        OpenAIPlayer(turns(*rounds, says("done"))) as player,
        service(OPENAI_BASE_URL=player.base_url) as client,
    ):
        events = events_of((await client.get("/todo/chat", params={"sessionId": "s-1"}, headers=EVENTS)).text)
        conversation = (await client.get("/chat/s-1")).json()
    assert [event.name for event in events if event.name in ("usage", "done")] == ["usage", "done"]
    assert (events[-1].data["rounds"], conversation["turns"]) == (4, 1)


async def test_text_goes_out_while_the_model_still_writes() -> None:
    """The first words are read although the model's turn never ends."""
    hanging = sse(delta(content="Let me "), delta(content="see"), done=False, ending="hang")
    async with OpenAIPlayer([hanging]) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        async with client.stream("GET", "/todo/chat", headers=EVENTS) as response:
            lines = response.aiter_lines()
            read = [await anext(lines)]
            while not read[-1].startswith("data:"):
                read.append(await anext(lines))
        assert read[-1] == 'data: {"text":"Let me "}'


async def test_the_model_is_told_to_plan_and_offered_every_function_tool() -> None:
    async with OpenAIPlayer(turns(says("done"))) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        await client.get("/todo/chat")
    body = player.requests[0].body
    names = {each["function"]["name"] for each in body["tools"]}
    system, question = body["messages"]
    assert {"todoUpdate", "todoRead", "getCityTimeFunction"} <= names
    assert system["content"].startswith(Settings().system_prompt)
    assert "todoUpdate" in system["content"]
    assert question == {"role": "user", "content": "帮我计划：1. 查北京时间 2. 查东京时间"}


async def test_the_demonstration_works_through_its_plan_without_a_key() -> None:
    """The offline model writes the steps down, does them, and ends with all of them completed."""
    async with service() as client:
        events = events_of((await client.get("/todo/chat", params={"sessionId": "s-1"}, headers=EVENTS)).text)
        document = await shown(client)
    told = [each.data["completed"] for each in events if each.name == "todo"]
    assert told == sorted(told)
    assert (told[0], told[-1], document["completed"], document["total"]) == (0, 2, 2, 2)
    assert [each.data["name"] for each in events if each.name == "tool_call_finished"].count("getCityTimeFunction") == 2
    assert all(city in events[-1].data["answer"] for city in ("北京", "东京"))


async def test_the_list_asks_for_a_conversation() -> None:
    """A question outside any session has nowhere to keep a list, and says so instead of sharing one."""
    async with open_service(read_configuration()) as (state, _):
        for name, arguments in (("todoUpdate", '{"items":[{"text":"a"}]}'), ("todoRead", "")):
            tool = await state.container.get(ToolCallback, component=name)
            with pytest.raises(ToolExecutionError) as caught:
                await tool.call(arguments, ToolContext())
            assert caught.value.kind == "no-conversation"


async def test_a_list_lives_as_long_as_a_session() -> None:
    """The second list is kept for an hour, the first one was for no time at all."""
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


async def test_what_is_kept_but_cannot_be_read_is_no_list() -> None:
    store = InMemoryStateStore()
    lists = TodoLists(store, Settings())
    for value in (b"{", b'[{"id":1}]', b"\xff", b'{"a":1}'):
        await store.put("todo:s", value, ttl=60)
        await store.put("todo-rounds:s", value, ttl=60)
        assert (await lists.get("s"), await lists.rounds("s")) == ((), 0)


async def test_a_folder_that_is_switched_off_answers_503_and_names_the_variable() -> None:
    async with service(TODO_ENABLED="false") as client:
        for path in ("/todo/chat", "/todo/s-1"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["code"]) == (503, "not-configured")
            assert "TODO_ENABLED" in answer.json()["detail"]


async def test_without_the_store_the_list_is_503_and_not_empty() -> None:
    async with service(REDIS_URL="redis://127.0.0.1:1/0") as client:
        answer = await client.get("/todo/s-1")
        asked = await client.get("/todo/chat")
    for each in (answer, asked):
        assert (each.status_code, each.json()["code"], each.json()["retryable"]) == (503, "store-unavailable", True)
        assert int(each.headers["retry-after"]) >= 1


@pytest.mark.skipif(REDIS_SERVER is None, reason="redis-server is not installed")
async def test_replicas_share_the_lists_and_the_rounds_since_the_last_update() -> None:
    """The list is written by one service and read from another; the reminder comes after rounds on both."""
    rounds = [asks(clock(f"Etc/GMT+{n}")) for n in range(3)]
    given = turns(asks(update(("a", "pending"))), *rounds[:2], says("done"), rounds[2], says("done"))
    async with OpenAIPlayer(given) as player, RedisServer() as redis:
        shared = {"OPENAI_BASE_URL": player.base_url, "REDIS_URL": redis.url}
        async with service(**shared) as one, service(**shared) as other:
            for client in (one, other):
                answer = await client.get("/todo/chat", params={"sessionId": "s-1"})
                assert answer.status_code == 200
                assert (await shown(client))["text"] == "[ ] #1: a\n(0/1 completed)"
    assert [REMINDER in str(each.body) for each in player.requests] == [False] * 5 + [True]


@pytest.mark.parametrize("session", ["-a", "a" * 65, "a b", "ä", "stream"])
async def test_a_session_id_that_is_none_is_refused(session: str) -> None:
    async with service() as client:
        shown_, asked = await client.get(f"/todo/{session}"), await client.get("/todo/chat?sessionId=" + session)
    assert [(each.status_code, each.json()["code"]) for each in (shown_, asked)] == [(422, "validation")] * 2


async def test_both_routes_are_documented_with_examples_and_problems() -> None:
    async with service() as client:
        paths = (await client.get("/openapi.json")).json()
    chat, show = (paths["paths"][path]["get"] for path in ("/todo/chat", "/todo/{sessionId}"))
    assert {"200", "403", "409", "422", "503"} <= set(chat["responses"])
    assert {"200", "422", "503"} <= set(show["responses"])
    query = next(each for each in chat["parameters"] if each["name"] == "query")
    assert len(query["examples"]) >= 2
    assert paths["components"]["schemas"]["TodoList"]["examples"][0]["total"] == 2
