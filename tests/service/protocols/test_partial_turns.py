"""Tools of the client: called by the model, run by the client, beside those of the service."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.service.protocols.openai.asking import (
    ROLL,
    asks,
    call,
    chunks_of,
    completion,
    played,
    result,
    says,
    streamed,
    user,
)

TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}', "call_time")
ROLLED = call("roll", '{"sides":6}', "call_roll")
SAYS = says("Done.")
ASKED = user("What time is it, and roll a die")


def said(document: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = document["choices"][0]["message"]
    return message


async def test_a_call_of_the_clients_tool_is_returned_and_its_result_leads_to_the_answer() -> None:
    async with played([asks(ROLLED, content="Rolling."), SAYS]) as (client, player):
        document = await completion(client, ASKED, tools=[ROLL])
        assert len(player.requests) == 1
        answer = await completion(client, ASKED, said(document), result("call_roll", "4"), tools=[ROLL])
    assert document["choices"][0]["finish_reason"] == "tool_calls"
    assert said(document) == {"role": "assistant", "content": "Rolling.", "refusal": None, "tool_calls": [ROLLED]}
    offered = {each["function"]["name"] for each in player.requests[0].body["tools"]}
    assert {"roll", "getCityTimeFunction"} <= offered
    assert said(answer)["content"] == "Done."
    assert player.requests[1].body["messages"][-2:] == [
        {"role": "assistant", "content": "Rolling.", "tool_calls": [ROLLED]},
        {"role": "tool", "tool_call_id": "call_roll", "content": "4"},
    ]


async def test_a_stream_ends_with_complete_calls() -> None:
    async with played([asks(ROLLED, call("roll", "", "call_2"))]) as (client, _):
        answer = await streamed(client, ASKED, tools=[ROLL])
    called, last, done = chunks_of(answer.text)
    assert called["choices"][0]["delta"]["role"] == "assistant"
    assert called["choices"][0]["delta"]["tool_calls"] == [
        {"index": 0, **ROLLED},
        {"index": 1, **call("roll", "{}", "call_2")},
    ]
    assert (last["choices"][0]["finish_reason"], done) == ("tool_calls", "[DONE]")


def names_of(message: dict[str, Any]) -> list[str]:
    return [each["function"]["name"] for each in message.get("tool_calls", ())]


async def go_on(client: httpx.AsyncClient, first: dict[str, Any]) -> dict[str, Any]:
    """The client's next request: its own call and its result, and nothing else."""
    (called,) = first["tool_calls"]
    return await completion(client, ASKED, first, result(called["id"], "4"), tools=[ROLL])


@pytest.mark.parametrize("order", [(TIME, ROLLED), (ROLLED, TIME)], ids=["ours first", "theirs first"])
async def test_calls_of_the_service_run_first_and_are_saved_for_the_next_request(
    order: tuple[dict[str, Any], ...],
) -> None:
    async with played([asks(*order), SAYS]) as (client, player):
        first = said(await completion(client, ASKED, tools=[ROLL]))
        assert (first["content"], names_of(first)) == (None, ["roll"])
        await go_on(client, first)
    assistant, *results = player.requests[1].body["messages"][-3:]
    assert names_of(assistant) == [each["function"]["name"] for each in order]
    assert [each["tool_call_id"] for each in results] == [each["id"] for each in assistant["tool_calls"]]
    texts = {each["tool_call_id"]: each["content"] for each in results}
    assert texts.pop("call_time").startswith("The current time zone is ")
    assert list(texts.values()) == ["4"]


async def test_the_saved_turn_grows_with_every_request() -> None:
    async with played([asks(TIME, ROLLED), asks(TIME), asks(ROLLED), SAYS]) as (client, player):
        first = said(await completion(client, ASKED, tools=[ROLL]))
        second = said(await go_on(client, first))
        told = (first, result(first["tool_calls"][0]["id"], "4"), second, result(second["tool_calls"][0]["id"], "5"))
        await completion(client, ASKED, *told, tools=[ROLL])
    names = [name for each in player.requests[3].body["messages"] for name in names_of(each)]
    assert names == ["getCityTimeFunction", "roll", "getCityTimeFunction", "roll"]


def returned(first: dict[str, Any]) -> list[dict[str, Any]]:
    """What most clients send back: the message as it came, then the results in order."""
    return [first, *(result(each["id"], each["id"][-2:]) for each in first["tool_calls"])]


def split(first: dict[str, Any]) -> list[dict[str, Any]]:
    """A message of its own for each call."""
    return [each for called in first["tool_calls"] for each in returned({**first, "tool_calls": [called]})]


def reordered(first: dict[str, Any]) -> list[dict[str, Any]]:
    message, *results = returned(first)
    return [{**message, "tool_calls": message["tool_calls"][::-1]}, *results]


def shortened(first: dict[str, Any]) -> list[dict[str, Any]]:
    return returned({**first, "tool_calls": first["tool_calls"][1:]})


LATER: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [
    ([], {}),
    ([], {"tool_choice": "none"}),
    ([user("Go on")], {}),
    ([{"role": "assistant", "content": "4."}, user("And now?")], {"tools": [ROLL]}),
]
"""What follows the results, and fields: without tools, with no choice, with a note, and in a later turn."""


@pytest.mark.parametrize(("view", "rolls"), [(returned, 2), (split, 2), (reordered, 2), (shortened, 1)])
async def test_a_saved_turn_is_restored_however_its_calls_come_back(
    view: Callable[[dict[str, Any]], list[dict[str, Any]]], rolls: int
) -> None:
    earlier = [{"role": "system", "content": "Be brief."}, user("Hello"), {"role": "assistant", "content": "Hello."}]
    script = [asks(TIME), asks(TIME, ROLLED, ROLLED | {"id": "call_again"}), SAYS]
    async with played(script * len(LATER)) as (client, player):
        for later, fields in LATER:
            first = said(await completion(client, *earlier, ASKED, tools=[ROLL]))
            await completion(client, *earlier, ASKED, *view(first), *later, **fields)
            messages = player.requests[-1].body["messages"]
            texts = [(each["role"], each["content"]) for each in messages]
            assert texts[1:4] == [("user", "Hello"), ("assistant", "Hello."), ("user", ASKED["content"])]
            assert texts[0][1].endswith("Be brief.")
            noted = [each["content"] for each in messages[len(messages) - len(later) :]]
            assert noted == [each["content"] for each in later]
            _, found, last, *results = messages[4 : len(messages) - len(later)]
            assert found["content"].startswith("The current time zone is ")
            assert names_of(last) == ["getCityTimeFunction", *["roll"] * rolls]
            assert [each["tool_call_id"] for each in results] == [each["id"] for each in last["tool_calls"]]


async def test_provider_data_of_a_call_is_returned_to_the_provider() -> None:
    signed = ROLLED | {"extra_content": {"google": {"thought_signature": "s"}}}
    async with played([asks(signed), SAYS]) as (client, player):
        first = said(await completion(client, ASKED, tools=[ROLL]))
        assert "extra_content" not in first["tool_calls"][0]
        await go_on(client, first)
    assert player.requests[1].body["messages"][-2]["tool_calls"][0]["extra_content"] == signed["extra_content"]


async def test_a_lost_turn_is_left_out_and_nothing_runs_again() -> None:
    async with played([asks(TIME, ROLLED), SAYS]) as (client, player):
        first = said(await completion(client, ASKED, tools=[ROLL]))
        first["tool_calls"][0]["id"] = f"call_kept_{'0' * 24}"
        answer = await go_on(client, first)
    assert said(answer)["content"] == "Done."
    (called,) = player.requests[1].body["messages"][-2]["tool_calls"]
    assert called["function"]["name"] == "roll"
    assert len(player.requests) == 2


async def test_a_clients_tool_replaces_the_services_tool_of_its_name() -> None:
    own = {"type": "function", "function": {"name": "getCityTimeFunction", "parameters": {"type": "object"}}}
    async with played([asks(TIME)]) as (client, player):
        document = await completion(client, ASKED, tools=[own])
    assert said(document)["tool_calls"] == [TIME]
    sent = {each["function"]["name"]: each["function"] for each in player.requests[0].body["tools"]}
    assert sent["getCityTimeFunction"]["description"] == "getCityTimeFunction"


@pytest.mark.parametrize(
    ("choice", "offered", "sent"),
    [("none", [], None), ({"type": "function", "function": {"name": "roll"}}, ["roll"], "roll")],
)
async def test_tool_choice_applies_to_the_clients_tools(choice: object, offered: list[str], sent: str | None) -> None:
    async with played([SAYS]) as (client, player):
        await completion(client, ASKED, tools=[ROLL], tool_choice=choice, model="toolchat-plain")
    body = player.requests[0].body
    assert [each["function"]["name"] for each in body.get("tools", ())] == offered
    assert body.get("tool_choice", {}).get("function", {}).get("name") == sent


async def test_required_applies_until_the_clients_tool_is_called() -> None:
    async with played([asks(TIME), asks(ROLLED)]) as (client, player):
        document = await completion(client, ASKED, tools=[ROLL], tool_choice="required")
    assert document["choices"][0]["finish_reason"] == "tool_calls"
    assert [each.body["tool_choice"] for each in player.requests] == ["required", "required"]
