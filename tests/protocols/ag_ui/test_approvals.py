"""Approvals: interrupts of a run, which the next run resumes."""

from typing import Any

import pytest

from tests.protocols.ag_ui.asking import ROLL, SHIP_FOLDERS, Page, asks, call, kinds, played, says, sent, user

SHIP = call("ship", '{"number":1}')
TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}', "call_2")
ASKED = user("Ship order 1")


def resolved(identifier: str, approved: bool = True, **payload: Any) -> dict[str, Any]:
    return {"interruptId": identifier, "status": "resolved", "payload": {"approved": approved, **payload}}


def cancelled(identifier: str) -> dict[str, Any]:
    return {"interruptId": identifier, "status": "cancelled"}


async def test_a_call_that_needs_approval_interrupts_the_run_and_an_approved_one_runs() -> None:
    async with played([asks(SHIP, content="Shipping."), says("On its way.")], SHIP_FOLDERS) as (client, player):
        page = Page(client)
        ended = await page.run(ASKED)
        (interrupt,), asked = ended["outcome"]["interrupts"], page.events
        await page.run(resume=[resolved(interrupt["id"])])
    started = next(each for each in asked if each["type"] == "TOOL_CALL_START")
    assert (interrupt["reason"], interrupt["toolCallId"]) == ("tool_call", started["toolCallId"])
    assert {"message", "responseSchema", "expiresAt"} < interrupt.keys()
    assert "Waiting for approval" not in str(asked)
    # The page has the call already.
    assert kinds(page.events)[1:4] == ["TOOL_CALL_RESULT", "STEP_STARTED", "TEXT_MESSAGE_START"]
    assert (page.events[1]["toolCallId"], page.events[1]["content"]) == (started["toolCallId"], "shipped 1")
    assert player.requests[1].body["messages"][-1]["content"] == "shipped 1"


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (lambda each: resolved(each, approved=False, reason="too dear"), "too dear"),
        (lambda each: resolved(each, editedArgs={"number": 2}), "shipped 2"),
        (cancelled, "rejected"),
    ],
    ids=["rejected", "edited", "cancelled"],
)
async def test_the_model_learns_the_decision(decision: Any, words: str) -> None:
    async with played([asks(SHIP), says("So be it.")], SHIP_FOLDERS) as (client, player):
        page = Page(client)
        await page.run(ASKED)
        ended = await page.run(resume=[decision(each) for each in page.interrupts])
    assert words in player.requests[1].body["messages"][-1]["content"]
    assert ended["outcome"]["type"] == "success"


async def test_all_calls_are_decided_together_and_one_alone_leaves_them_pending() -> None:
    async with played([asks(SHIP, TIME, SHIP | {"id": "call_3"}), says("Noon.")], SHIP_FOLDERS) as (client, player):
        page = Page(client)
        await page.run(ASKED)
        first, second = page.interrupts
        refused = await sent(client, *page.messages, resume=[resolved(first)])
        await page.run(resume=[resolved(first, approved=False), resolved(second)])
        again = await sent(client, *page.messages, resume=[resolved(first), resolved(second)])
    assert (refused.status_code, "every call" in refused.json()["detail"]) == (400, True)
    results = [each["content"] for each in player.requests[1].body["messages"][-3:]]
    assert ["rejected" in each for each in results] == [True, False, False]
    assert (again.status_code, len(player.requests)) == (404, 2)


async def test_a_second_call_with_the_same_id_requires_its_own_approval() -> None:
    async with played([asks(SHIP), asks(SHIP), says("Both."), says("Bye.")], SHIP_FOLDERS) as (client, player):
        page = Page(client)
        await page.run(ASKED)
        first = page.interrupts
        await page.run(resume=[resolved(first[0])])
        second = page.interrupts
        await page.run(resume=[resolved(second[0])])
        await page.run(user("Thanks"))
    assert first != second
    sent_back = [each["content"] for each in player.requests[3].body["messages"] if each["role"] == "tool"]
    assert sent_back == ["shipped 1", "shipped 1"]


async def test_the_pages_tools_are_offered_after_an_approval_as_well() -> None:
    rolled = call("roll", '{"sides":6}', "call_3")
    async with played([asks(SHIP), asks(rolled), says("Done.")], SHIP_FOLDERS) as (client, player):
        page = Page(client, tools=[ROLL])
        await page.run(ASKED)
        await page.run(resume=[resolved(each) for each in page.interrupts])
        (pending,) = [each["toolCallId"] for each in page.events if each["type"] == "TOOL_CALL_START"]
        await page.run({"id": "m-9", "role": "tool", "toolCallId": pending, "content": "4"})
    results = [each["content"] for each in player.requests[2].body["messages"] if each["role"] == "tool"]
    assert results == ["shipped 1", "4"]


async def test_another_question_instead_of_a_decision_is_answered() -> None:
    async with played([asks(SHIP), says("Hello.")], SHIP_FOLDERS) as (client, player):
        page = Page(client)
        await page.run(ASKED)
        await page.run(user("Hi"), resume=[cancelled(each) for each in page.interrupts])
    told = [each["content"] for each in player.requests[1].body["messages"] if each["role"] != "system"]
    assert told == ["Ship order 1", "Hi"]


async def test_a_session_remembers_the_turn_once_it_is_complete() -> None:
    async with played([asks(SHIP), says("On its way.")], SHIP_FOLDERS) as (client, _):
        page = Page(client, headers={"X-Session-ID": "s-1"})
        await page.run(ASKED)
        assert (await client.get("/chat/s-1")).json()["turns"] == 0
        await page.run(resume=[resolved(page.interrupts[0])])
        assert (await client.get("/chat/s-1")).json()["turns"] == 1
