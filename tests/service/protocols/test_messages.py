"""Conversations in the forms in which clients and other providers write them, as the model receives them."""

from typing import Any

import pytest

from tests.players.openai_player import OpenAIPlayer
from tests.service.protocols.openai.asking import (
    ROLL,
    ask,
    asks,
    call,
    completion,
    output_of,
    played,
    result,
    says,
    user,
)

FUNCTION = {"type": "function", "name": "roll", "parameters": {"type": "object", "properties": {}}}
ASKED, AGAIN = user("?"), user("And now?")
Messages = list[dict[str, Any]]


def given(player: OpenAIPlayer, number: int = -1) -> Messages:
    """The messages that the model received, without instructions."""
    return [each for each in player.requests[number].body["messages"] if each["role"] != "system"]


def said(text: str | None = None, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": text} | ({"tool_calls": list(calls)} if calls else {})


def item(call_id: str, name: str = "roll", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}", **fields}


A, B = call("roll", identifier="a"), call("roll", identifier="b")
ANSWERED = [ASKED, said("", A), result("a", "4")]
THOUGHT = {"role": "assistant", "content": [{"type": "thinking", "thinking": "?"}, {"type": "text", "text": "4"}]}
OF_OTHERS: Messages = [
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "?"}]},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
    {"type": "file_search_call", "id": "fs_1", "queries": ["?"], "results": None},
    {"type": "computer_call", "call_id": "c", "action": {"type": "screenshot"}},
    {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}},
    {"type": "tool_search_output", "call_id": "t", "tools": [], "execution": "client"},
    {"type": "compaction", "encrypted_content": "AAAA"},
    {"type": "of_tomorrow", "name": 1, "content": {"a": {}}, "id": 5},
]
"""Items of other providers."""
PATCH = {"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": "x"}
PATCHED = {"type": "custom_tool_call_output", "call_id": "a", "output": "4"}
# In OpenAI's documentation the output's id is the call's; Codex answered with a function_call_output.
SHELL = {"type": "local_shell_call", "id": "lsh_1", "call_id": "a", "action": {"command": ["ls"]}}
LISTED = {"type": "local_shell_call_output", "id": "a", "call_id": None, "output": "4"}

ON_RESPONSES: dict[str, tuple[Messages, Messages]] = {
    # The AI SDK writes a message of the parts [tool-call, text] in this order.
    "call, text, output": (
        [ASKED, item("a"), said("One moment."), output_of("a")],
        [ASKED, said("One moment.", A), result("a", "4")],
    ),
    "call, question, output": ([ASKED, item("a"), AGAIN, output_of("a")], [*ANSWERED, AGAIN]),
    "an id that each turn uses": (
        [ASKED, item("a"), output_of("a"), AGAIN, item("a"), output_of("a", "5")],
        [*ANSWERED, AGAIN, said("", A), result("a", "5")],
    ),
    "parallel calls": (
        [ASKED, item("a"), item("b"), output_of("b", "5"), output_of("a")],
        [ASKED, said("", A, B), result("a", "4"), result("b", "5")],
    ),
    "a custom call": (
        [ASKED, PATCH, PATCHED, AGAIN],
        [ASKED, said("", call("patch", '{"input":"x"}', "a")), result("a", "4"), AGAIN],
    ),
    "a shell call": (
        [ASKED, SHELL, LISTED, AGAIN],
        [ASKED, said("", call("local_shell", '{"command":["ls"],"type":"exec"}', "a")), result("a", "4"), AGAIN],
    ),
    "a thought": ([ASKED, THOUGHT, AGAIN], [ASKED, said("4"), AGAIN]),
    "items of other providers": ([ASKED, *OF_OTHERS, said("4."), AGAIN], [ASKED, said("4."), AGAIN]),
}


@pytest.mark.parametrize("name", ON_RESPONSES)
async def test_a_history_of_items_reaches_the_model_as_a_conversation(name: str) -> None:
    items, expected = ON_RESPONSES[name]
    async with played([says("ok"), says("ok")]) as (client, player):
        document = await ask(client, items, tools=[FUNCTION], model="toolchat-plain")
        await ask(client, "More?", previous_response_id=document["id"], model="toolchat-plain")
    assert given(player, 0) == expected
    assert given(player) == [*expected, said("ok"), user("More?")]


TEXTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
ON_COMPLETIONS: dict[str, tuple[Messages, Messages]] = {
    "calls in two messages": (
        [ASKED, said(None, A), said(None, B), result("a", "4"), result("b", "5")],
        [ASKED, said("", A, B), result("a", "4"), result("b", "5")],
    ),
    "results in another order": (
        [ASKED, said(None, A, B), result("b", "5"), result("a", "4")],
        [ASKED, said("", A, B), result("a", "4"), result("b", "5")],
    ),
    "call, text, result": (
        [ASKED, said(None, A), said("One moment."), result("a", "4")],
        [ASKED, said("One moment.", A), result("a", "4")],
    ),
    "call, question, result": ([ASKED, said(None, A), AGAIN, result("a", "4")], [*ANSWERED, AGAIN]),
    "a thought": ([ASKED, THOUGHT, AGAIN], [ASKED, said("4"), AGAIN]),
    "parts of text": (
        [
            {"role": "user", "content": TEXTS},
            {"role": "assistant", "content": [*TEXTS, {"type": "refusal", "refusal": "no"}]},
            AGAIN,
        ],
        [user("a\nb"), said("a\nb\nno"), AGAIN],
    ),
}


@pytest.mark.parametrize("name", ON_COMPLETIONS)
async def test_a_history_of_messages_reaches_the_model_as_a_conversation(name: str) -> None:
    messages, expected = ON_COMPLETIONS[name]
    async with played([says("ok")]) as (client, player):
        await completion(client, *messages, model="toolchat-plain")
    assert given(player) == expected


@pytest.mark.parametrize("role", ["system", "developer"])
async def test_the_clients_instructions_are_appended_to_the_services(role: str) -> None:
    sent = [{"role": role, "content": "Be brief."}, {"role": "system", "content": "Be kind."}, ASKED]
    async with played([says("ok")], SYSTEM_PROMPT="Answer.") as (client, player):
        await completion(client, *sent, {"role": "system", "content": "Now!"}, model="toolchat-plain")
    assert player.requests[0].body["messages"] == [
        {"role": "system", "content": "Answer.\n\nBe brief.\n\nBe kind."},
        ASKED,
        {"role": "system", "content": "Now!"},
    ]


def picture(url: str = "data:image/png;base64,AA==") -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


LEFT_OUT = "left out: send text, or png, jpeg, gif and webp images by URL]"
SVG, TEXT = picture("data:image/svg+xml;base64,AA=="), {"type": "text", "text": "?"}
DRAWN = [said(None, call("roll")), result("call_1", "4")]


def shown(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


@pytest.mark.parametrize("takes_images", [True, False])
async def test_images_go_to_models_that_take_them_and_others_get_a_note(takes_images: bool) -> None:
    first = shown(TEXT, picture("data:image/png;base64," + "A" * 4_000_000))
    last = shown(picture("https://a.example/b.gif"), picture())
    drawn = {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "a"}, picture()]}
    variables = {"OPENAI_IMAGES": str(takes_images)}
    async with played([says("ok")] * 2, **variables) as (client, player):
        await completion(client, first, said("Red."), last, model="toolchat-plain")
        await completion(client, ASKED, DRAWN[0], drawn, tools=[ROLL], model="toolchat-plain")
    if takes_images:
        assert given(player, 0)[::2] == [first, last]
        *_, told, seen = given(player)
        assert (told["content"], seen["content"][1]) == ("a", picture())
    else:
        assert given(player, 0)[::2] == [user("?\n[image left out]"), user("[2 images left out]")]
        assert given(player)[-1]["content"] == "a\n[image left out]"


@pytest.mark.parametrize(
    ("sent", "kind", "place"),
    [
        *(([shown(part), AGAIN], part["type"], 0) for part in (picture("x"), SVG, picture("file:///etc/passwd"))),
        ([shown({"type": "file"}), AGAIN], "file", 0),
        ([shown(TEXT, SVG)], "?\n[image_url", -1),
        # As Cline and Roo send the screenshot of a tool, with every later request as well.
        ([ASKED, *DRAWN, shown(SVG)], "image_url", -1),
        ([ASKED, *DRAWN, shown({"type": "file"})], "file", -1),
    ],
)
async def test_a_note_replaces_what_is_no_image_in_an_earlier_message_beside_text_or_behind_a_result(
    sent: Messages, kind: str, place: int
) -> None:
    async with played([says("ok")], OPENAI_IMAGES="true") as (client, player):
        await completion(client, *sent, tools=[ROLL], model="toolchat-plain")
    assert given(player)[place] == user(f"{'' if '[' in kind else '['}{kind} {LEFT_OUT}")


async def test_a_session_keeps_a_note_in_place_of_an_image() -> None:
    asked, named = shown(TEXT, picture()), {"X-Session-ID": "images-1"}
    async with played([says("Red."), says("ok")], OPENAI_IMAGES="true") as (client, player):
        for message in (asked, AGAIN):
            await completion(client, message, model="toolchat-plain", headers=named)
    assert given(player, 0) == [asked]
    assert given(player) == [user("?\n[image left out]"), said("Red."), AGAIN]


async def test_a_stored_response_keeps_the_address_of_an_image_but_not_its_bytes() -> None:
    urls = ["data:image/png;base64,AA==", "https://a.example/b.png"]
    sent = shown(*({"type": "input_image", "image_url": each} for each in urls))
    async with played([says("Red."), says("ok")], OPENAI_IMAGES="true") as (client, player):
        first = await ask(client, [sent])
        await ask(client, "and?", previous_response_id=first["id"])
    asked, again = [given(player, number)[0]["content"] for number in (0, 1)]
    assert [each["image_url"]["url"] for each in asked] == urls
    assert [each["type"] for each in again] == ["text", "image_url"]
    assert again[0]["text"].startswith("[input_image left out")


async def test_a_session_is_remembered_with_all_messages_or_the_last_one() -> None:
    named = {"X-Session-ID": "s-1"}
    async with played([says(each) for each in ("one", "two", "three")]) as (client, player):
        await completion(client, user("first"), headers=named)
        await completion(client, user("second"), headers=named)
        whole_of_it = [user("first"), said("one"), user("third")]
        await completion(client, {"role": "system", "content": "Be brief."}, *whole_of_it, headers=named)
        kept = (await client.get("/chat/s-1")).json()
    assert given(player) == [user("first"), said("one"), user("second"), said("two"), user("third")]
    assert player.requests[-1].body["messages"][0]["content"].endswith("\n\nBe brief.")
    assert kept["turns"] == 3


async def test_a_turn_with_the_clients_calls_is_remembered_once_complete() -> None:
    named, asked = {"X-Session-ID": "s-1"}, user("Roll")
    async with played([asks(call("roll")), says("You rolled 4."), says("ok")]) as (client, player):
        first = await completion(client, asked, tools=[ROLL], headers=named)
        assert (await client.get("/chat/s-1")).status_code == 404
        answered = (first["choices"][0]["message"], result("call_1", "4"))
        await completion(client, asked, *answered, tools=[ROLL], headers=named)
        await completion(client, user("And?"), headers=named)
    assert given(player)[-3:] == [user("Roll"), said("You rolled 4."), user("And?")]
