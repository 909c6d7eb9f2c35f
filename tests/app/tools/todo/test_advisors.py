"""The reminder to update the todo list, and a model that plans: what the model receives, and what a client sees."""

from collections.abc import Sequence
from itertools import count

from app.tools.todo.advisors import REMINDER, TodoEvents, TodoReminder
from app.tools.todo.lists import TodoLists
from app.tools.todo.tools import TodoUpdate
from tests.app.tools.todo.caller import Caller
from tests.chat.played import EVENTS, JSON, Turn, asked, asks, clock, results, says, turns, update
from tests.chat.scripted import calls, client_of, says as answers
from tests.players.openai_player import OpenAIPlayer, PlayedRequest
from tests.serving import events_of, service
from toolchat.chat.request import Notice
from toolchat.models.base import ChatResponse
from toolchat.service.settings.service_settings import Settings
from toolchat.state.redis import RedisStateStore
from toolchat.state.sqlite import SqliteStateStore
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.function_callback import FunctionToolCallback

SESSION = {"sessionId": "s-1"}
DONE = says("done")


def looks(number: int, first: int = 0) -> list[Turn]:
    """Rounds in which the model does something else; no two alike."""
    return [asks(clock(f"Etc/GMT+{n}")) for n in range(first, first + number)]


def reminded(requests: Sequence[PlayedRequest]) -> list[int]:
    """Which of the model's turns, from 1, were given a reminder."""
    return [turn for turn, request in zip(count(1), requests, strict=False) if REMINDER in str(request.body)]


async def turns_of(*given: Turn, tools: str = "", **environment: str) -> list[PlayedRequest]:
    """What the model was given, turn by turn, for one question; with ``tools`` no others are offered."""
    path, offered = ("/chat", {"tools": tools}) if tools else ("/todo/chat", {})
    _, requests = await asked(*given, path=path, params={"query": "?", **SESSION, **offered}, **environment)
    return requests


async def test_the_model_is_reminded_once_after_three_rounds_and_again_only_after_three_more() -> None:
    # The count begins anew with the reminder, and no turn is given an earlier one again.
    assert reminded(await turns_of(*looks(8), DONE)) == [4, 7]


async def test_the_reminder_follows_the_last_result_and_no_result_is_added_or_moved() -> None:
    # Strict providers refuse a second result for a call: each call has one, in the order of the calls.
    batch = asks(clock("Asia/Tokyo"), ("todoRead", {}), clock("Europe/Paris"))
    requests = await turns_of(*looks(2), batch, DONE)
    given = [each for each in requests[3].body["messages"] if each["role"] == "tool"][2:]
    assert [each["tool_call_id"] for each in given] == ["c0", "c1", "c2"]
    tokyo, listed, paris = results(requests[3])
    assert "Asia/Tokyo" in tokyo
    assert listed == "No todos."
    assert paris.startswith("The current time zone")
    assert paris.endswith(f")\n\n{REMINDER}")
    assert REMINDER not in tokyo


async def test_the_reminder_is_gone_from_the_next_turn_and_from_the_memory() -> None:
    given = turns(*looks(4), DONE, says("again"))
    async with (
        OpenAIPlayer(given) as player,
        service(OPENAI_BASE_URL=player.base_url, MEMORY_TOOL_ROUNDS="true") as client,
    ):
        answer = await client.get("/todo/chat", params=SESSION, headers=JSON)
        await client.get("/chat", params={"query": "?", **SESSION})
        conversation = await client.get("/chat/s-1")
    assert reminded(player.requests) == [4]
    assert len(results(player.requests[4])) == 1
    assert "Etc/GMT+2" in conversation.text
    assert REMINDER not in conversation.text + answer.text


async def test_an_update_in_any_place_of_a_message_begins_the_count_anew() -> None:
    # All calls of a message are looked at, not only its first.
    second_place = asks(clock("Asia/Tokyo"), update(("a", "pending")))
    assert reminded(await turns_of(*looks(2), second_place, *looks(2, 2), DONE)) == []
    assert reminded(await turns_of(*looks(2), second_place, *looks(3, 2), DONE)) == [7]


async def test_an_update_that_clears_the_list_counts_and_one_that_failed_does_not() -> None:
    cleared, failed = asks(("todoUpdate", {"items": []})), asks(("todoUpdate", {"items": [{"text": ""}]}))
    assert reminded(await turns_of(*looks(2), cleared, *looks(2, 2), DONE)) == []
    assert reminded(await turns_of(*looks(2), failed, *looks(1, 2), DONE)) == [4]


async def test_rounds_are_counted_across_the_questions_of_a_session_and_not_of_another() -> None:
    # Two sessions of one service each come to three rounds on their own; turns without calls do not count.
    given = turns(*looks(2), DONE, *looks(2), DONE, says("no tool"), *looks(1), DONE, *looks(1), DONE)
    async with OpenAIPlayer(given) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        for session in ("s-1", "s-2", "s-1", "s-1", "s-2"):
            answer = await client.get("/todo/chat", params={"sessionId": session})
            assert answer.status_code == 200
    # s-1: 1-3, s-2: 4-6, s-1: 7 without calls and 8-9, s-2: 10-11
    assert reminded(player.requests) == [9, 11]


async def test_only_a_conversation_that_is_offered_the_list_is_reminded_of_it() -> None:
    # Neither one that is offered other tools, nor one without a list, nor a last turn without tools.
    assert reminded(await turns_of(*looks(5), DONE, tools="getCityTimeFunction")) == []
    assert reminded(await turns_of(*looks(5), DONE, tools="getCityTimeFunction,todoUpdate")) == []
    assert reminded(await turns_of(*looks(3), DONE, TOOL_MAX_ROUNDS="3")) == []


async def test_without_the_store_there_is_no_reminder_no_event_and_no_error() -> None:
    # The tool itself says that the list cannot be reached; the question is answered all the same.
    store = RedisStateStore("redis://127.0.0.1:1/0")
    lists = TodoLists(store, Settings())
    turn = calls(("todoUpdate", '{"items":[{"text":"a"}]}'), ("add", '{"a":1,"b":2}'))
    client, model = client_of(
        turn, turn, turn, answers("done"), advisors=[TodoEvents(lists), TodoReminder(lists)], max_rounds=5
    )
    try:
        asking = client.prompt("?").tools("add", FunctionToolCallback.from_function(TodoUpdate(lists)))
        events = [event async for event in asking.tool_context({CONVERSATION_ID: "s"}).stream().events()]
    finally:
        await store.aclose()
    answer = events[-1]
    assert isinstance(answer, ChatResponse)
    assert [each.error_kind for each in answer.executions] == ["store-unavailable", None] * 3
    assert "the todo list cannot be reached just now" in answer.executions[0].result
    assert not [event for event in events if isinstance(event, Notice)]
    assert REMINDER not in str(model.prompts)


async def test_an_update_is_stored_even_if_its_event_cannot_be_sent() -> None:
    # The store goes away between the call and the news of it: the client gets everything else.
    kept, gone = SqliteStateStore(), RedisStateStore("redis://127.0.0.1:1/0")
    client, _ = client_of(
        calls(("todoUpdate", '{"items":[{"text":"a"}]}')),
        answers("done"),
        advisors=[TodoEvents(TodoLists(gone, Settings()))],
    )
    try:
        asking = client.prompt("?").tools(FunctionToolCallback.from_function(TodoUpdate(TodoLists(kept, Settings()))))
        events = [event async for event in asking.tool_context({CONVERSATION_ID: "s"}).stream().events()]
    finally:
        await gone.aclose()
    answer = events[-1]
    assert isinstance(answer, ChatResponse)
    assert [each.outcome for each in answer.executions] == ["ok"]
    assert not [event for event in events if isinstance(event, Notice)]


async def test_the_model_receives_planning_instructions_and_every_function_tool() -> None:
    _, (request,) = await asked(says("done"))
    names = {each["function"]["name"] for each in request.body["tools"]}
    system, question = request.body["messages"]
    assert {"todoUpdate", "todoRead", "getCityTimeFunction"} <= names
    assert system["content"].startswith(Settings().system_prompt)
    assert "todoUpdate" in system["content"]
    assert question == {"role": "user", "content": "帮我计划：查北京时间，再查东京时间"}


async def test_several_updates_in_one_message_are_all_refused() -> None:
    # They run side by side, so none may win by chance; the list before stays, and other calls run.
    one, other = update(("one", "pending")), update(("other", "pending"))
    answer, _ = await asked(
        asks(update(("first", "pending"))),
        asks(one, clock("Asia/Tokyo"), other),
        asks(("todoRead", "{}")),
        says("done"),
    )
    records = answer["tool_calls"]
    assert [each.get("error_kind") for each in records] == [None, "several-updates", None, "several-updates", None]
    assert records[-1]["result"] == "[ ] #1: first\n(0/1 completed)"


async def test_a_stream_sends_the_list_after_every_successful_update_only() -> None:
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


async def test_without_a_key_the_steps_of_the_demonstration_are_done_at_once() -> None:
    # The offline model does not plan: it makes both calls, and leaves the list alone.
    async with service() as client:
        events = events_of((await client.get("/todo/chat", params={"sessionId": "s-1"}, headers=EVENTS)).text)
        document = await Caller(client).shown()
    assert document["total"] == 0
    assert [each.data["name"] for each in events if each.name == "tool_call_finished"].count("getCityTimeFunction") == 2
    assert all(city in events[-1].data["answer"] for city in ("北京", "东京"))
