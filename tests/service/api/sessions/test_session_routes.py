"""The routes of a session: what they take, what they refuse, and in which form they answer."""

import asyncio

import pytest

from tests.chat.played import asks, says, turns, update
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest
from tests.service.api.sessions.conversing import EVENTS, GatedPlayer, ask, conversation, sociable
from tests.serving import service
from tests.waiting import until


def offered(request: PlayedRequest) -> list[str]:
    return [each["function"]["name"] for each in request.body.get("tools", ())]


ASKED: list[tuple[dict[str, str], str]] = [
    ({"userInput": "hello"}, "hello"),
    ({"query": "hello"}, "hello"),
    ({"userInput": "hello", "query": "hello"}, "hello"),
    ({"userInput": "", "query": "hello"}, "hello"),
    ({"userInput": " 长 "}, " 长 "),
    ({"query": "x" * 4000}, "x" * 4000),
]


@pytest.mark.parametrize("path", ["/chat", "/chat/stream"])
async def test_a_question_can_have_either_parameter_name(path: str) -> None:
    # `userInput` as the original has it, or `query` as everywhere else here.
    async with OpenAIPlayer(sociable) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        for parameters, question in ASKED:
            assert (await client.get(path, params=parameters)).status_code == 200, parameters
            assert player.requests[-1].body["messages"][-1]["content"] == question
    assert len(player.requests) == len(ASKED)


CHOSEN: list[tuple[dict[str, str | list[str]], list[str]]] = [
    ({"tools": ""}, []),
    ({"tools": " , "}, []),
    ({"tools": "getCityTimeFunction"}, ["getCityTimeFunction"]),
    ({"tools": "getCityTimeMethod"}, ["getCityTimeMethod"]),
    ({"tools": "todoRead, getCityTimeFunction,todoRead"}, ["todoRead", "getCityTimeFunction"]),
    ({"tools": ["todoRead", "todoUpdate"]}, ["todoRead", "todoUpdate"]),
]


async def test_the_tools_of_a_question_can_be_chosen() -> None:
    # All unless some or none are chosen; the choice holds for one question.
    async with OpenAIPlayer(sociable) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        for parameters, expected in CHOSEN:
            assert (await client.get("/chat", params={"userInput": "hello", **parameters})).status_code == 200
            assert offered(player.requests[-1]) == expected
        await ask(client, "hello")
    assert offered(player.requests[-1]) == ["getCityTimeFunction"]  # the todo tools are those of /todo/chat


STREAM_ACCEPTED = ["*/*", "text/event-stream", "text/*", "", "text/html;q=0.9, */*;q=0.1"]
STREAM_REFUSED = ["application/json", "text/plain", "text/event-stream;q=0"]


async def test_the_streaming_route_answers_in_no_other_form() -> None:
    # Where `Accept` rules the form out, nobody is asked.
    async with OpenAIPlayer(sociable) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        for accept in STREAM_ACCEPTED:
            answer = await client.get("/chat/stream", params={"userInput": "hello"}, headers={"Accept": accept})
            assert answer.status_code == 200, accept
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        for accept in STREAM_REFUSED:
            answer = await client.get("/chat/stream", params={"userInput": "hello"}, headers={"Accept": accept})
            assert (answer.status_code, answer.json()["code"]) == (406, "not-acceptable"), accept
            assert answer.json()["detail"] == "the only form here is text/event-stream"
    assert len(player.requests) == len(STREAM_ACCEPTED)


STREAMS = ["/chat", "/chat/stream", "/todo/chat", "/time/chat", "/time/chat-tool-function", "/time/chat-tool-method"]


async def test_a_browser_that_reconnects_gets_204_without_a_model_call() -> None:
    # The first event has an id, which the browser sends back; 204 is what ends its attempts.
    async with OpenAIPlayer(sociable) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        for number, path in enumerate(STREAMS, start=1):
            parameters = {"query": "hello"} | ({} if path.startswith("/time") else {"sessionId": "s-1"})
            first = await client.get(path, params=parameters, headers=EVENTS)
            assert first.text.startswith(f"id: {first.headers['x-request-id']}\nevent: ")
            assert first.text.count("\nid: ") == 0
            again = await client.get(path, params=parameters, headers=EVENTS | {"Last-Event-ID": "1"})
            assert (again.status_code, again.content, len(player.requests)) == (204, b"", number), path


def planning(request: PlayedRequest) -> Answer:
    """A model that makes a plan of one step."""
    last = request.body["messages"][-1]
    return turns(asks(update(("look", "pending"))) if last["role"] == "user" else says("planned"))(request)


async def test_forgetting_a_conversation_forgets_its_todo_list_and_may_be_repeated() -> None:
    # What comes after it begins anew, under the same id; other sessions keep theirs.
    async with OpenAIPlayer(planning) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        for session in ("s-1", "s-2"):
            await client.get("/todo/chat", params={"query": "plan", "sessionId": session})
            assert (await client.get(f"/todo/{session}")).json()["total"] == 1
        for _ in range(2):
            forgotten = await client.delete("/chat/s-1")
            assert (forgotten.status_code, forgotten.content) == (204, b"")
        assert (await client.get("/chat/s-1")).json()["code"] == "not-found"
        assert (await client.get("/todo/s-1")).json()["total"] == 0
        assert (await client.get("/todo/s-2")).json()["total"] == 1
        await ask(client, "again")
        assert [each["role"] for each in player.requests[-2].body["messages"]] == ["system", "user"]
        assert [text for _, text in await conversation(client)] == ["again", "planned"]


async def test_forgetting_waits_for_the_running_turn_and_forgets_it_too() -> None:
    # Otherwise the turn would bring the conversation back.
    async with GatedPlayer(sociable) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        player.gate.clear()
        running = asyncio.create_task(ask(client, "hello"))
        await until(player.asked.is_set)
        forgetting = asyncio.create_task(client.delete("/chat/s-1"))
        done, _ = await asyncio.wait([forgetting], timeout=0.3)
        assert done == set()
        player.gate.set()
        assert [(await running).status_code, (await forgetting).status_code] == [200, 204]
        assert await conversation(client) == []
