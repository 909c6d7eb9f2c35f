"""Background questions over HTTP: accepted, shown, streamed, cancelled and owned."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, delta, sensible_model, sse, whole
from tests.serving import events_of, service
from tests.waiting import until

ASYNC = {"Prefer": "respond-async"}
EVENTS = {"Accept": "text/event-stream"}
SILENT = Answer(is_silent=True, ending="hang")


async def accepted(client: httpx.AsyncClient, session: str = "", key: str = "") -> str:
    """The path of a question that was accepted."""
    body = {"userInput": "What time is it?", "tools": ["getCityTimeFunction"]} | (
        {"sessionId": session} if session else {}
    )
    headers = ASYNC | ({"X-API-Key": key} if key else {})
    reply = await client.post("/chat", json=body, headers=headers)
    assert reply.status_code == 202, reply.text
    assert reply.json()["status"] == "queued"
    return reply.headers["location"]


async def finished(client: httpx.AsyncClient, path: str) -> dict[str, Any]:
    """The document of a question, once it is finished."""

    async def is_finished() -> bool:
        return (await client.get(path)).json()["status"] not in ("queued", "running")

    await until(is_finished)
    document: dict[str, Any] = (await client.get(path)).json()
    return document


async def test_an_accepted_question_is_answered_and_its_turn_stored(client: httpx.AsyncClient) -> None:
    document = await finished(client, await accepted(client, "shown"))
    assert (document["status"], document["tries"], document["session_id"]) == ("completed", 1, "shown")
    assert document["question"] == "What time is it?"
    assert document["answer"]["answer"].startswith("The tools say:")
    assert [each["outcome"] for each in document["answer"]["tool_calls"]] == ["ok"]
    conversation = (await client.get("/chat/shown")).json()
    assert conversation["turns"] == 1


async def test_its_events_can_be_read_again_and_continued_behind_any_of_them(client: httpx.AsyncClient) -> None:
    path = await accepted(client)
    whole_stream = (await client.get(path, headers=EVENTS)).text
    names = [each.name for each in events_of(whole_stream)]
    assert (names[0], names[-1]) == ("tool_call_started", "done")
    blocks = whole_stream.strip().split("\n\n")
    third = blocks[2].split("\n")[0].removeprefix("id: ")
    made_up = f"{third.split('.')[0]}.9999.0"
    assert events_of((await client.get(path, headers=EVENTS | {"Last-Event-ID": made_up})).text)[1:] == []
    for again in (path, "/chat/stream?query=again"):  # a browser reconnects to where it was connected
        rest = (await client.get(again, headers=EVENTS | {"Last-Event-ID": third})).text
        assert rest.strip().split("\n\n") == blocks[3:]
    other = await accepted(client)
    own = (await client.get(other, headers=EVENTS | {"Last-Event-ID": third})).text
    assert own.startswith(f"id: {other.removeprefix('/questions/')}.1.0\n"), "the path names the question"


@pytest.mark.parametrize("path", ["/chat/stream", "/todo/chat"])
async def test_a_stream_that_is_posted_may_be_left(client: httpx.AsyncClient, path: str) -> None:
    body = {"userInput": "What time is it?"}
    async with client.stream("POST", path, json=body, headers={"Prefer": "Respond-Async"} | EVENTS) as reply:
        first = await anext(reply.aiter_lines())
    assert first.startswith(f"id: {reply.headers['location'].removeprefix('/questions/')}.")
    assert (await finished(client, reply.headers["location"]))["status"] == "completed"


async def test_a_cancelled_question_stops_and_stores_no_turn(client: httpx.AsyncClient, player: OpenAIPlayer) -> None:
    player.follow(lambda _: SILENT)
    path = await accepted(client, "stopped")
    await asyncio.wait_for(player.asked.wait(), 60)
    answer = await client.delete(path)
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert (await client.get(path)).json() == answer.json()
    await asyncio.wait_for(player.aborted.wait(), 60)
    assert (await client.get("/chat/stopped")).status_code == 404
    assert events_of((await client.get(path, headers=EVENTS)).text)[-1].name == "cancelled"


async def test_a_finished_question_can_be_deleted(client: httpx.AsyncClient) -> None:
    path = await accepted(client)
    await finished(client, path)
    assert (await client.delete(path)).status_code == 204
    assert (await client.get(path)).status_code == 404


async def test_a_question_that_fails_has_the_problem(client: httpx.AsyncClient, player: OpenAIPlayer) -> None:
    player.follow(lambda _: whole({"error": {"message": "no", "type": "x", "code": None}}, 401))
    document = await finished(client, await accepted(client))
    assert (document["status"], document["error"]["code"]) == ("failed", "provider-auth")


async def test_a_busy_session_is_waited_for(client: httpx.AsyncClient, player: OpenAIPlayer) -> None:
    first, second = await accepted(client, "busy"), await accepted(client, "busy")
    assert {(await finished(client, path))["status"] for path in (first, second)} == {"completed"}
    assert (await client.get("/chat/busy")).json()["turns"] == 2


async def test_a_stream_says_what_its_question_waits_for(player: OpenAIPlayer) -> None:
    player.follow(lambda _: sse(delta(content="Hello"), done=False, ending="hang"))
    async with service(OPENAI_BASE_URL=player.base_url, SESSION_WAIT="0.1") as client:
        async with client.stream("POST", "/chat/stream", json={"query": "Hi", "sessionId": "busy"}):
            path = await accepted(client, "busy")
            async with client.stream("GET", path, headers=EVENTS) as reply:
                lines = [await anext(lines) for lines in [reply.aiter_lines()] for _ in range(3)]
        assert (lines[1], events_of("\n".join(lines))[0].data["code"]) == ("event: waiting", "session-busy")
        player.follow(sensible_model())
        assert (await finished(client, path))["status"] == "completed"


async def test_a_page_of_another_site_can_have_none_accepted(client: httpx.AsyncClient) -> None:
    headers = ASYNC | {"Origin": "http://evil.example"}
    assert (await client.post("/chat", json={"userInput": "hi"}, headers=headers)).status_code == 403


async def test_a_turn_can_be_replaced(client: httpx.AsyncClient) -> None:
    await finished(client, await accepted(client, "replaced"))
    body = {"userInput": "And now?", "sessionId": "replaced", "replaceTurns": 1}
    reply = await client.post("/chat", json=body, headers=ASYNC)
    await finished(client, reply.headers["location"])
    messages = (await client.get("/chat/replaced")).json()["messages"]
    assert [each["text"] for each in messages if each["role"] == "user"] == ["And now?"]


async def test_another_principal_finds_nothing(client: httpx.AsyncClient) -> None:
    path = await accepted(client, key="alice")
    for method in ("GET", "DELETE"):
        for key in ("bob", ""):
            headers = {"X-API-Key": key} if key else {}
            assert (await client.request(method, path, headers=headers)).status_code == 404
    assert (await client.get(path, headers={"X-API-Key": "alice"})).status_code == 200


async def test_the_list_of_sessions_has_their_unfinished_questions(
    client: httpx.AsyncClient, player: OpenAIPlayer
) -> None:
    # Questions of other tests may end meanwhile, so the session is not always the newest one.
    alice = {"X-API-Key": "alice"}
    await client.post("/chat", json={"userInput": "Hello", "sessionId": "listed"}, headers=alice)
    player.follow(lambda _: SILENT)
    path = await accepted(client, "listed", "alice")
    [entry] = [each for each in (await client.get("/sessions", headers=alice)).json() if each["session_id"] == "listed"]
    assert f"/questions/{entry['running']}" == path
    await client.delete(path, headers=alice)
    [entry] = [each for each in (await client.get("/sessions", headers=alice)).json() if each["session_id"] == "listed"]
    assert "running" not in entry


async def test_any_process_can_cancel_a_question(player: OpenAIPlayer, tmp_path: Path) -> None:
    player.follow(lambda _: SILENT)
    variables = {"OPENAI_BASE_URL": player.base_url, "STATE_URL": f"sqlite:///{tmp_path}/state.db"}
    async with service(**variables) as one, service(**variables) as other:
        asked = len(player.requests)
        path = await accepted(one)
        await until(lambda: len(player.requests) > asked)
        assert (await other.delete(path)).json()["status"] == "cancelled"
        assert (await one.get(path)).json()["status"] == "cancelled"
