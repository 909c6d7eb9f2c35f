"""Consent to calls that the model of the tool ``ask`` makes."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.protocols.mcp_server.folders.workshop import Seen
from tests.protocols.mcp_server.host import FOLDERS, LEGACY, MODERN, Host, messages_of
from tests.serving import service

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


@pytest.fixture
def host(client: httpx.AsyncClient) -> Host:
    """A host that can ask its user."""
    return Host(client, elicitation={})


def decided(*actions: str) -> dict[str, Any]:
    return dict(zip(("consent", "consent-1"), ({"action": each} for each in actions), strict=False))


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


@pytest.mark.parametrize("change", [lambda state: state[1:], lambda state: state.partition(".")[0], lambda _: 5])
async def test_a_forged_state_is_rejected(change: Callable[[str], object], host: Host) -> None:
    before, state = Seen.switched, (await host.result("tools/call", **ASK))["requestState"]
    brought: dict[str, Any] = {"requestState": change(state), "inputResponses": decided("accept", "accept")}
    assert await host.error("tools/call", **ASK, **brought) == (400, -32602)
    assert Seen.switched == before


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


@pytest.mark.parametrize("version", [MODERN, *LEGACY])
async def test_nothing_listed_says_how_to_consent(version: str, client: httpx.AsyncClient) -> None:
    listed = (await Host(client, version).ask("tools/list")).text
    assert [each for each in ("POST ", "/approvals", "Idempotency-Key", "/tools/") if each in listed] == []
