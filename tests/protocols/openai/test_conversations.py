"""Conversations: sent by the client, or remembered by the service under a session."""

from typing import Any

import httpx
import pytest

from tests.players.openai_player import OpenAIPlayer, message, sensible_model, whole
from tests.protocols.openai.asking import COMPLETIONS, ROLL, asks, call, completion, error_of, played, result, user

SYSTEM = "Answer in the language of the question."


def says(*texts: str) -> list[Any]:
    return [whole(message(content=text)) for text in texts]


def given(player: OpenAIPlayer, number: int = -1) -> list[tuple[str, str]]:
    """The messages that the model received, without the service's own instructions."""
    messages = player.requests[number].body["messages"]
    return [(each["role"], each["content"].split("\n\n", 1)[-1]) for each in messages if each["content"] != SYSTEM]


async def test_messages_reach_the_model_unchanged() -> None:
    sent = [user("1+1?"), {"role": "assistant", "content": "2"}, user("and 1?")]
    async with played(says("3"), SYSTEM_PROMPT=SYSTEM) as (client, player):
        await completion(client, *sent, model="toolchat-plain")
    assert given(player) == [("user", "1+1?"), ("assistant", "2"), ("user", "and 1?")]


@pytest.mark.parametrize("role", ["system", "developer"])
async def test_the_clients_instructions_are_appended_to_the_services(role: str) -> None:
    sent = [{"role": role, "content": "Be brief."}, {"role": "system", "content": "Be kind."}, user("?")]
    async with played(says("ok"), SYSTEM_PROMPT=SYSTEM) as (client, player):
        await completion(client, *sent, {"role": "system", "content": "Now!"}, model="toolchat-plain")
    assert player.requests[0].body["messages"] == [
        {"role": "system", "content": f"{SYSTEM}\n\nBe brief.\n\nBe kind."},
        {"role": "user", "content": "?"},
        {"role": "system", "content": "Now!"},
    ]


def pictured(url: str = "data:image/png;base64,AA==", kind: str = "image_url") -> dict[str, Any]:
    return {"type": kind, "image_url": {"url": url}}


LEFT_OUT = "left out: send text, or png, jpeg, gif and webp images by URL]"


@pytest.mark.parametrize("takes_images", [True, False])
async def test_images_go_to_models_that_take_them_and_others_get_a_note(takes_images: bool) -> None:
    large = pictured("data:image/png;base64," + "A" * 4_000_000)
    first = {"role": "user", "content": [{"type": "text", "text": "?"}, large]}
    last = {"role": "user", "content": [pictured("https://a.example/b.gif"), pictured()]}
    async with played(says("ok"), SYSTEM_PROMPT=SYSTEM, OPENAI_IMAGES=str(takes_images)) as (client, player):
        await completion(client, first, {"role": "assistant", "content": "Red."}, last, model="toolchat-plain")
    if takes_images:
        assert player.requests[0].body["messages"][1::2] == [first, last]
    else:
        assert given(player)[::2] == [("user", "?\n[image left out]"), ("user", "[2 images left out]")]


@pytest.mark.parametrize("takes_images", [True, False])
async def test_an_image_in_a_result_follows_it_as_the_users(takes_images: bool) -> None:
    called = {"role": "assistant", "content": None, "tool_calls": [call("roll")]}
    drawn = {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "a"}, pictured()]}
    async with played(says("ok"), OPENAI_IMAGES=str(takes_images)) as (client, player):
        await completion(client, user("?"), called, drawn, tools=[ROLL], model="toolchat-plain")
    *_, result, shown = player.requests[0].body["messages"]
    if takes_images:
        assert (result["content"], shown["content"][1]) == ("a", pictured())
    else:
        assert shown["content"] == "a\n[image left out]"


@pytest.mark.parametrize(
    "part",
    [pictured("x"), pictured("data:image/svg+xml;base64,AA=="), pictured("file:///etc/passwd"), {"type": "file"}],
)
async def test_a_note_replaces_what_is_no_image_in_an_earlier_message(part: dict[str, Any]) -> None:
    async with played(says("ok"), SYSTEM_PROMPT=SYSTEM, OPENAI_IMAGES="true") as (client, player):
        await completion(client, {"role": "user", "content": [part]}, user("and?"), model="toolchat-plain")
    assert given(player) == [("user", f"[{part['type']} {LEFT_OUT}"), ("user", "and?")]


SVG = pictured("data:image/svg+xml;base64,AA==")
DRAWN = [{"role": "assistant", "content": None, "tool_calls": [call("roll")]}, result("call_1", "4")]


@pytest.mark.parametrize(
    ("earlier", "parts", "text"),
    [
        ([], [{"type": "text", "text": "?"}, SVG], f"?\n[image_url {LEFT_OUT}"),
        # As Cline and Roo send the screenshot of a tool, with every later request as well.
        ([user("?"), *DRAWN], [SVG], f"[image_url {LEFT_OUT}"),
        ([user("?"), *DRAWN], [{"type": "file"}], f"[file {LEFT_OUT}"),
    ],
)
async def test_a_note_replaces_a_picture_of_a_question_that_has_text_or_follows_a_result(
    earlier: list[dict[str, Any]], parts: list[dict[str, Any]], text: str
) -> None:
    async with played(says("ok"), OPENAI_IMAGES="true") as (client, player):
        await completion(client, *earlier, {"role": "user", "content": parts}, tools=[ROLL], model="toolchat-plain")
    assert player.requests[0].body["messages"][-1] == user(text)


async def test_a_session_keeps_a_note_in_place_of_an_image() -> None:
    asked = {"role": "user", "content": [{"type": "text", "text": "?"}, pictured()]}
    async with played([*says("Red."), *says("ok")], OPENAI_IMAGES="true", SYSTEM_PROMPT=SYSTEM) as (client, player):
        for message in (asked, user("and?")):
            body = {"model": "toolchat-plain", "messages": [message]}
            await client.post("/v1/chat/completions", json=body, headers={"X-Session-ID": "images-1"})
    assert player.requests[0].body["messages"][-1] == asked
    assert given(player) == [("user", "?\n[image left out]"), ("assistant", "Red."), ("user", "and?")]


async def test_parts_of_text_become_one_text_in_every_role() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    answer = {"role": "assistant", "content": [*parts, {"type": "refusal", "refusal": "no"}]}
    async with played(says("ok"), SYSTEM_PROMPT=SYSTEM) as (client, player):
        await completion(client, {"role": "user", "content": parts}, answer, user("?"), model="toolchat-plain")
    assert given(player) == [("user", "a\nb"), ("assistant", "a\nb\nno"), ("user", "?")]


async def test_results_of_one_message_reach_the_model_in_the_order_of_the_calls() -> None:
    called = {"role": "assistant", "content": None, "tool_calls": [call("roll", identifier=n) for n in ("a", "b")]}
    sent = [user("?"), called, result("b", "2"), result("a", "1")]
    async with played(says("ok")) as (client, player):
        await completion(client, *sent, tools=[ROLL], model="toolchat-plain")
    last = player.requests[0].body["messages"][-2:]
    assert [(each["tool_call_id"], each["content"]) for each in last] == [("a", "1"), ("b", "2")]


async def test_without_a_session_nothing_is_remembered() -> None:
    async with played(says("one", "two")) as (client, player):
        await completion(client, user("first"))
        await completion(client, user("second"))
    assert ("user", "first") not in given(player)


async def test_a_session_is_remembered_with_all_messages_or_the_last_one() -> None:
    named = {"X-Session-ID": "s-1"}
    async with played(says("one", "two", "three")) as (client, player):
        first = await client.post(COMPLETIONS, json={"model": "toolchat", "messages": [user("first")]}, headers=named)
        await completion(client, user("second"), headers=named)
        whole_of_it = [user("first"), {"role": "assistant", "content": "one"}, user("third")]
        await completion(client, {"role": "system", "content": "Be brief."}, *whole_of_it, headers=named)
        kept = (await client.get("/chat/s-1")).json()
    assert first.headers["x-session-id"] == "s-1"
    turns = [("user", "first"), ("assistant", "one"), ("user", "second"), ("assistant", "two"), ("user", "third")]
    assert given(player) == [("system", "Be brief."), *turns]
    assert kept["turns"] == 3


async def test_a_turn_with_the_clients_calls_is_remembered_once_complete() -> None:
    named, asked = {"X-Session-ID": "s-1"}, user("Roll")
    async with played([asks(call("roll")), *says("You rolled 4.", "ok")]) as (client, player):
        first = await completion(client, asked, tools=[ROLL], headers=named)
        assert (await client.get("/chat/s-1")).status_code == 404
        answered = (first["choices"][0]["message"], result("call_1", "4"))
        await completion(client, asked, *answered, tools=[ROLL], headers=named)
        await completion(client, user("And?"), headers=named)
    assert given(player)[-3:] == [("user", "Roll"), ("assistant", "You rolled 4."), ("user", "And?")]


@pytest.mark.parametrize("given", [["a b"], ["a", "b"], ["a", "a"]], ids=str)
async def test_an_invalid_session_id_is_rejected(given: list[str], offline: httpx.AsyncClient) -> None:
    body = {"model": "toolchat", "messages": [user("?")]}
    answer = await offline.post(COMPLETIONS, json=body, headers=[("X-Session-ID", each) for each in given])
    assert error_of(answer)[:2] == (400, "validation")
    assert answer.json()["error"]["message"].startswith("X-Session-ID: ")


async def test_a_tool_with_state_works_without_a_session_and_shows_no_id_of_one() -> None:
    script = sensible_model({"items": [{"id": "1", "text": "a", "status": "pending"}]})
    async with played(script) as (client, _):
        answer = await client.post(COMPLETIONS, json={"model": "toolchat-todo", "messages": [user("Plan")]})
    assert "#1: a" in answer.json()["choices"][0]["message"]["content"]
    assert "x-session-id" not in answer.headers


async def test_a_stored_response_keeps_the_address_of_an_image_but_not_its_bytes() -> None:
    urls = ["data:image/png;base64,AA==", "https://a.example/b.png"]
    sent = [{"role": "user", "content": [{"type": "input_image", "image_url": each} for each in urls]}]
    async with played([*says("Red."), *says("ok")], OPENAI_IMAGES="true") as (client, player):
        first = (await client.post("/v1/responses", json={"model": "toolchat", "input": sent})).json()
        later = {"model": "toolchat", "input": "and?", "previous_response_id": first["id"]}
        await client.post("/v1/responses", json=later)
    asked, again = [each.body["messages"][1]["content"] for each in player.requests]
    assert [each["image_url"]["url"] for each in asked] == urls
    assert [each["type"] for each in again] == ["text", "image_url"]
    assert again[0]["text"].startswith("[input_image left out")
