"""Answers that wait for approval: explained in the text, with the id in a header."""

import re

import httpx
import pytest

from tests.players.openai_player import delta, finish, message, sse, whole
from tests.protocols.openai.asking import COMPLETIONS, ROLL, asks, call, chunks_of, completion, played, streamed, user

FOLDERS = "tests.protocols.openai.folders"
SHIP = call("ship", '{"number":1}')
SHIPPING = {"id": "call_1", "name": "ship", "arguments": {"number": 1}}
SHIPPED = whole(message(content="It is on its way."))


async def consent(client: httpx.AsyncClient, identifier: str) -> str:
    decisions = {"decisions": {"call_1": {"approved": True}}}
    answer = await client.post(f"/approvals/{identifier}", json=decisions)
    assert answer.status_code == 200
    return answer.text


@pytest.mark.parametrize("tools", [[], [ROLL]], ids=["no tools", "with tools of the client"])
async def test_the_answer_names_the_pending_call_and_how_to_approve_it(tools: list[object]) -> None:
    async with played([asks(SHIP), SHIPPED], FOLDERS) as (client, _):
        body = {"model": "toolchat-ship", "messages": [user("Ship order 1")], "tools": tools}
        answer = await client.post(COMPLETIONS, json=body)
        document = answer.json()
        identifier = answer.headers["x-approval-id"]
        (choice,) = document["choices"]
        assert choice["finish_reason"] == "stop"
        assert "tool_calls" not in choice["message"]
        page = re.escape(f"{client.base_url}/playground/?approval={identifier}#token=")
        text = choice["message"]["content"]
        assert re.fullmatch(rf"To approve or reject ship within 10 minutes, open {page}[\w-]+", text)
        waiting = (await client.get(f"/approvals/{identifier}")).json()
        described = SHIPPING | {"description": "Ship an order."}
        assert (waiting["id"], waiting["calls"], waiting["question"]) == (identifier, [described], "Ship order 1")
        assert document["approval"]["calls"] == [SHIPPING]
        assert await consent(client, identifier) == "It is on its way."
        assert (await client.get(f"/approvals/{identifier}")).json()["status"] == "decided"


async def test_a_stream_names_it_at_its_end_and_in_its_header_if_nothing_was_sent() -> None:
    script = [sse(delta(tool_calls=[{"index": 0, **SHIP}]), finish("tool_calls")), SHIPPED]
    async with played(script, FOLDERS) as (client, _):
        answer = await streamed(client, user("Ship order 1"), model="toolchat-ship")
        identifier = answer.headers["x-approval-id"]
        words, last, done = chunks_of(answer.text)
        assert identifier in words["choices"][0]["delta"]["content"]
        assert (last["approval"]["id"], done) == (identifier, "[DONE]")
        assert await consent(client, identifier) == "It is on its way."


async def test_a_stream_that_has_started_names_it_after_its_text() -> None:
    first = sse(delta(content="Shipping."), delta(tool_calls=[{"index": 0, **SHIP}]), finish("tool_calls"))
    async with played([first], FOLDERS) as (client, _):
        answer = await streamed(client, user("Ship order 1"), model="toolchat-ship")
    text = "".join(
        each["choices"][0]["delta"].get("content", "") for each in chunks_of(answer.text) if each != "[DONE]"
    )
    assert text.startswith("Shipping.\n\nTo approve or reject ship within 10 minutes, open http")


async def test_nothing_is_pending_beside_a_call_of_the_clients_tool() -> None:
    # The model learns that the call did not run, and can repeat it once the client's result has arrived.
    async with played([asks(SHIP, call("roll", identifier="call_2")), asks(SHIP)], FOLDERS) as (client, player):
        first = (await completion(client, model="toolchat-ship", tools=[ROLL]))["choices"][0]["message"]
        (rolled,) = first["tool_calls"]
        told = (user("?"), first, {"role": "tool", "tool_call_id": rolled["id"], "content": "4"})
        second = await completion(client, *told, model="toolchat-ship", tools=[ROLL])
    assert "not run" in player.requests[1].body["messages"][-2]["content"]
    assert second["approval"]["calls"][0]["name"] == "ship"
