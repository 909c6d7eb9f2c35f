"""What both kinds of pages get: their own tools, and approvals that their next request brings."""

from copy import deepcopy
from typing import Any

import httpx
import pytest

from tests.players.openai_player import OpenAIPlayer
from tests.service.protocols.openai.asking import played
from tests.service.protocols.pages import ROLLED, SHIP, SHIP_FOLDERS, SIDES, TIME, AgUiPage, AiSdkPage, Page, asks, says

THIRD = SHIP | {"id": "call_3"}


@pytest.fixture(params=[AiSdkPage, AgUiPage])
def kind(request: pytest.FixtureRequest) -> type[Page]:
    kind: type[Page] = request.param
    return kind


def results(player: OpenAIPlayer) -> list[str]:
    return [each["content"] for each in player.requests[-1].body["messages"] if each["role"] == "tool"]


async def test_an_approved_call_runs_and_the_answer_goes_on(kind: type[Page]) -> None:
    async with played([asks(SHIP, content="Shipping."), says("On its way.")], SHIP_FOLDERS) as (client, player):
        page = kind(client)
        asked = await page.ask("Ship order 1")
        (pending,) = page.pending
        await page.decide({pending: True})
    assert "Waiting for approval" not in asked.text
    assert (results(player), page.text) == (["shipped 1"], "On its way.")
    assert page.kinds[1] == page.result  # the page has the call already, in a step that is over


async def test_the_model_sees_the_reason_of_a_rejection(kind: type[Page]) -> None:
    async with played([asks(SHIP), says("Then not.")], SHIP_FOLDERS) as (client, player):
        page = kind(client)
        await page.ask("Ship order 1")
        await page.decide(dict.fromkeys(page.pending, False), reason="too dear")
    assert "too dear" in results(player)[0]
    assert page.text == "Then not."


async def test_each_call_has_a_decision_and_one_alone_leaves_all_pending(kind: type[Page]) -> None:
    calls = asks(SHIP, TIME | {"id": "call_2"}, THIRD)
    async with played([calls, says("Noon.")], SHIP_FOLDERS) as (client, player):
        page = kind(client)
        await page.ask("Ship order 1")
        first, second = page.pending  # the time needs no approval, so it has been told
        refused = await page.decide({first: False})
        assert (refused.status_code, "every call" in refused.text, len(player.requests)) == (400, True, 1)
        await page.decide({second: True})
    assert ["rejected" in each for each in results(player)] == [True, False, False]


async def test_a_decision_counts_once(kind: type[Page]) -> None:
    async with played([asks(SHIP), says("On its way.")], SHIP_FOLDERS) as (client, player):
        page, again = kind(client), kind(client)
        await page.ask("Ship order 1")
        (pending,), again.messages = page.pending, deepcopy(page.messages)
        answers = [await each.decide({pending: True}) for each in (page, again)]
    assert [each.status_code for each in answers] == [200, 404]
    assert "it was decided before: approved at 20" in answers[1].text
    assert len(player.requests) == 2


async def test_a_second_call_with_the_same_id_requires_its_own_approval(kind: type[Page]) -> None:
    async with played([asks(SHIP), asks(SHIP), says("Both."), says("Bye.")], SHIP_FOLDERS) as (client, player):
        page = kind(client)
        await page.ask("Ship order 1")
        first = page.pending
        await page.decide({first[0]: True})
        second = page.pending
        await page.decide({second[0]: True})
        await page.ask("Thanks")
    assert first != second
    assert results(player) == ["shipped 1", "shipped 1"]


@pytest.mark.parametrize("script", [[asks(TIME, ROLLED)], [asks(TIME), asks(ROLLED)]], ids=["one round", "two rounds"])
async def test_a_page_runs_its_tool_and_the_answer_goes_on_with_what_the_service_has_done(
    script: list[Any], kind: type[Page]
) -> None:
    async with played([*script, says("Done.")]) as (client, player):
        page = kind(client, has_tool=True)
        await page.ask("Roll")
        await page.roll()
    assert page.text == "Done."
    offered = {each["function"]["name"]: each["function"] for each in player.requests[0].body["tools"]}
    assert (offered["roll"]["description"], offered["roll"]["parameters"]) == ("Roll a die", SIDES)
    assert "getCityTimeFunction" in offered
    time, rolled = results(player)
    assert (time.startswith("The current time zone is"), rolled) == (True, "4")


async def test_the_pages_tools_are_offered_after_an_approval_as_well(kind: type[Page]) -> None:
    async with played([asks(SHIP), asks(ROLLED), says("Done.")], SHIP_FOLDERS) as (client, player):
        page = kind(client, has_tool=True)
        await page.ask("Ship")
        await page.decide({page.pending[0]: True})
        await page.roll()
    assert (results(player), page.text) == (["shipped 1", "4"], "Done.")


async def test_a_session_remembers_the_turn_once_it_is_complete(kind: type[Page]) -> None:
    async with played([asks(SHIP), says("On its way.")], SHIP_FOLDERS) as (client, _):
        page, turns = kind(client, session="s-1"), []
        await page.ask("Ship order 1")
        turns.append((await client.get("/chat/s-1")).json()["turns"])
        answer = await page.decide({page.pending[0]: True})
        turns.append((await client.get("/chat/s-1")).json()["turns"])
    assert (turns, answer.headers["x-session-id"]) == ([0, 1], "s-1")


@pytest.mark.parametrize("identifier", ["", "x", "x/", "/call_1", "../../x/call_1", "\u0000/\u0000", "字" * 500])
async def test_an_approval_that_was_not_requested_is_rejected(
    identifier: str, kind: type[Page], offline: httpx.AsyncClient
) -> None:
    page = kind(offline)
    part = {"type": "dynamic-tool", "toolName": "ship", "toolCallId": "call_1", "approval": {"id": identifier}}
    page.messages = [page.user("Ship order 1"), {"id": "m-2", "role": "assistant", "content": "?", "parts": [part]}]
    assert (await page.decide({identifier: True})).status_code == 404
