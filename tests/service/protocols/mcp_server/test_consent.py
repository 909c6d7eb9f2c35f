"""Consent to calls that need it, asked of the host: in its next request, or in the stream of the call that waits."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import httpx
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams
from pydantic_core import from_json

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.players.redis_server import RedisServer
from tests.service.observability.reading import figures_of, grown
from tests.service.protocols.mcp_server.folders.workshop import Seen
from tests.service.protocols.mcp_server.host import FOLDERS, LEGACY, MODERN, Host, asked, messages_of, session_of
from tests.serving import service
from tests.waiting import until
from toolchat.service.api.idempotency import IdempotentRequest
from toolchat.service.protocols.mcp_server import consent
from toolchat.service.protocols.mcp_server.consent import require_consent
from toolchat.service.server.http_protocol import LimitedProtocol
from toolchat.state.sqlite import SqliteStateStore

CALL: dict[str, Any] = {"name": "switchLight", "arguments": {"on": True}}
ACCEPTED, DECLINED = {"consent": {"action": "accept", "content": {}}}, {"consent": {"action": "decline"}}


Replicas = tuple[httpx.AsyncClient, httpx.AsyncClient]
ASK: dict[str, Any] = {"name": "ask", "arguments": {"question": "lights 2"}}


def obedient(request: PlayedRequest) -> Answer:
    """A model that switches the requested number of lights and then reports the results."""
    *_, last = request.body["messages"]
    if last["role"] == "tool":
        results = [each["content"] for each in request.body["messages"] if each["role"] == "tool"]
        return whole(message(content=" ".join("done" if each == "on" else "refused" for each in results)))
    number = int(last["content"].split()[-1])
    calls = [{"id": f"call_{n}", "type": "function", "function": SWITCH} for n in range(number)]
    return whole(message("tool_calls", content=None, tool_calls=calls))


SWITCH = {"name": "switchLight", "arguments": '{"on":true}'}


@pytest.fixture(scope="module")
async def client() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with (
        OpenAIPlayer(obedient) as player,
        service(FOLDERS, OPENAI_BASE_URL=player.base_url) as client,
    ):
        yield client


def decided(*actions: str) -> dict[str, Any]:
    return dict(zip(("consent", "consent-1"), ({"action": each} for each in actions), strict=False))


@pytest.fixture
def host(client: httpx.AsyncClient) -> Host:
    """A host that can ask its user."""
    return Host(client, elicitation={})


async def question_of(host: Host) -> str:
    """The state that goes with the question to the user."""
    state: str = (await host.result("tools/call", **CALL))["requestState"]
    return state


async def test_a_guarded_call_asks_the_user_through_the_host_and_runs_nothing(host: Host) -> None:
    before = Seen.switched
    result = await host.result("tools/call", **CALL)
    assert result["resultType"] == "input_required"
    (request,) = result["inputRequests"].values()
    assert request["method"] == "elicitation/create"
    assert request["params"]["message"] == 'Run switchLight with {"on":true}?'
    assert request["params"]["requestedSchema"] == {"type": "object", "properties": {}}
    assert Seen.switched == before


async def test_an_accepted_call_runs_once_however_often_it_is_sent(host: Host) -> None:
    before, state = Seen.switched, await question_of(host)
    for _ in range(3):
        result = await host.result("tools/call", **CALL, inputResponses=ACCEPTED, requestState=state)
        assert (result["resultType"], result["content"][0]["text"]) == ("complete", "on")
    assert Seen.switched == before + 1


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_rejected_call_does_not_run(action: str, host: Host) -> None:
    before, state = Seen.switched, await question_of(host)
    answers = {"consent": {"action": action}}
    result = await host.result("tools/call", **CALL, inputResponses=answers, requestState=state)
    assert (result["isError"], Seen.switched) == (True, before)
    assert '"kind":"rejected"' in result["content"][0]["text"]


@pytest.mark.parametrize("responses", [None, {}, {"other": {"action": "accept"}}], ids=str)
async def test_without_a_response_the_host_is_asked_again(responses: Any, host: Host) -> None:
    state = await question_of(host)
    result = await host.result("tools/call", **CALL, inputResponses=responses, requestState=state)
    assert result["resultType"] == "input_required"


@pytest.mark.parametrize("responses", [[], {"consent": "accept"}, {"consent": {"action": "perhaps"}}], ids=str)
async def test_a_malformed_response_is_rejected(responses: Any, host: Host) -> None:
    before, state = Seen.switched, await question_of(host)
    error = await host.error("tools/call", **CALL, inputResponses=responses, requestState=state)
    assert (error, Seen.switched) == ((400, -32602), before)


async def test_a_response_without_the_state_is_not_consent(host: Host) -> None:
    result = await host.result("tools/call", **CALL, inputResponses=ACCEPTED)
    assert result["resultType"] == "input_required"


def forged(state: str) -> dict[str, Any]:
    other = ("0" if state[0] != "0" else "1") + state[1:]
    return {
        "changed": other,
        "invented": "0" * len(state),
        "cut": state[:-1],
        "without its beginning": state[1:],
        "half": state.partition(".")[0][:-1],
        "longer": f"{state}0",
        "upper case": state.upper() + "A",
        "empty": "",
        "no text": 5,
        "odd": "é",
    }


@pytest.mark.parametrize("call", [CALL, ASK], ids=["a call", "a question"])
@pytest.mark.parametrize("kind", list(forged("0")))
async def test_a_forged_state_is_rejected(kind: str, call: dict[str, Any], host: Host) -> None:
    before, state = Seen.switched, forged((await host.result("tools/call", **call))["requestState"])[kind]
    brought: dict[str, Any] = {"inputResponses": ACCEPTED | decided("accept", "accept"), "requestState": state}
    assert await host.error("tools/call", **call, **brought) == (400, -32602)
    assert Seen.switched == before


async def test_a_state_is_valid_for_its_own_call_and_tenant_only(host: Host) -> None:
    before, state = Seen.switched, await question_of(host)
    brought: dict[str, Any] = {"inputResponses": ACCEPTED, "requestState": state}
    other = {**CALL, "arguments": {"on": False}}
    assert await host.error("tools/call", **other, **brought) == (400, -32602)
    assert await host.error("tools/call", {"X-Tenant-ID": "acme"}, **CALL, **brought) == (400, -32602)
    assert Seen.switched == before


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}], ids=str)
async def test_a_host_without_elicitation_learns_which_capability_is_missing(
    capabilities: Mapping[str, Any], client: httpx.AsyncClient
) -> None:
    answer = await Host(client, **capabilities).ask("tools/call", **CALL)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, -32021)
    assert error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    assert error["message"] == "a person must decide about switchLight"


@pytest.mark.parametrize("version", LEGACY)
async def test_in_the_legacy_lane_the_hosts_model_learns_only_that_a_person_must_decide(
    version: str, client: httpx.AsyncClient
) -> None:
    before = Seen.switched
    result = await Host(client, version).call("switchLight", on=True)
    assert (result["isError"], Seen.switched) == (True, before)
    error = {"kind": "approval-required", "message": "a person must decide about switchLight"}
    assert from_json(result["content"][0]["text"]) == {"error": error}


async def test_invalid_arguments_are_reported_before_the_user_is_asked(host: Host) -> None:
    result = await host.call("switchLight", on="perhaps")
    assert result["isError"] is True


async def test_any_replica_accepts_the_response_and_only_one_runs_the_call(replicas: Replicas) -> None:
    one, other = (Host(each, elicitation={}) for each in replicas)
    before, state = Seen.switched, await question_of(one)
    for host in (other, one):
        result = await host.result("tools/call", **CALL, inputResponses=ACCEPTED, requestState=state)
        assert result["content"][0]["text"] == "on"
    assert Seen.switched == before + 1


async def test_a_state_expires() -> None:
    store = SqliteStateStore()

    async def consent(ttl: int, **params: Any) -> IdempotentRequest | dict[str, Any]:
        return await require_consent(CallToolRequestParams.model_validate({**CALL, **params}), store, "zh", ttl=ttl)

    for ttl, holds in ((60, True), (0, False)):
        question = await consent(ttl)
        assert isinstance(question, dict)
        brought = {"requestState": question["requestState"], "inputResponses": ACCEPTED}
        if holds:
            assert isinstance(await consent(ttl, **brought), IdempotentRequest)
        else:
            with pytest.raises(MCPError, match="has expired"):
                await consent(ttl, **brought)


async def test_the_host_is_asked_about_each_pending_call(host: Host) -> None:
    before = Seen.switched
    result = await host.result("tools/call", **ASK)
    requests = result["inputRequests"].values()
    assert (result["resultType"], Seen.switched) == ("input_required", before)
    assert [each["method"] for each in requests] == ["elicitation/create"] * 2
    assert [each["params"]["message"] for each in requests] == ['Run switchLight with {"on":true}?'] * 2


@pytest.mark.parametrize("actions", [("accept", "accept"), ("accept", "decline"), ("cancel", "decline")])
async def test_the_answer_continues_with_the_users_decisions(actions: tuple[str, str], host: Host) -> None:
    before = Seen.switched
    state = (await host.result("tools/call", **ASK))["requestState"]
    result = await host.result("tools/call", **ASK, requestState=state, inputResponses=decided(*actions))
    told = ["done" if each == "accept" else "refused" for each in actions]
    assert result["content"][0]["text"].split() == told
    assert result["resultType"] == "complete"
    assert Seen.switched == before + told.count("done")
    assert len(result["structuredContent"]["tool_calls"]) == 2


async def test_a_missing_decision_is_requested_again(host: Host) -> None:
    state = (await host.result("tools/call", **ASK))["requestState"]
    again = await host.result("tools/call", **ASK, requestState=state, inputResponses=decided("accept"))
    assert len(again["inputRequests"]) == 2
    accepted = decided("accept", "accept")
    result = await host.result("tools/call", **ASK, requestState=again["requestState"], inputResponses=accepted)
    assert result["content"][0]["text"] == "done done"


async def test_a_decision_counts_once_and_only_for_its_question_and_caller(host: Host) -> None:
    before = Seen.switched
    brought = {
        "requestState": (await host.result("tools/call", **ASK))["requestState"],
        "inputResponses": decided("accept", "accept"),
    }
    other = {**ASK, "arguments": {"question": "lights 1"}}
    assert await host.error("tools/call", **other, **brought) == (400, -32602)
    assert await host.error("tools/call", {"X-Tenant-ID": "acme"}, **ASK, **brought) == (400, -32602)
    assert Seen.switched == before
    await host.result("tools/call", **ASK, **brought)
    assert await host.error("tools/call", **ASK, **brought) == (400, -32602)
    assert Seen.switched == before + 2


async def test_a_stream_with_progress_ends_with_the_consent_request(host: Host) -> None:
    asked = await host.ask("tools/call", **ASK, _meta={"progressToken": 1})
    state = asked.json()["result"]["requestState"]  # nothing has run yet, so there is no progress to stream
    brought = {"requestState": state, "inputResponses": decided("accept", "accept")}
    *told, last = messages_of((await host.ask("tools/call", **ASK, **brought, _meta={"progressToken": 1})).text)
    assert last["result"]["content"][0]["text"] == "done done"
    assert [each["params"]["progress"] for each in told] == [1, 2, 3, 4]


@pytest.mark.parametrize("version", [MODERN, *LEGACY])
async def test_the_model_of_a_host_without_elicitation_learns_only_that_a_person_must_decide(
    version: str, client: httpx.AsyncClient
) -> None:
    before = Seen.switched
    answer = await Host(client, version).ask("tools/call", **ASK)
    result = answer.json()["result"]
    assert result["content"][0]["text"] == "A person must decide about switchLight, switchLight"
    assert result["structuredContent"]["finish_reason"] == "approval_required"
    assert answer.headers["x-approval-id"] not in answer.text
    assert Seen.switched == before


@pytest.fixture
async def replicas() -> AsyncGenerator[Replicas, None]:
    """Two replicas that share a store."""
    async with (
        RedisServer() as redis,
        service(FOLDERS, CHAT_PROVIDER="offline", REDIS_URL=redis.url) as one,
        service(FOLDERS, CHAT_PROVIDER="offline", REDIS_URL=redis.url) as other,
    ):
        yield one, other


async def test_any_replica_receives_the_decision_and_the_first_one_counts(replicas: Replicas) -> None:
    before, (one, other) = Seen.switched, replicas
    async with asked(one, **CALL) as call:
        response = {"jsonrpc": "2.0", "id": (await call.message())["id"]}
        results = [{**response, "result": {"action": action}} for action in ("decline", "accept")]
        sent = [(await other.post("/mcp", json=each)).status_code for each in results]
        result = (await call.message())["result"]
    assert (sent, result["isError"], Seen.switched) == ([202, 400], True, before)


async def test_a_media_type_may_have_capitals(client: httpx.AsyncClient) -> None:
    async with asked(client, **CALL, headers={"Accept": "Application/JSON, Text/Event-Stream"}) as call:
        assert (await call.message())["method"] == "elicitation/create"


async def test_the_result_ends_the_stream_that_asks(client: httpx.AsyncClient) -> None:
    before = Seen.switched
    async with asked(client, **CALL) as call:
        request = await call.message()
        assert (request["method"], Seen.switched) == ("elicitation/create", before)
        assert request["params"]["requestedSchema"] == {"type": "object", "properties": {}}
        assert await call.respond(request["id"]) == 202
        response = await call.message()
        with pytest.raises(AssertionError, match="has ended"):
            await call.message()
    assert (response["id"], response["result"]["content"][0]["text"]) == (1, "on")
    assert Seen.switched == before + 1


async def test_nothing_runs_after_the_host_has_disconnected(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    before = Seen.switched
    caplog.set_level("INFO", "toolchat.request")
    async with asked(client, **CALL) as call:
        identifier = (await call.message())["id"]
    await until(lambda: any(vars(each).get("outcome") == "client_gone" for each in caplog.records))
    await call.respond(identifier)
    assert await Host(client).result("tools/list")
    assert Seen.switched == before


async def test_without_a_decision_in_time_the_call_is_rejected(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Seen.switched
    monkeypatch.setattr(consent, "DECISION_SECONDS", 0.01)
    async with asked(client, **CALL) as call:
        identifier = (await call.message())["id"]
        result = (await call.message())["result"]
    await call.respond(identifier)
    assert (result["isError"], Seen.switched) == (True, before)
    assert '"kind":"rejected"' in result["content"][0]["text"]


UNKNOWN = [{"result": each} for each in ({"action": "perhaps"}, {}, {"action": ["accept"]}, {"action": "cancel"})]


@pytest.mark.parametrize("decision", [*UNKNOWN, {"error": {"code": -32603, "message": "no window"}}], ids=str)
async def test_an_unknown_decision_and_an_error_are_no_consent(
    decision: dict[str, Any], client: httpx.AsyncClient
) -> None:
    before = Seen.switched
    async with asked(client, **CALL) as call:
        response = {"jsonrpc": "2.0", "id": (await call.message())["id"], **decision}
        assert (await client.post("/mcp", json=response)).status_code == 202
        assert (await call.message())["result"]["isError"] is True
    assert Seen.switched == before


@pytest.mark.parametrize("identifier", ["0" * 32, "A" * 32, "0" * 33, "", 1, "é"], ids=str)
async def test_a_response_that_nobody_waits_for_is_rejected(identifier: Any, client: httpx.AsyncClient) -> None:
    for rest in ({"result": {"action": "accept"}}, {"error": {"code": 1, "message": "no"}}):
        answer = await client.post("/mcp", json={"jsonrpc": "2.0", "id": identifier, **rest})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"roots": {}}], ids=str)
async def test_only_a_host_that_shows_forms_is_asked(capabilities: dict[str, Any], client: httpx.AsyncClient) -> None:
    session = await session_of(client, **capabilities)
    one, other = [(await session_of(client, elicitation={}))["mcp-session-id"] for _ in range(2)]
    assert len({one, other, session["mcp-session-id"]}) == 3
    body, _ = Host(client, LEGACY[0]).request("tools/call", **CALL)
    answer = await client.post("/mcp", json=body, headers=session)
    assert "a person must decide" in answer.json()["result"]["content"][0]["text"]


@pytest.mark.parametrize("version", LEGACY)
async def test_a_host_that_takes_no_events_is_not_asked(version: str, client: httpx.AsyncClient) -> None:
    session = {**await session_of(client, version, elicitation={"form": {}}), "Accept": "application/json"}
    body, _ = Host(client, version).request("tools/call", **CALL)
    result = (await client.post("/mcp", json=body, headers=session)).json()["result"]
    assert "a person must decide" in result["content"][0]["text"]


async def test_a_person_has_longer_than_an_answer_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []
    monkeypatch.setattr(LimitedProtocol, "abort_after", lambda _, seconds: limits.append(seconds))
    async with (
        OpenAIPlayer(obedient) as player,
        service(FOLDERS, OPENAI_BASE_URL=player.base_url, REQUEST_TIMEOUT="60") as client,
        asked(client, **ASK) as call,
    ):
        await call.message()
    assert limits[-1] >= consent.DECISION_SECONDS > limits[0]


async def test_the_time_of_a_person_is_not_that_of_the_service(client: httpx.AsyncClient) -> None:
    before = await figures_of(client)
    async with asked(client, **CALL) as call:
        identifier = (await call.message())["id"]
        await asyncio.sleep(0.3)
        await call.respond(identifier)
        await call.message()

    async def took() -> list[float]:
        after = await figures_of(client)
        names = [f"toolchat_question_{each}_seconds_sum" for each in ("duration", "overhead")]
        return [sum(grown(before, after, name).values()) for name in names]

    async def is_counted() -> bool:
        return (await took())[0] > 0

    await until(is_counted)
    whole, overhead = await took()
    assert whole - overhead >= 0.3
