"""Tools that require the user's consent, requested through the host."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import httpx
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams
from pydantic_core import from_json

from tests.players.redis_server import RedisServer
from tests.protocols.mcp_server.folders.workshop import Seen
from tests.protocols.mcp_server.host import FOLDERS, LEGACY, Host
from tests.serving import service
from toolchat.service.api.idempotency import IdempotentRequest
from toolchat.service.protocols.mcp_server.consent import require_consent
from toolchat.state.sqlite import SqliteStateStore

CALL: dict[str, Any] = {"name": "switchLight", "arguments": {"on": True}}
ACCEPTED, DECLINED = {"consent": {"action": "accept", "content": {}}}, {"consent": {"action": "decline"}}


@pytest.fixture
def host(client: httpx.AsyncClient) -> Host:
    """A host that can ask its user."""
    return Host(client, elicitation={})


async def asked(host: Host) -> str:
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
    before, state = Seen.switched, await asked(host)
    for _ in range(3):
        result = await host.result("tools/call", **CALL, inputResponses=ACCEPTED, requestState=state)
        assert (result["resultType"], result["content"][0]["text"]) == ("complete", "on")
    assert Seen.switched == before + 1


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_rejected_call_does_not_run(action: str, host: Host) -> None:
    before, state = Seen.switched, await asked(host)
    answers = {"consent": {"action": action}}
    result = await host.result("tools/call", **CALL, inputResponses=answers, requestState=state)
    assert (result["isError"], Seen.switched) == (True, before)
    assert '"kind":"rejected"' in result["content"][0]["text"]


@pytest.mark.parametrize("responses", [None, {}, {"other": {"action": "accept"}}], ids=str)
async def test_without_a_response_the_host_is_asked_again(responses: Any, host: Host) -> None:
    state = await asked(host)
    result = await host.result("tools/call", **CALL, inputResponses=responses, requestState=state)
    assert result["resultType"] == "input_required"


@pytest.mark.parametrize("responses", [[], {"consent": "accept"}, {"consent": {"action": "perhaps"}}], ids=str)
async def test_a_malformed_response_is_rejected(responses: Any, host: Host) -> None:
    before, state = Seen.switched, await asked(host)
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
        "longer": f"{state}0",
        "upper case": state.upper() + "A",
        "empty": "",
        "no text": 5,
        "odd": "é",
    }


@pytest.mark.parametrize("kind", list(forged("0")))
async def test_a_forged_state_is_rejected(kind: str, host: Host) -> None:
    before, state = Seen.switched, forged(await asked(host))[kind]
    error = await host.error("tools/call", **CALL, inputResponses=ACCEPTED, requestState=state)
    assert (error, Seen.switched) == ((400, -32602), before)


async def test_a_state_is_valid_for_its_own_call_and_tenant_only(host: Host) -> None:
    before, state = Seen.switched, await asked(host)
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


@pytest.fixture
async def replicas() -> AsyncGenerator[tuple[Host, Host], None]:
    """Two replicas that share a store."""
    async with (
        RedisServer() as redis,
        service(FOLDERS, CHAT_PROVIDER="offline", REDIS_URL=redis.url) as one,
        service(FOLDERS, CHAT_PROVIDER="offline", REDIS_URL=redis.url) as other,
    ):
        yield Host(one, elicitation={}), Host(other, elicitation={})


async def test_any_replica_accepts_the_response_and_only_one_runs_the_call(replicas: tuple[Host, Host]) -> None:
    one, other = replicas
    before, state = Seen.switched, await asked(one)
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
