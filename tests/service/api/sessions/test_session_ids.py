"""Session ids: which are taken, which are made, and that logs never show one."""

import json
import logging
import re
from hashlib import sha256

import httpx
import pytest

from tests.players.openai_player import OpenAIPlayer
from tests.service.api.sessions.conversing import EVENTS, JSON, ask, conversation, sociable
from tests.serving import events_of, service
from toolchat.service.observability.logs import JsonFormatter

ALLOWED = ["a", "0", "A9", "x" * 64, "a.b-c_d", "a..b", "chat2", "streams", "9f86d081884c7d659a2feaa0c55ad015"]
RESPONSES = ("/v1/responses", b'{"model": "toolchat", "input": "hi", "conversation": "a\\udc80"}')
REFUSED = [
    *("chat", "stream", "x" * 65, "x" * 5000, ".", "..", "../etc", "a/b", "/a", "-a", "_a", ".a"),
    *(" ", " a", "a ", "a b", "a\tb", "a\n", "a\r\nX: y", "a%2Fb", "a%00", "a:b", "a*", "a{b}", "a;b", "a,b", "a'--"),
    *("会话", "ａ", "é", "a\u200b", "a\u202e", "😀", "\u0661"),
]


async def test_an_id_of_plain_characters_is_taken(offline: httpx.AsyncClient) -> None:
    # It comes back as it was given, and is the way to the conversation.
    for session in ALLOWED:
        answer = await ask(offline, "hello", session, **JSON)
        assert (answer.status_code, answer.headers["x-session-id"]) == (200, session)
        assert answer.json()["session_id"] == session
        assert len(await conversation(offline, session)) == 2
        assert (await offline.delete(f"/chat/{session}")).status_code == 204


@pytest.mark.parametrize("path", ["/chat", "/chat/stream", "/todo/chat"])
async def test_any_other_id_is_rejected_without_a_model_call(path: str) -> None:
    # As a parameter of every route that has one.
    async with OpenAIPlayer(sociable) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        for session in REFUSED:
            answer = await client.get(path, params={"query": "hello", "sessionId": session})
            assert (answer.status_code, answer.json()["code"]) == (422, "validation"), ascii(session)
            assert answer.json()["detail"].startswith("sessionId: ")
            assert (answer.json()["detail"] == f"sessionId: {session} is reserved") == (session in ("chat", "stream"))
    assert player.requests == []


@pytest.mark.parametrize(("path", "body"), [("/chat", b'{"query": "hi", "sessionId": "a\\udc80"}'), RESPONSES])
async def test_half_a_character_is_no_part_of_an_id(path: str, body: bytes, offline: httpx.AsyncClient) -> None:
    answer = await offline.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)


IN_A_PATH = [
    *("%2e%2e", "a%20b", "%20", "%E4%BC%9A", "a%00", "%FF", "a%252Fb", "chat", "x" * 65),
    *("a%2Fb", "%2Fetc"),
]


@pytest.mark.parametrize(("method", "path"), [("GET", "/chat/"), ("DELETE", "/chat/"), ("GET", "/todo/")])
async def test_an_id_in_a_path_is_held_to_the_same_rule(method: str, path: str, offline: httpx.AsyncClient) -> None:
    # Percent-encoding is undone once; a slash makes another path, and /todo/chat is a question.
    for encoded in set(IN_A_PATH) - ({"chat"} if path == "/todo/" else set()):
        answer = await offline.request(method, path + encoded)
        elsewhere = "2F" in encoded.replace("%252F", "")
        assert answer.status_code == (404 if elsewhere else 422), encoded


@pytest.mark.parametrize("parameters", [{}, {"sessionId": ""}], ids=["missing", "empty"])
async def test_without_an_id_a_new_unguessable_one_is_created(parameters: dict[str, str]) -> None:
    # 32 hexadecimal digits, in the header, in JSON and in `done`; the conversation goes on under it.
    async with OpenAIPlayer(sociable) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        made = []
        for form in ({}, JSON, EVENTS):
            answer = await client.get("/chat", params={"userInput": "hello", **parameters}, headers=form)
            made.append(answer.headers["x-session-id"])
            if form == JSON:
                assert answer.json()["session_id"] == made[-1]
            if form == EVENTS:
                assert events_of(answer.text)[-1].data["session_id"] == made[-1]
        assert len(set(made)) == 3
        assert all(re.fullmatch("[0-9a-f]{32}", each) for each in made)
        await ask(client, "again", made[0])
        assert len(await conversation(client, made[0])) == 4
        assert len(await conversation(client, made[1])) == 2


async def test_logs_name_sessions_and_approvals_only_by_a_hash(caplog: pytest.LogCaptureFixture) -> None:
    # Whoever knows an id can read a conversation or approve a call; the hash still tells lines of one apart.
    session, approval = "my-Session.17", "3q2-7wAAAAAbcdefghijkl"
    with caplog.at_level(logging.DEBUG, logger="toolchat"):
        async with service() as client:
            await ask(client, "hello", session)
            await ask(client, "hello", session, **EVENTS)
            await client.get("/todo/chat", params={"query": "hello", "sessionId": session})
            for method, path in (("GET", "/chat"), ("GET", "/todo"), ("DELETE", "/chat"), ("HEAD", "/chat")):
                await client.request(method, f"{path}/{session}")
            for path in (f"/chat/{session}/", f"/chat//{session}", f"/todo/{session}/more", f"/approvals/{approval}/"):
                await client.get(path)
            await client.post(f"/approvals/{approval}", json={"decisions": {}})
            await client.post(f"/approvals/{approval}", content=b"{")
    lines = [json.loads(JsonFormatter().format(each)) for each in caplog.records if each.name.startswith("toolchat")]
    assert not [line for line in lines if session in str(line) or approval in str(line)]
    finished = [line for line in lines if line["message"] == "request finished"]
    assert len(finished) == 13
    hashed = sha256(session.encode()).hexdigest()[:12]
    assert [line.get("session") for line in finished[:3]] == [hashed] * 3
    paths = [line["path"] for line in lines if line["message"] == "request started"]
    assert paths[3:7] == [f"/chat/{hashed}", f"/todo/{hashed}", f"/chat/{hashed}", f"/chat/{hashed}"]
