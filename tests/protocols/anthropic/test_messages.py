"""Messages of Anthropic's API: what the model is sent, and what the client gets."""

from typing import Any

import pytest

from tests.players.openai_player import whole
from tests.protocols.anthropic.asking import ROLL, image, message, result, said, sent, text, user
from tests.protocols.openai.asking import asks, call, played, says

TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}', "call_time")
ROLLED = call("roll", '{"sides":6}', "call_roll")
FOLDERS = "tests.protocols.openai.folders"
TOKENS = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}}


async def test_an_answer_is_a_message_with_its_text() -> None:
    async with played([says("Hello.", usage=TOKENS)]) as (client, player):
        document = await message(client, user("Hi"), model="claude-opus-4-8", system="Be brief.", temperature=0.5)
    assert document.pop("id").startswith("msg_")
    assert document == {
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-8",
        "content": [text("Hello.")],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 2,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 5,
            "output_tokens": 3,
        },
    }
    told = player.requests[0].body
    assert told["messages"][0]["content"].endswith("Be brief.")
    assert (told["messages"][1:], told["max_tokens"], told["temperature"]) == ([user("Hi")], 64, 0.5)
    assert "getCityTimeFunction" in {each["function"]["name"] for each in told["tools"]}


async def test_calls_of_both_sides_are_shown_and_the_clients_view_leads_to_the_whole_turn() -> None:
    async with played([asks(TIME, ROLLED, content="Rolling."), says("Done.")]) as (client, player):
        first = await message(client, user("Roll"), tools=[ROLL])
        used, known, spoken, rolled = first["content"]
        own = said(spoken, rolled)  # what a client without these blocks keeps
        last = await message(client, user("Roll"), own, user(result(rolled["id"]), text("Go on")), tools=[ROLL])
    assert first["stop_reason"] == "tool_use"
    assert used == {
        "type": "mcp_tool_use",
        "id": "call_time",
        "name": "getCityTimeFunction",
        "server_name": "toolchat",
        "input": {"timeZoneId": "Asia/Shanghai"},
    }
    assert (known["type"], known["tool_use_id"], known["is_error"]) == ("mcp_tool_result", "call_time", False)
    assert (spoken, rolled["name"], rolled["input"]) == (text("Rolling."), "roll", {"sides": 6})
    assert last["content"] == [text("Done.")]
    assistant, *results, note = player.requests[1].body["messages"][2:]
    assert [each["function"]["name"] for each in assistant["tool_calls"]] == ["getCityTimeFunction", "roll"]
    assert [each["content"] for each in results] == [known["content"][0]["text"], "4"]
    assert note == user("Go on")


async def test_blocks_of_earlier_turns_are_read_and_those_of_other_models_dropped() -> None:
    turn = said(
        {"type": "thinking", "thinking": "Hm", "signature": "s"},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        text("One moment."),
        {"type": "mcp_tool_use", "id": "m", "name": "clock", "server_name": "toolchat", "input": {"a": 1}},
        {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": False, "content": [text("noon")]},
        {"type": "tool_use", "id": "a", "name": "roll", "input": {}},
        {"type": "tool_use", "id": "b", "name": "roll", "input": {}},
    )
    failed = result("b", [text("no"), text("die")], is_error=True)
    async with played([says("Done.")]) as (client, player):
        await message(client, user("Roll"), turn, user(failed, result("a")), tools=[ROLL])
    told = [
        (each["role"], each["content"], len(each.get("tool_calls", ())))
        for each in player.requests[0].body["messages"][1:]
    ]
    assert told == [
        ("user", "Roll", 0),
        ("assistant", "One moment.", 1),
        ("tool", "noon", 0),
        ("assistant", "", 2),
        ("tool", "4", 0),
        ("tool", "Error: no\ndie", 0),
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [(None, "{}"), ("", "{}"), ("git status", '{"input":"git status"}'), ({"sides": 6}, '{"sides":6}')],
)
async def test_input_of_an_earlier_call_that_is_no_object_does_not_end_the_session(given: object, told: str) -> None:
    called = said({"type": "tool_use", "id": "a", "name": "roll", "input": given})
    async with played([says("ok")]) as (client, player):
        await message(client, user("Roll"), called, user(result("a")), tools=[ROLL])
    assert player.requests[0].body["messages"][2]["tool_calls"][0]["function"]["arguments"] == told


async def test_keywords_of_a_schema_that_are_null_are_left_out() -> None:
    schema = {"type": "object", "properties": {"sides": {"default": None}}}
    async with played([says("ok")]) as (client, player):
        await message(client, tools=[ROLL | {"input_schema": schema | {"required": None}}], model="toolchat-plain")
    assert player.requests[0].body["tools"][0]["function"]["parameters"] == schema


async def test_images_and_documents_of_text_reach_the_model() -> None:
    page = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Some text"}}
    shown = user(text("See"), image(), image(type="url", url="https://a.example/b.png"), page)
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}}
    seen = said({"type": "tool_use", "id": "a", "name": "roll", "input": {}})
    async with played([says("Ah.")] * 2, OPENAI_IMAGES="true") as (client, player):
        await message(client, shown)
        await message(client, user("Look"), seen, user(result("a", [image(), pdf])), tools=[ROLL])
    first, last = (each.body["messages"][1:] for each in player.requests)
    words, *pictures = first[0]["content"]
    assert words == text("See\nSome text")
    assert [each["image_url"]["url"] for each in pictures] == ["data:image/png;base64,AA==", "https://a.example/b.png"]
    assert "[document left out" in str(last[2:])
    assert "data:image/png;base64,AA==" in str(last[2:])


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ({"type": "auto"}, (None, None)),
        ({"type": "any", "disable_parallel_tool_use": True}, ("required", False)),
        ({"type": "tool", "name": "roll"}, ({"type": "function", "function": {"name": "roll"}}, None)),
    ],
)
async def test_a_choice_of_tools_is_passed_on(choice: dict[str, Any], told: tuple[object, object]) -> None:
    async with played([asks(ROLLED)]) as (client, player):
        await message(client, tools=[ROLL], tool_choice=choice, stop_sequences=["."])
    body = player.requests[0].body
    assert (body.get("tool_choice"), body.get("parallel_tool_calls")) == told
    assert body["stop"] == ["."]


async def test_the_choice_none_offers_no_tools() -> None:
    async with played([says("Hi")]) as (client, player):
        await message(client, tools=[ROLL], tool_choice={"type": "none"})
    assert "tools" not in player.requests[0].body


async def test_tools_that_anthropic_runs_are_left_out_beside_the_clients_own() -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
    async with played([says("Hi")]) as (client, player):
        await message(client, tools=[search, {**ROLL, "type": "custom"}], model="toolchat-plain")
        alone = await sent(client, tools=[search])
    assert [each["function"]["name"] for each in player.requests[0].body["tools"]] == ["roll"]
    assert alone.status_code == 400


async def test_a_name_too_long_for_providers_comes_back_as_the_client_wrote_it() -> None:
    name = "mcp__server__" + "a" * 80
    async with played(lambda request: asks(call(request.body["tools"][0]["function"]["name"]))) as (client, player):
        document = await message(client, tools=[{**ROLL, "name": name}], model="toolchat-plain")
    assert document["content"][0]["name"] == name
    assert len(player.requests[0].body["tools"][0]["function"]["name"]) == 64


@pytest.mark.parametrize(
    ("reason", "told"), [("length", "max_tokens"), ("content_filter", "refusal"), ("stop", "end_turn")]
)
async def test_a_cut_answer_says_why(reason: str, told: str) -> None:
    cut = {"choices": [{"message": {"content": "He"}, "finish_reason": reason}]}
    async with played([whole(cut)]) as (client, _):
        assert (await message(client))["stop_reason"] == told


async def test_a_pending_approval_ends_the_turn_with_its_link() -> None:
    # Not pause_turn: clients send a paused turn again at once.
    async with played([asks(call("ship", '{"number":1}'))], FOLDERS) as (client, _):
        document = await message(client, user("Ship"), model="toolchat-ship")
    assert document["stop_reason"] == "end_turn"
    assert document["content"][-1]["text"].startswith("To approve or reject ship within 10 minutes, open http")
    assert "/playground/?approval=" in document["content"][-1]["text"]
    assert "#token=" in document["content"][-1]["text"]
    assert document["approval"]["calls"][0]["name"] == "ship"


async def test_a_count_of_tokens_includes_the_tools_and_asks_no_model() -> None:
    async with played([]) as (client, player):
        counts = []
        for fields in ({"tools": [ROLL]}, {}):
            body = {"model": "toolchat-plain", "messages": [user("字" * 100)], **fields}
            answer = await client.post("/v1/messages/count_tokens", json=body)
            counts.append(answer.json()["input_tokens"])
        faulty = await client.post("/v1/messages/count_tokens", json={"model": "toolchat"})
    assert counts[0] > counts[1] >= 100
    assert (player.requests, faulty.status_code) == ([], 400)


async def test_a_schema_of_the_output_is_passed_on() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    async with played([says("{}")]) as (client, player):
        await message(client, output_config={"effort": "high", "format": {"type": "json_schema", "schema": schema}})
    assert player.requests[0].body["response_format"]["json_schema"]["schema"] == schema


async def test_a_session_remembers_the_conversation() -> None:
    async with played([says("Hello."), says("Again.")]) as (client, player):
        client.headers["X-Session-ID"] = "s-1"
        await message(client, user("Hi"))
        await message(client, user("More"))
    assert [each["content"] for each in player.requests[1].body["messages"][1:]] == ["Hi", "Hello.", "More"]
