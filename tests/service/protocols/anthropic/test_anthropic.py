"""Anthropic's wire, and the recorded requests of Claude Code.

The format is that of the official client, anthropic 2.14.0 for Python: ``types/message.py``, ``types/stop_reason.py``,
``types/raw_message_stream_event.py`` and ``types/beta/beta_mcp_tool_use_block.py``.
"""

from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic_core import from_json

from tests.players.openai_player import chunk, delta, finish, sse, whole
from tests.service.protocols.openai.asking import asks, call, played, says
from tests.serving import service
from toolchat.service.access.keys import digest_of

MESSAGES = "/v1/messages"
ROLL = {
    "name": "roll",
    "description": "Roll a die",
    "input_schema": {"type": "object", "properties": {"sides": {"type": "integer"}}},
}
"""A tool of the client."""
TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}', "call_time")
ROLLED = call("roll", '{"sides":6}', "call_roll")
FOLDERS = "tests.service.protocols.openai.folders"
TOKENS = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}}
USAGE = chunk(usage={"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10})
HELLO = sse(delta(content="Hel"), delta(content="lo"), delta(content="."), finish("stop"), USAGE)
KEYS = {"API_KEYS": f"agent={digest_of('key')}"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def user(*content: Any) -> dict[str, Any]:
    """A message of the user: one text, or blocks."""
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def said(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def used(identifier: str, given: object = None, name: str = "roll") -> dict[str, Any]:
    return {"type": "tool_use", "id": identifier, "name": name, "input": given}


def result(identifier: str, content: Any = "4", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identifier, "content": content, **fields}


def image(**source: str) -> dict[str, Any]:
    return {"type": "image", "source": source or {"type": "base64", "media_type": "image/png", "data": "AA=="}}


async def sent(client: httpx.AsyncClient, *messages: dict[str, Any], **fields: Any) -> httpx.Response:
    body = {"model": "toolchat", "max_tokens": 64, "messages": messages or [user("?")], **fields}
    return await client.post(MESSAGES, json=body)


async def message(client: httpx.AsyncClient, *messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Request a message; it must succeed."""
    answer = await sent(client, *messages, **fields)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def events(client: httpx.AsyncClient, *messages: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    """The events of a streamed message."""
    return events_of((await sent(client, *messages, stream=True, **fields)).text)


def events_of(streamed: str) -> list[dict[str, Any]]:
    """The events of a stream, each named like its type."""
    pairs = [each.split("\n") for each in streamed.split("\n\n") if each]
    events: list[dict[str, Any]] = [from_json(data.removeprefix("data: ")) for _, data in pairs]
    assert [name.removeprefix("event: ") for name, _ in pairs] == [each["type"] for each in events]
    return events


def blocks_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each["content_block"] for each in events if each["type"] == "content_block_start"]


def error_of(answer: httpx.Response) -> tuple[int, str, str]:
    """Status, type and message of an error in Anthropic's format."""
    document = answer.json()
    assert (list(document), document["type"]) == (["type", "error", "request_id"], "error")
    assert document["request_id"] == answer.headers["request-id"] == answer.headers["x-request-id"]
    assert list(document["error"]) == ["type", "message"]
    return answer.status_code, document["error"]["type"], document["error"]["message"]


def usage(given: int, written: int, cached: int = 0) -> dict[str, int]:
    cache = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": cached}
    return {"input_tokens": given, **cache, "output_tokens": written}


async def test_an_answer_is_a_message_with_its_text() -> None:
    async with played([says("Hello.", usage=TOKENS)]) as (client, player):
        document = await message(client, user("Hi"), model="claude-opus-4-8", temperature=0.5, stop_sequences=["."])
    assert document.pop("id").startswith("msg_")
    assert document == {
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-8",
        "content": [text("Hello.")],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage(2, 3, cached=5),
    }
    told = player.requests[0].body
    assert (told["max_tokens"], told["temperature"], told["stop"]) == (64, 0.5, ["."])


async def test_calls_of_both_sides_are_shown_and_the_clients_view_leads_to_the_whole_turn() -> None:
    async with played([asks(TIME, ROLLED, content="Rolling."), says("Done.")]) as (client, player):
        first = await message(client, user("Roll"), tools=[ROLL])
        called, known, spoken, rolled = first["content"]
        own = said(spoken, rolled)  # what a client without these blocks keeps
        last = await message(client, user("Roll"), own, user(result(rolled["id"]), text("Go on")), tools=[ROLL])
    assert first["stop_reason"] == "tool_use"
    assert called == {
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
        {"type": "redacted_thinking", "data": "AA=="},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        text("One moment."),
        {"type": "mcp_tool_use", "id": "m", "name": "clock", "server_name": "toolchat", "input": {"a": 1}},
        {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": False, "content": [text("noon")]},
        *(used("a", {}), used("b", {})),
    )
    failed = result("b", [text("no"), text("die")], is_error=True)
    async with played([says("Done.")]) as (client, player):
        await message(client, user("Roll"), turn, user(failed, result("a")), tools=[ROLL])
    told = player.requests[0].body["messages"][1:]
    assert [(each["role"], each["content"], len(each.get("tool_calls", ()))) for each in told] == [
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
    async with played([says("ok")]) as (client, player):
        await message(client, user("Roll"), said(used("a", given)), user(result("a")), tools=[ROLL])
    assert player.requests[0].body["messages"][2]["tool_calls"][0]["function"]["arguments"] == told


async def test_keywords_of_a_schema_that_are_null_are_left_out() -> None:
    schema = {"type": "object", "properties": {"sides": {"default": None}}}
    async with played([says("ok")]) as (client, player):
        await message(client, tools=[ROLL | {"input_schema": schema | {"required": None}}], model="toolchat-plain")
    assert player.requests[0].body["tools"][0]["function"]["parameters"] == schema


async def test_images_and_documents_of_text_reach_the_model() -> None:
    page = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Some text"}}
    shown = user(text("See"), image(), image(type="url", url="https://a.example/b.png"), page)
    async with played([says("Ah.")] * 2, OPENAI_IMAGES="true") as (client, player):
        await message(client, shown)
        await message(client, user("Look"), said(used("a", {})), user(result("a", [image(), PDF])), tools=[ROLL])
    first, last = (each.body["messages"][1:] for each in player.requests)
    words, *pictures = first[0]["content"]
    assert words == text("See\nSome text")
    assert [each["image_url"]["url"] for each in pictures] == ["data:image/png;base64,AA==", "https://a.example/b.png"]
    assert "[document left out" in str(last[2:])
    assert "data:image/png;base64,AA==" in str(last[2:])


NAMED = {"type": "function", "function": {"name": "roll"}}


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ({"type": "auto"}, (None, None)),
        ({"type": "any", "disable_parallel_tool_use": True}, ("required", False)),
        ({"type": "tool", "name": "roll"}, (NAMED, None)),
    ],
)
async def test_a_choice_of_tools_is_passed_on(choice: dict[str, Any], told: tuple[object, object]) -> None:
    async with played([asks(ROLLED), says("Hi")]) as (client, player):
        await message(client, tools=[ROLL], tool_choice=choice)
        await message(client, tools=[ROLL], tool_choice={"type": "none"})
    first, second = (each.body for each in player.requests)
    assert (first.get("tool_choice"), first.get("parallel_tool_calls")) == told
    assert "tools" not in second


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
    notice = document["content"][-1]["text"]
    assert document["stop_reason"] == "end_turn"
    assert notice.startswith("To approve or reject ship within 10 minutes, open http")
    assert ("/playground/?approval=" in notice, "#token=" in notice) == (True, True)
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


async def test_a_schema_of_the_output_is_passed_on_and_what_has_no_effect_ignored() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    ignored = {"metadata": {"user_id": "u"}, "top_k": 5, "service_tier": "auto", "mcp_servers": []}
    ignored |= {"context_management": {"edits": []}, "thinking": {"type": "disabled"}}
    asked = user({"type": "text", "text": "?", "cache_control": {"type": "ephemeral"}})
    async with played([says("{}")]) as (client, player):
        client.headers.update({"anthropic-version": "any", "anthropic-beta": "unknown-2030-01-01"})
        config = {"effort": "high", "format": {"type": "json_schema", "schema": schema}}
        await message(client, asked, output_config=config, **ignored)
    told = player.requests[0].body
    assert told["response_format"]["json_schema"]["schema"] == schema
    assert not set(told) & set(ignored)
    assert told["messages"][-1] == user("?")


async def test_text_arrives_in_pieces_between_the_begin_and_the_end_of_its_block() -> None:
    async with played([HELLO]) as (client, _):
        begin, opened, *pieces, closed, ended, stopped = await events(client)
    assert (begin["message"]["content"], begin["message"]["stop_reason"]) == ([], None)
    assert begin["message"]["usage"] == usage(0, 0)
    assert opened == {"type": "content_block_start", "index": 0, "content_block": text("")}
    assert [(each["index"], each["delta"]) for each in pieces] == [
        (0, {"type": "text_delta", "text": piece}) for piece in ("Hel", "lo", ".")
    ]
    assert closed == {"type": "content_block_stop", "index": 0}
    assert (ended["delta"]["stop_reason"], ended["usage"]) == ("end_turn", usage(7, 3))
    assert stopped == {"type": "message_stop"}


async def test_calls_are_blocks_of_their_own_and_only_the_clients_input_comes_as_a_delta() -> None:
    calls = [{"index": number, **each} for number, each in enumerate((TIME, ROLLED))]
    first = sse(delta(content="Wait."), delta(tool_calls=calls), finish("tool_calls"), USAGE)
    async with played([first]) as (client, _):
        told = await events(client, user("Roll"), tools=[ROLL])
    outline = " ".join(f"{each['type'].removeprefix('content_block_')}{each.get('index', '')}" for each in told)
    blocks = "start0 delta0 stop0 start1 stop1 start2 stop2 start3 delta3 stop3"
    assert outline == f"message_start {blocks} message_delta message_stop"
    _, called, known, rolled = blocks_of(told)
    assert (called["type"], called["input"]) == ("mcp_tool_use", {"timeZoneId": "Asia/Shanghai"})
    assert (known["type"], known["tool_use_id"]) == ("mcp_tool_result", called["id"])
    assert (rolled["type"], rolled["name"], rolled["input"]) == ("tool_use", "roll", {})
    assert told[-4]["delta"] == {"type": "input_json_delta", "partial_json": '{"sides":6}'}
    assert told[-2]["delta"]["stop_reason"] == "tool_use"


async def test_text_after_a_call_is_a_block_of_its_own() -> None:
    first = sse(delta(content="Wait."), delta(tool_calls=[{"index": 0, **TIME}]), finish("tool_calls"))
    async with played([first, HELLO]) as (client, _):
        told = await events(client)
    pieces = [(each["index"], each["delta"]["text"]) for each in told if each["type"] == "content_block_delta"]
    assert pieces == [(0, "Wait."), (3, "Hel"), (3, "lo"), (3, ".")]


async def test_the_usage_of_an_agent_is_that_of_the_last_round() -> None:
    first = sse(delta(tool_calls=[{"index": 0, **TIME}]), finish("tool_calls"), USAGE)
    async with played([first, HELLO] * 2) as (client, _):
        agent, plain = [await events(client, **each) for each in ({"tools": [ROLL]}, {})]
    assert (agent[-2]["usage"], plain[-2]["usage"]) == (usage(7, 3), usage(14, 6))


THOUGHT = {"type": "thinking", "thinking": "2 and 2", "signature": ""}
ENABLED = {"type": "enabled", "budget_tokens": 1024}


@pytest.mark.parametrize(
    ("asked", "is_shown"),
    [
        (ENABLED, True),
        ({"type": "adaptive"}, True),
        ({"type": "adaptive", "display": "omitted"}, False),
        ({"type": "disabled"}, False),
        (None, False),
    ],
)
async def test_thinking_stands_before_the_text_if_the_client_asks_for_it(asked: Any, is_shown: bool) -> None:
    thinks = sse(delta(reasoning_content="2 and"), delta(reasoning_content=" 2"), delta("stop", content="4"))
    async with played([says("4", reasoning_content="2 and 2"), thinks]) as (client, _):
        complete = await message(client, thinking=asked)
        told = await events(client, thinking=asked)
    assert complete["content"] == [*([THOUGHT] if is_shown else []), text("4")]
    assert blocks_of(told) == [*([THOUGHT | {"thinking": ""}] if is_shown else []), text("")]
    thoughts = [{"type": "thinking_delta", "thinking": each} for each in ("2 and", " 2")] if is_shown else []
    deltas = [each["delta"] for each in told if each["type"] == "content_block_delta"]
    assert deltas == [*thoughts, {"type": "text_delta", "text": "4"}]
    assert [each["index"] for each in told if "content_block" in each] == list(range(len(blocks_of(told))))


async def test_the_thoughts_of_each_round_have_a_block_of_their_own() -> None:
    calls = sse(delta(reasoning_content="Ask."), delta(tool_calls=[{"index": 0, **TIME}]), finish("tool_calls"))
    async with played([calls, sse(delta(reasoning_content="Noon."), delta("stop", content="12"))]) as (client, _):
        told = await events(client, thinking=ENABLED)
    kinds = [each["type"] for each in blocks_of(told)]
    assert kinds == ["thinking", "mcp_tool_use", "mcp_tool_result", "thinking", "text"]


CALLED = said(used("a", {}))
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}}
CHOICE = "tool_choice: type must be auto, any, none, or tool with a name"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"messages": []}, "messages: "),
        ({"messages": [user(" ")]}, "messages[0].content: must not be blank"),
        ({"messages": [{"role": "tool", "content": "?"}]}, "messages[0].role: "),
        ({"messages": [user({"type": "text"})]}, "messages[0].content[0]: text is missing"),
        ({"messages": [user({"type": "tool_result", "content": "4"})]}, "tool_use_id is missing"),
        ({"messages": [user(PDF)]}, "messages[0].content[0]: document is not supported"),
        ({"messages": [user(image(type="file", file_id="f"))]}, "messages[0].content[0]: image is not supported"),
        ({"messages": [CALLED, user("and?")]}, "tool calls without a result: a"),
        ({"messages": [user(result("b"))]}, "messages[0]: must answer a call of the assistant (b)"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0]: bash_20250124 is not supported"),
        ({"tools": [{"name": "a b", "input_schema": {}}]}, "tools[0].name: "),
        ({"tool_choice": {"type": "tool", "name": "none_such"}}, "tool_choice: no tool has the name none_such"),
        ({"tool_choice": {"type": "tool"}}, CHOICE),
        ({"tool_choice": {"type": ["any"]}}, CHOICE),
        ({"max_tokens": 0}, "max_tokens: "),
        ({"mcp_servers": [{"type": "url", "url": "https://a.example"}]}, "mcp_servers: not supported; add the servers"),
    ],
)
async def test_a_faulty_request_names_the_field(fields: dict[str, Any], words: str, offline: httpx.AsyncClient) -> None:
    status, kind, told = error_of(await sent(offline, **fields))
    assert (status, kind) == (400, "invalid_request_error")
    assert words in told


async def test_a_thread_is_refused_so_that_the_client_sends_the_whole_conversation(offline: httpx.AsyncClient) -> None:
    answer = await sent(offline, thread={"type": "create"})
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
    assert error["details"] == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}


@pytest.mark.parametrize(
    ("method", "path", "status", "kind", "words"),
    [
        ("POST", "/v1/messages/batches", 404, "not_found_error", "send each request to POST /v1/messages"),
        ("GET", "/v1/messages/batches/b_1/results", 404, "not_found_error", "send each request to POST /v1/messages"),
        ("POST", "/v1/messages/other", 404, "not_found_error", "not found"),
        ("GET", "/v1/messages", 405, "invalid_request_error", "method not allowed"),
        ("POST", "/messages", 415, "invalid_request_error", "application/json"),
        ("POST", "/v1/messages/", 415, "invalid_request_error", "application/json"),
    ],
)
async def test_every_error_below_the_prefix_has_the_format(
    method: str, path: str, status: int, kind: str, words: str, offline: httpx.AsyncClient
) -> None:
    status_of, kind_of, told = error_of(await offline.request(method, path))
    assert (status_of, kind_of) == (status, kind)
    assert words in told


async def test_a_base_url_that_ends_in_v1_is_named(offline: httpx.AsyncClient) -> None:
    answer = await offline.post("/v1/v1/messages")
    assert answer.status_code == 400
    assert "the base URL without /v1" in answer.json()["error"]["message"]


async def test_an_error_of_the_provider_compacts_the_conversation_of_claude_code() -> None:
    refusal = whole({"error": {"message": "too long", "code": "context_length_exceeded"}}, 400)
    async with played([refusal]) as (client, _):
        answer = await sent(client)
    assert error_of(answer)[:2] == (400, "invalid_request_error")
    assert error_of(answer)[2].startswith("prompt is too long: ")


async def test_models_are_the_services_own_and_every_claude() -> None:
    async with played([says("Hi")] * 2) as (client, player):
        await message(client, model="claude-haiku-4-5-20251001")
        await message(client, model="toolchat-plain")
        unknown = await sent(client, model="gpt-4o")
    assert ["tools" in each.body for each in player.requests] == [True, False]
    assert error_of(unknown)[:2] == (404, "not_found_error")


@pytest.mark.parametrize(("header", "key"), [("x-api-key", "key"), ("authorization", "Bearer key")])
async def test_a_key_is_taken_from_both_headers(header: str, key: str) -> None:
    async with service(**KEYS) as client:
        assert error_of(await sent(client))[:2] == (401, "authentication_error")
        client.headers[header] = key
        assert (await sent(client)).status_code == 200


RECORDED: dict[str, Any] = from_json((Path(__file__).parent / "recorded" / "claude_code.json").read_bytes())
DONE = sse(delta(content="Done."), finish("stop"))
BASH = call("Bash", '{"command":"echo hi"}', "call_bash")


async def replay(client: httpx.AsyncClient, kind: str, **changed: Any) -> list[dict[str, Any]]:
    """Send a recorded request; it must succeed. Returns its events."""
    body = RECORDED[kind] | ({"tools": RECORDED["tools"]} if RECORDED[kind]["tools"] else {}) | changed
    headers = RECORDED["headers"] | {"x-api-key": "key"}
    answer = await client.post(MESSAGES, params={"beta": "true"}, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return events_of(answer.text)


@pytest.mark.parametrize("kind", ["title", "first", "results"])
async def test_every_recorded_request_of_claude_code_is_answered(kind: str) -> None:
    async with played([DONE], **KEYS) as (client, player):
        told = await replay(client, kind)
    assert (told[0]["message"]["model"], told[-1]["type"]) == ("claude-opus-4-8", "message_stop")
    body = player.requests[0].body
    assert ("response_format" in body) == (kind == "title")
    assert ("Bash" in {each["function"]["name"] for each in body["tools"]}) == (kind != "title")


async def test_its_own_tool_runs_beside_the_services_and_the_turn_goes_on() -> None:
    both = [{"index": number, **each} for number, each in enumerate((TIME, BASH))]
    calls = sse(delta(content="Wait."), delta(tool_calls=both), finish("tool_calls"))
    async with played([calls, DONE], **KEYS) as (client, player):
        blocks = blocks_of(await replay(client, "first"))
        bash = {**blocks[-1], "input": {"command": "echo hi"}}
        told = [*RECORDED["first"]["messages"], said(*blocks[:-1], bash), user(result(bash["id"]))]
        await replay(client, "first", messages=told)
    assert [each["type"] for each in blocks] == ["text", "mcp_tool_use", "mcp_tool_result", "tool_use"]
    roles = [(each["role"], len(each.get("tool_calls", ()))) for each in player.requests[1].body["messages"]]
    assert roles[-3:] == [("assistant", 2), ("tool", 0), ("tool", 0)]
