"""Approvals: requested in the stream, and given by the page's next request."""

from typing import Any

import httpx
import pytest

from tests.protocols.ai_sdk.asking import SHIP_FOLDERS, asks, parts_of, said, says, sent, text, user
from tests.protocols.openai.asking import call, played

SHIP = call("ship", '{"number":1}')
TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}', "call_2")
ASKED = user("Ship order 1")
RESPONDED = "approval-responded"


def requests_of(answer: httpx.Response) -> dict[str, str]:
    """The id under which consent is asked for, by call id."""
    asked = (each for each in parts_of(answer) if each["type"] == "tool-approval-request")
    return {each["toolCallId"]: each["approvalId"] for each in asked}


def decided(identifier: str, approved: bool | None, **fields: Any) -> dict[str, Any]:
    approval = {"id": identifier, "approved": approved, **fields}
    called = {"type": "dynamic-tool", "toolName": "ship", "toolCallId": identifier.partition("/")[2]}
    return {**called, "state": "approval-requested" if approved is None else RESPONDED, "approval": approval}


def kinds(answer: httpx.Response) -> list[str]:
    return [each["type"] for each in parts_of(answer)]


async def test_approval_is_requested_after_the_call_and_ends_the_answer() -> None:
    async with played([asks(SHIP, content="Shipping.")], SHIP_FOLDERS) as (client, _):
        answer = await sent(client, ASKED)
    parts = parts_of(answer)
    assert parts[5]["input"] == {"number": 1}
    assert [each["type"] for each in parts[4:]] == [
        "text-end",
        "tool-input-available",
        "tool-approval-request",
        "finish-step",
        "finish",
    ]
    assert parts[-1]["finishReason"] == "tool-calls"
    assert "Waiting for approval" not in answer.text


async def test_an_approved_call_runs_and_the_answer_continues() -> None:
    async with played([asks(SHIP), says("On its way.")], SHIP_FOLDERS) as (client, player):
        identifier = requests_of(await sent(client, ASKED))["call_1"]
        answer = await sent(client, ASKED, said(decided(identifier, True)), messageId="m-2")
    parts = parts_of(answer)
    # The page has the call already, in a step that is over.
    assert parts[:3] == [
        {"type": "start"},
        {"type": "tool-output-available", "output": "shipped 1", "toolCallId": "call_1"},
        {"type": "start-step"},
    ]
    assert kinds(answer)[-2:] == ["finish-step", "finish"]
    assert player.requests[1].body["messages"][-1]["content"] == "shipped 1"


async def test_the_model_sees_the_reason_of_a_rejection() -> None:
    async with played([asks(SHIP), says("Then not.")], SHIP_FOLDERS) as (client, player):
        identifier = requests_of(await sent(client, ASKED))["call_1"]
        answer = await sent(client, ASKED, said(decided(identifier, False, reason="too dear")))
    assert parts_of(answer)[1] == {"type": "tool-output-denied", "toolCallId": "call_1"}
    assert "too dear" in player.requests[1].body["messages"][-1]["content"]


async def test_each_call_of_the_answer_has_an_id_and_a_decision_of_its_own() -> None:
    async with played([asks(SHIP, TIME, SHIP | {"id": "call_3"}), says("Noon.")], SHIP_FOLDERS) as (client, player):
        asked = requests_of(await sent(client, ASKED))
        decisions = (decided(asked["call_1"], False), decided(asked["call_3"], True))
        answer = await sent(client, ASKED, said(*decisions))
    assert "call_2" not in asked  # it needs no approval, so it has run
    assert sorted(kinds(answer)[1:3]) == ["tool-output-available", "tool-output-denied"]
    results = [each["content"] for each in player.requests[1].body["messages"][-3:]]
    assert ["rejected" in each for each in results] == [True, False, False]


async def test_a_second_call_with_the_same_id_requires_its_own_approval() -> None:
    async with played([asks(SHIP), asks(SHIP), says("Both.")], SHIP_FOLDERS) as (client, player):
        first = requests_of(await sent(client, ASKED))["call_1"]
        paused = await sent(client, ASKED, said(decided(first, True)))
        second = requests_of(paused)["call_1"]
        done = {**decided(first, True), "state": "output-available", "output": "shipped 1"}
        answer = await sent(client, ASKED, said(done, {"type": "step-start"}, decided(second, True)))
    assert kinds(paused)[1:5] == [
        "tool-output-available",
        "start-step",
        "tool-input-available",
        "tool-approval-request",
    ]
    assert first != second
    assert "text-delta" in kinds(answer)
    assert len(player.requests) == 3


async def test_the_named_message_continues_although_another_question_follows() -> None:
    async with played([asks(SHIP), says("Hello."), says("On its way.")], SHIP_FOLDERS) as (client, player):
        identifier = requests_of(await sent(client, ASKED))["call_1"]
        later = (user("Hi"), {**said(text("Hello.")), "id": "m-3"})
        await sent(client, ASKED, said(decided(identifier, None)), user("Hi"))
        answer = await sent(client, ASKED, said(decided(identifier, True)), *later, messageId="m-2")
    assert kinds(answer)[1] == "tool-output-available"
    assert player.requests[2].body["messages"][-1]["content"] == "shipped 1"


async def test_a_session_remembers_the_turn_once_it_is_complete() -> None:
    named = {"X-Session-ID": "s-1"}
    async with played([asks(SHIP), says("On its way.")], SHIP_FOLDERS) as (client, _):
        identifier = requests_of(await sent(client, ASKED, headers=named))["call_1"]
        assert (await client.get("/chat/s-1")).json()["turns"] == 0
        answer = await sent(client, ASKED, said(decided(identifier, True)), headers=named)
        kept = (await client.get("/chat/s-1")).json()
    assert answer.headers["x-session-id"] == "s-1"
    assert kept["turns"] == 1


async def test_a_decision_counts_once() -> None:
    async with played([asks(SHIP), says("On its way.")], SHIP_FOLDERS) as (client, player):
        identifier = requests_of(await sent(client, ASKED))["call_1"]
        again = [await sent(client, ASKED, said(decided(identifier, True))) for _ in range(2)]
    assert [each.status_code for each in again] == [200, 404]
    assert again[1].text.startswith("it was decided before: approved at 20")
    assert len(player.requests) == 2


@pytest.mark.parametrize(
    ("second", "words"),
    [(("call_3", None), "every call of the answer (call_3)"), (("x/call_3", True), "the calls of one answer only")],
    ids=["one is not decided", "another answer's"],
)
async def test_partial_decisions_are_rejected_and_the_answer_stays_pending(second: Any, words: str) -> None:
    async with played([asks(SHIP, SHIP | {"id": "call_3"}), says("On its way.")], SHIP_FOLDERS) as (client, player):
        asked = requests_of(await sent(client, ASKED))
        other = decided(asked.get(second[0], second[0]), second[1])
        refused = await sent(client, ASKED, said(decided(asked["call_1"], True), other))
        assert (refused.status_code, len(player.requests)) == (400, 1)
        assert words in refused.text
        parts_of(await sent(client, ASKED, said(*[decided(each, True) for each in asked.values()])))


@pytest.mark.parametrize("identifier", ["", "x", "x/", "/call_1", "../../x/call_1", "\u0000/\u0000", "字" * 1000])
async def test_an_unrequested_approval_is_rejected(identifier: str, offline: httpx.AsyncClient) -> None:
    answer = await sent(offline, ASKED, said(decided(identifier, True) | {"toolCallId": "call_1"}))
    assert answer.status_code == 404


async def test_a_decision_about_another_call_is_rejected() -> None:
    async with played([asks(SHIP)], SHIP_FOLDERS) as (client, player):
        identifier = requests_of(await sent(client, ASKED))["call_1"]
        answer = await sent(client, ASKED, said(decided(identifier.replace("call_1", "call_9"), True)))
    assert (answer.status_code, len(player.requests)) == (422, 1)
