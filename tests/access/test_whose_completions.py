"""What a principal makes over OpenAI's wire is its own, and what it may not use is not there."""

import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.access.principals import as_, principals
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.protocols.openai.asking import COMPLETIONS, ROLL, call, error_of, result, user
from tests.serving import service

FOLDERS = "tests.protocols.openai.folders"
ARGUMENTS = {"getCityTimeFunction": {"timeZoneId": "Asia/Shanghai"}, "ship": {"number": 1}}
PAIRS = [("alice", "bob"), ("alice", ""), ("", "alice")]


def obedient(request: PlayedRequest) -> Answer:
    """A model that calls the tools that are named behind the word call, once, and then is done."""
    messages = request.body["messages"]
    words = messages[-1]["content"].split() if messages[-1]["role"] == "user" else []
    if words[:1] != ["call"]:
        return whole(message(content="Done."))
    calls = [call(name, json.dumps(ARGUMENTS.get(name, {})), f"call_{n}") for n, name in enumerate(words[1:])]
    return whole(message("tool_calls", content=None, tool_calls=calls))


@pytest.fixture(scope="module")
async def played(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[tuple[httpx.AsyncClient, OpenAIPlayer], None]:
    keys = principals(tmp_path_factory.mktemp("keys"))
    async with (
        OpenAIPlayer(obedient) as player,
        service(FOLDERS, OPENAI_BASE_URL=player.base_url, ALLOW_ANONYMOUS="true", **keys) as client,
    ):
        yield client, player


async def completed(
    client: httpx.AsyncClient, name: str, *messages: dict[str, Any], session: str = "", **fields: Any
) -> httpx.Response:
    body = {"model": "toolchat", "messages": messages, **fields}
    return await client.post(
        COMPLETIONS, json=body, headers=as_(name, **({"X-Session-ID": session} if session else {}))
    )


@pytest.mark.parametrize(("owner", "other"), PAIRS)
async def test_two_principals_have_separate_conversations_of_one_name(
    owner: str, other: str, played: tuple[httpx.AsyncClient, OpenAIPlayer]
) -> None:
    client, player = played
    session, given = f"trip-{owner}-{other}".strip("-"), []
    await completed(client, owner, user("my secret"), session=session)
    assert (await client.get(f"/chat/{session}", headers=as_(other))).status_code == 404
    for name in (other, owner):
        await completed(client, name, user("hello"), session=session)
        given.append([each["content"] for each in player.requests[-1].body["messages"]])
    assert ["my secret" in each for each in given] == [False, True]


@pytest.mark.parametrize(("owner", "other"), PAIRS)
async def test_saved_partial_turns_belong_to_their_principal(
    owner: str, other: str, played: tuple[httpx.AsyncClient, OpenAIPlayer]
) -> None:
    client, player = played
    question = user("call getCityTimeFunction roll")
    first = (await completed(client, owner, question, tools=[ROLL])).json()["choices"][0]["message"]
    (rolled,) = first["tool_calls"]
    known = []
    for name in (other, owner):
        await completed(client, name, question, first, result(rolled["id"], "4"), tools=[ROLL])
        said = next(each for each in player.requests[-1].body["messages"] if each["role"] == "assistant")
        known.append([each["function"]["name"] for each in said["tool_calls"]])
    assert known == [["roll"], ["getCityTimeFunction", "roll"]]


@pytest.mark.parametrize(("owner", "other"), PAIRS)
async def test_stored_responses_belong_to_their_principal(
    owner: str, other: str, played: tuple[httpx.AsyncClient, OpenAIPlayer]
) -> None:
    client, _ = played
    first = (await client.post("/v1/responses", json={"model": "toolchat", "input": "a"}, headers=as_(owner))).json()
    path, again = (
        f"/v1/responses/{first['id']}",
        {"model": "toolchat", "input": "b", "previous_response_id": first["id"]},
    )
    reference = {"model": "toolchat", "input": [{"type": "item_reference", "id": first["output"][0]["id"]}]}
    for name, statuses in ((other, [404, 404, 404, 404, 400, 400]), (owner, [200, 200, 400, 200])):
        told = [
            *[await client.get(each, headers=as_(name)) for each in (path, f"{path}/input_items")],
            await client.post(f"{path}/cancel", headers=as_(name)),
            await client.delete(path, headers=as_(name))
            if name == other
            else await client.get(path, headers=as_(name)),
            *[await client.post("/v1/responses", json=each, headers=as_(name)) for each in (again, reference)],
        ]
        assert [each.status_code for each in told][: len(statuses)] == statuses


async def test_only_the_requesting_principal_sees_the_pending_calls_and_can_approve_them(
    played: tuple[httpx.AsyncClient, OpenAIPlayer],
) -> None:
    client, _ = played
    asked = await completed(client, "alice", user("call ship"), model="toolchat-ship")
    place, principals = f"/approvals/{asked.headers['x-approval-id']}", ("bob", "", "alice")
    shown = [await client.get(place, headers=as_(name)) for name in principals]
    decisions = {"decisions": {"call_0": {"approved": True}}}
    decided = [await client.post(place, json=decisions, headers=as_(name)) for name in principals]
    assert [each.status_code for each in (*shown, *decided)] == [404, 404, 200] * 2


async def test_a_model_without_usable_tools_is_hidden(
    played: tuple[httpx.AsyncClient, OpenAIPlayer],
) -> None:
    client, _ = played
    listed = (await client.get("/v1/models", headers=as_("narrow"))).json()["data"]
    assert {each["id"] for each in listed} == {"toolchat", "toolchat-plain", "toolchat-time"}
    told = []
    for model in ("toolchat-todo", "toolchat-none"):
        one = await client.get(f"/v1/models/{model}", headers=as_("narrow"))
        asked = await completed(client, "narrow", user("hi"), model=model)
        assert [error_of(each)[:2] for each in (one, asked)] == [(404, "model_not_found")] * 2
        told.append([each.json()["error"]["message"].replace(model, "…") for each in (one, asked)])
        assert (await client.get(f"/v1/models/{model}", headers=as_("alice"))).is_success is (model == "toolchat-todo")
    assert told[0] == told[1]


async def test_a_tool_that_a_key_may_not_use_is_neither_offered_nor_run_and_its_own_tools_are(
    played: tuple[httpx.AsyncClient, OpenAIPlayer],
) -> None:
    client, player = played
    await completed(client, "narrow", user("call todoRead"), tools=[ROLL])
    offered = {each["function"]["name"] for each in player.requests[-2].body["tools"]}
    refused = player.requests[-1].body["messages"][-1]
    assert offered == {"getCityTimeFunction", "roll"}
    assert refused["role"] == "tool"
    assert '"kind":"unknown-tool"' in refused["content"].replace(" ", "")
    own = await completed(client, "narrow", user("call roll"), tools=[ROLL])
    (called,) = own.json()["choices"][0]["message"]["tool_calls"]
    assert called["function"]["name"] == "roll"


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_unauthorized_request_gets_openais_error_format(method: str, tmp_path: Path) -> None:
    path = {"GET": "/v1/models", "POST": COMPLETIONS}[method]
    async with service(**principals(tmp_path, bob='roles = ["operate"]')) as client:
        answers = [await client.request(method, path, headers=as_(name)) for name in ("", "wrong", "bob")]
    assert [error_of(each) for each in answers] == [
        *([(401, "invalid_api_key", None)] * 2),
        (403, "forbidden", None),
    ]
    assert [each.json()["error"]["type"] for each in answers] == [*["authentication_error"] * 2, "permission_error"]
    assert answers[0].headers["www-authenticate"].startswith("Bearer")
    assert {each.headers["x-should-retry"] for each in answers} == {"false"}


async def test_quotas_use_openais_headers_and_error_format(tmp_path: Path) -> None:
    limits = principals(tmp_path, alice="requests_per_minute = 2\ntokens_per_day = 1000000")
    async with service(**limits) as client:
        answers = [
            await completed(client, "alice", user("What time is it in Rome?"), stream=stream)
            for stream in (False, True, True)
        ]
        free = await completed(client, "bob", user("hello"))
    assert [each.status_code for each in answers] == [200, 200, 429]
    told = [[each.headers[f"x-ratelimit-{what}-requests"] for what in ("limit", "remaining")] for each in answers]
    assert told == [["2", "1"], ["2", "0"], ["2", "0"]]
    assert [each.headers["x-ratelimit-limit-tokens"] for each in answers] == ["1000000"] * 3
    waits = [each.headers["x-ratelimit-reset-requests"] for each in answers]
    assert all(re.fullmatch(r"\d+s", each) for each in waits)
    assert waits[2] == f"{answers[2].headers['retry-after']}s"
    assert error_of(answers[2])[:2] == (429, "rate_limit_exceeded")
    assert int(answers[2].headers["retry-after"]) > 0
    assert [name for name in free.headers if name.startswith("x-ratelimit")] == []


@pytest.mark.parametrize("stream", [False, True])
async def test_quotas_hold_for_responses_as_well(stream: bool, tmp_path: Path) -> None:
    async with service(**principals(tmp_path, alice="requests_per_minute = 1")) as client:
        body = {"model": "toolchat", "input": "What time is it in Rome?", "stream": stream}
        first, second = [await client.post("/v1/responses", json=body, headers=as_("alice")) for _ in range(2)]
    assert [first.headers[f"x-ratelimit-{what}-requests"] for what in ("limit", "remaining")] == ["1", "0"]
    assert error_of(second)[:2] == (429, "rate_limit_exceeded")


async def test_cross_site_and_misdirected_requests_get_openais_error_format() -> None:
    async with service() as client:
        body = {"model": "toolchat", "messages": [user("hi")]}
        page = await client.post(COMPLETIONS, json=body, headers={"Origin": "https://evil.example"})
        name = await client.get("/v1/models", headers={"Host": "evil.example"})
    assert [error_of(each)[:2] for each in (page, name)] == [(403, "cross_site"), (421, "misdirected")]


@pytest.mark.parametrize(("owner", "other"), PAIRS)
async def test_a_conversation_belongs_to_the_principal_that_created_it(
    owner: str, other: str, played: tuple[httpx.AsyncClient, OpenAIPlayer]
) -> None:
    client, _ = played
    body = {"items": [{"role": "user", "content": "my secret"}]}
    identifier = (await client.post("/v1/conversations", json=body, headers=as_(owner))).json()["id"]
    path = f"/v1/conversations/{identifier}"
    question = {"model": "toolchat", "input": "?", "conversation": identifier}
    foreign = [
        await client.get(path, headers=as_(other)),
        await client.get(f"{path}/items", headers=as_(other)),
        await client.post(f"{path}/items", json=body, headers=as_(other)),
        await client.delete(path, headers=as_(other)),
        await client.post("/v1/responses", json=question, headers=as_(other)),
    ]
    assert [error_of(each)[:2] for each in foreign] == [(404, "not_found")] * 5
    assert len((await client.get(f"{path}/items", headers=as_(owner))).json()["data"]) == 1
