"""A model that plans: what it is told, how its calls are run, and what a client sees meanwhile."""

from tests.app.tools.todo.caller import Caller
from tests.chat.played import EVENTS, asked, asks, clock, says, turns, update
from tests.players.openai_player import OpenAIPlayer
from tests.serving import events_of, service
from toolchat.service.settings.service_settings import Settings


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


async def test_every_call_of_a_message_keeps_its_own_id_and_result() -> None:
    # Results are paired with calls by id, not with the last call of the history.
    answer, requests = await asked(
        asks(clock("Asia/Tokyo"), update(("a", "pending")), ("nonsense", {}), ("todoRead", {})), says("done")
    )
    records = answer["tool_calls"]
    given = [each for each in requests[1].body["messages"] if each["role"] == "tool"]
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
