"""OpenAI's Responses: documents, streams, stored ones, approvals, and those in the background."""

import asyncio
import functools
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, chunk, delta, finish, message, sensible_model, sse, whole
from tests.service.protocols.openai.asking import (
    RESPONSES,
    ask,
    asks,
    call,
    error_of,
    events_of,
    output_of,
    played,
    says,
)
from tests.waiting import until

DEEP = functools.reduce(lambda inner, _: {"a": inner}, range(196), dict[str, Any]())
"""A request with it can be parsed, but not a record."""
SCHEMA = {"type": "json_schema", "name": "a"}
ROLL = {"type": "function", "name": "roll", "parameters": {"type": "object", "properties": {}}}
TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}', "call_time")
ROLLED = call("roll", '{"sides":6}', "call_roll")
FOLDERS = "tests.service.protocols.openai.folders"
SHIP = call("ship", '{"number":1}')
TOOLS = {"type": "mcp", "server_label": "toolchat", "server_url": "http://unused"}
TOKENS = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def types(document: dict[str, Any]) -> list[str]:
    return [each["type"] for each in document["output"]]


async def test_calls_of_the_service_are_shown_as_those_of_an_mcp_server_before_the_text() -> None:
    async with played([asks(TIME), says("Noon.", usage=TOKENS)]) as (client, _):
        document = await ask(client, "What time is it?", metadata={"page": "1"}, instructions="Be brief.")
    called, said = document["output"]
    assert (called["type"], called["server_label"], called["status"]) == ("mcp_call", "toolchat", "completed")
    assert called["output"].startswith("The current time zone is Asia/Shanghai")
    assert said["content"][0]["text"] == "Noon."
    assert (document["status"], document["usage"]["total_tokens"]) == ("completed", 10)
    assert (document["metadata"], document["instructions"]) == ({"page": "1"}, "Be brief.")


async def test_a_stream_numbers_its_events_and_ends_with_the_items_that_it_showed() -> None:
    script = [asks(TIME), sse(delta(content="It is "), delta(content="noon."), finish("stop"), chunk(usage=TOKENS))]
    async with played(script) as (client, _):
        body = {"model": "toolchat", "input": "What time is it?", "stream": True}
        events = events_of((await client.post(RESPONSES, json=body)).text)
    assert [each["sequence_number"] for each in events] == list(range(len(events)))
    assert [each["type"].removeprefix("response.") for each in events] == [
        *("created", "in_progress", "output_item.added", "mcp_call.in_progress"),
        *("mcp_call_arguments.delta", "mcp_call_arguments.done", "mcp_call.completed", "output_item.done"),
        *("output_item.added", "content_part.added", "output_text.delta", "output_text.delta"),
        *("output_text.done", "content_part.done", "output_item.done", "completed"),
    ]
    done = [each["item"] for each in events if each["type"] == "response.output_item.done"]
    assert events[-1]["response"]["output"] == done
    assert done[1]["content"][0]["text"] == "It is noon."


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_of_the_clients_function_is_returned_and_its_result_leads_to_the_answer(stream: bool) -> None:
    async with played([asks(TIME, ROLLED), says("Done.")]) as (client, player):
        body = {"model": "toolchat", "input": "Roll", "tools": [ROLL], "stream": stream}
        answer = await client.post(RESPONSES, json=body)
        first = events_of(answer.text)[-1]["response"] if stream else answer.json()
        assert types(first) == ["mcp_call", "function_call"]
        called = first["output"][1]
        assert (called["name"], called["arguments"]) == ("roll", '{"sides":6}')
        await ask(client, [output_of(called["call_id"])], previous_response_id=first["id"], tools=[ROLL])
    said, results = player.requests[1].body["messages"][2], player.requests[1].body["messages"][3:]
    assert [each["function"]["name"] for each in said["tool_calls"]] == ["getCityTimeFunction", "roll"]
    assert [each["tool_call_id"] for each in results] == [each["id"] for each in said["tool_calls"]]
    assert results[1]["content"] == "4"


async def test_a_client_that_sends_everything_needs_nothing_stored() -> None:
    async with played([asks(TIME, ROLLED), says("Done.")]) as (client, player):
        first = await ask(client, "Roll", tools=[ROLL], store=False)
        items = [{"role": "user", "content": "Roll"}, {"type": "reasoning", "summary": []}, *first["output"]]
        result = output_of(first["output"][-1]["call_id"])
        await ask(client, [*items, result], tools=[ROLL], store=False)
        assert (await client.get(f"{RESPONSES}/{first['id']}")).status_code == 404
        unknown = await client.post(
            RESPONSES, json={"model": "toolchat", "input": "?", "previous_response_id": first["id"]}
        )
    assert error_of(unknown) == (400, "previous_response_not_found", "previous_response_id")
    roles = [each["role"] for each in player.requests[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool"]


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize(
    ("called", "known"), [(TIME, "The current time zone is"), (SHIP, "approval")], ids=["a result", "not run"]
)
async def test_what_the_services_tools_did_is_known_when_only_the_clients_call_comes_back(
    called: dict[str, Any], known: str, store: bool
) -> None:
    # As Codex, Pydantic AI and the AI SDK do it: they send no mcp_call items.
    async with played([asks(called, ROLLED), says("Done.")], FOLDERS) as (client, player):
        first = (await ask(client, "Roll", tools=[ROLL], store=store))["output"][-1]
        sent = [{"role": "user", "content": "Roll"}, first, output_of(first["call_id"])]
        await ask(client, sent, tools=[ROLL], store=store)
    results = [each["content"] for each in player.requests[1].body["messages"] if each["role"] == "tool"]
    assert (known in results[0], results[1:]) == (True, ["4"])


async def test_a_response_is_continued_from_any_point_without_its_instructions() -> None:
    async with played([says("one"), says("two"), says("three")]) as (client, player):
        first = await ask(client, "first", instructions="Be brief.")
        await ask(client, "second", previous_response_id=first["id"])
        await ask(client, "other", previous_response_id=first["id"])
    texts = [each["content"] for each in player.requests[-1].body["messages"]]
    assert texts[1:] == ["first", "one", "other"]
    assert "Be brief." not in texts[0]


async def test_a_conversation_is_a_session_and_takes_results_alone() -> None:
    async with played([says("one"), asks(TIME, ROLLED), says("Done."), says("bye")]) as (client, player):
        await ask(client, "first", conversation="trip")
        called = (await ask(client, "Roll", conversation={"id": "trip"}, tools=[ROLL]))["output"][-1]
        await ask(client, [output_of(called["call_id"])], conversation="trip", tools=[ROLL])
        await ask(client, "last", conversation="trip")
        stored = (await client.get("/chat/trip")).json()
    assert [each["role"] for each in player.requests[2].body["messages"]] == [
        *("system", "user", "assistant", "user", "assistant", "tool", "tool")
    ]
    assert stored["turns"] == 3


async def test_references_to_items_are_resolved() -> None:
    async with played([asks(TIME, ROLLED), says("Done.")]) as (client, player):
        first = await ask(client, "Roll", tools=[ROLL])
        references = [{"type": "item_reference", "id": each["id"]} for each in first["output"]]
        result = output_of(first["output"][-1]["call_id"])
        await ask(client, [{"role": "user", "content": "Roll"}, *references, result], tools=[ROLL])
        for each in (f"{first['output'][0]['id']}9", "msg_of_another_provider", f"msg_{'0' * 24}_0", ""):
            wrong = [{"type": "item_reference", "id": each}, {"role": "user", "content": "Roll"}]
            unknown = await client.post(RESPONSES, json={"model": "toolchat", "input": wrong})
            assert error_of(unknown) == (400, "invalid_value", "input[0].id")
    assert [each["role"] for each in player.requests[-1].body["messages"]][-3:] == ["assistant", "tool", "tool"]


async def test_a_stored_response_is_shown_listed_and_deleted() -> None:
    async with played([says("one")]) as (client, _):
        document = await ask(client, [{"role": "user", "content": text} for text in ("a", "b", "c")])
        path = f"{RESPONSES}/{document['id']}"
        assert (await client.get(path)).json() == document
        page = (await client.get(f"{path}/input_items", params={"limit": 2})).json()
        assert [each["content"][0]["text"] for each in page["data"]] == ["c", "b"]
        rest = (await client.get(f"{path}/input_items", params={"after": page["last_id"]})).json()
        assert ([each["content"][0]["text"] for each in rest["data"]], rest["has_more"]) == (["a"], False)
        unknown = [await client.get(f"{path}/input_items", params=each) for each in ({"after": "zz"}, {"limit": 0})]
        assert [error_of(each) for each in unknown] == [(400, "invalid_value", "after"), (400, "validation", "limit")]
        assert error_of(await client.post(f"{path}/cancel"))[0] == 400
        assert error_of(await client.get(path, params={"stream": "true"})) == (400, "invalid_value", "stream")
        assert error_of(await client.get(f"{path}0", params={"stream": "true"}))[:2] == (404, "not_found")
        assert (await client.delete(path)).json() == {"id": document["id"], "object": "response", "deleted": True}
        gone = [await client.request(*each) for each in (("GET", path), ("DELETE", path), ("POST", f"{path}/cancel"))]
    assert [error_of(each)[:2] for each in gone] == [(404, "not_found")] * 3


@pytest.mark.parametrize("deleted", [0, 1, 2])
async def test_a_chain_with_a_deleted_response_is_not_continued_without_it(deleted: int) -> None:
    async with played([says(each) for each in ("one", "two", "three")]) as (client, player):
        chain = [(await ask(client, "a"))["id"]]
        for text in ("b", "c"):
            chain.append((await ask(client, text, previous_response_id=chain[-1]))["id"])
        await client.delete(f"{RESPONSES}/{chain[deleted]}")
        body = {"model": "toolchat", "input": "d", "previous_response_id": chain[-1]}
        answer = await client.post(RESPONSES, json=body)
        assert (await client.get(f"{RESPONSES}/{chain[deleted]}")).status_code == 404
    assert error_of(answer) == (400, "previous_response_not_found", "previous_response_id")
    assert chain[deleted] in answer.json()["error"]["message"]
    assert len(player.requests) == 3


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_lists_the_services_tools_decides_by_items(stream: bool) -> None:
    async with played([asks(SHIP), says("On its way.")], FOLDERS) as (client, _):
        fields = {"model": "toolchat-ship", "tools": [TOOLS]}
        first = await ask(client, "Ship order 1", **fields)
        (request,) = first["output"]
        assert (request["type"], request["name"]) == ("mcp_approval_request", "ship")
        assert request["arguments"] == '{"number":1}'
        decided = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}
        body = {"input": [decided], "previous_response_id": first["id"], "stream": stream, **fields}
        answer = await client.post(RESPONSES, json=body)
        second = events_of(answer.text)[-1]["response"] if stream else answer.json()
        assert types(second) == ["mcp_call", "message"]
        assert second["output"][0]["approval_request_id"] == request["id"]
        assert error_of(await client.post(RESPONSES, json=body))[0] == 404


async def test_a_decision_may_bring_tools_of_the_client() -> None:
    async with played([asks(SHIP), asks(ROLLED)], FOLDERS) as (client, _):
        first = await ask(client, "Ship order 1", model="toolchat-ship", tools=[TOOLS])
        decided = {"type": "mcp_approval_response", "approval_request_id": first["output"][0]["id"], "approve": True}
        fields = {"model": "toolchat-ship", "tools": [TOOLS, ROLL], "previous_response_id": first["id"]}
        second = await ask(client, [decided], **fields)
    assert types(second) == ["mcp_call", "function_call"]


async def test_a_client_that_does_not_list_them_reads_how_to_decide() -> None:
    async with played([asks(SHIP), says("Hello.")], FOLDERS) as (client, player):
        first = await ask(client, "Ship order 1", model="toolchat-ship")
        (said,) = first["output"]
        assert said["content"][0]["text"].startswith("To approve or reject ship within 10 minutes, open http")
        token = said["content"][0]["text"].split("#token=")[1].split()[0]
        await ask(client, "Hello", previous_response_id=first["id"])
    assert token not in str(player.requests[-1].body["messages"])


async def test_options_reach_the_model_in_its_own_terms() -> None:
    form = {"type": "json_schema", "name": "moment", "strict": True, "schema": {"type": "object"}}
    fields = {"text": {"format": form}, "max_output_tokens": 9, "reasoning": {"effort": "low"}, "temperature": 0.5}
    async with played([says("{}")]) as (client, player):
        document = await ask(client, "?", tool_choice={"type": "function", "name": "roll"}, tools=[ROLL], **fields)
    body = player.requests[0].body
    assert body["response_format"]["json_schema"] == {"name": "moment", "strict": True, "schema": {"type": "object"}}
    assert (body["max_tokens"], body["reasoning_effort"], body["temperature"]) == (9, "low", 0.5)
    assert body["tool_choice"]["function"]["name"] == "roll"
    assert (document["text"]["format"], document["tool_choice"]["name"]) == (form, "roll")


@pytest.mark.parametrize(
    ("reason", "detail"),
    [("length", "max_output_tokens"), ("content_filter", "content_filter"), ("pause_turn", "max_output_tokens")],
)
async def test_a_cut_answer_is_incomplete(reason: str, detail: str) -> None:
    async with played([whole(message(reason, content="It is"))]) as (client, _):
        document = await ask(client, "?")
    assert (document["status"], document["incomplete_details"]) == ("incomplete", {"reason": detail})
    assert document["output"][0]["status"] == "incomplete"


async def test_an_error_in_a_stream_is_its_last_two_events() -> None:
    async with played([sse(delta(content="It is "), done=False, ending="cut")]) as (client, _):
        body = {"model": "toolchat", "input": "?", "stream": True}
        first, *_, error, last = events_of((await client.post(RESPONSES, json=body)).text)
    assert (first["type"], first["response"]["status"]) == ("response.created", "in_progress")
    assert (error["type"], error["code"], last["type"]) == ("error", "upstream_invalid", "response.failed")
    assert (last["response"]["status"], last["response"]["error"]["code"]) == ("failed", "server_error")


async def test_a_response_begins_before_the_model_does() -> None:
    async with played([sse(done=False, ending="hang")]) as (client, _):
        body = {"model": "toolchat", "input": "?", "stream": True}
        async with client.stream("POST", RESPONSES, json=body) as answer:
            created, running = events_of(await anext(answer.aiter_text()))
    assert (created["type"], running["type"]) == ("response.created", "response.in_progress")
    assert (created["response"]["status"], created["response"]["id"]) == ("in_progress", running["response"]["id"])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"status": 400, "code": "context_length_exceeded"}, "context_length_exceeded"),
        ({"status": 429}, "rate_limit_exceeded"),
        ({"status": 400, "code": "content_policy_violation"}, "invalid_prompt"),
        ({"status": 500}, "server_error"),
    ],
)
async def test_an_error_before_the_first_word_is_a_failed_response_with_a_code_that_clients_know(
    error: dict[str, Any], code: str
) -> None:
    # The codes that codex-rs/codex-api/src/sse/responses.rs of openai/codex tells apart.
    async with played([whole({"error": {"message": "x", **error}}, error["status"])]) as (client, _):
        answer = await client.post(RESPONSES, json={"model": "toolchat", "input": "?", "stream": True})
    last = events_of(answer.text)[-1]
    assert (answer.status_code, last["type"], last["response"]["error"]["code"]) == (200, "response.failed", code)


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0]", "input_image"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0]", "text is missing"),
        ({"input": [{"type": "computer_call"}]}, "input", "no message"),
        ({"input": [{"role": "user"}]}, "input[0]", "content is missing"),
        ({"input": 5}, "input", "array"),
        ({"input": []}, "input", "no message"),
        ({"input": [{"type": "reasoning", "summary": []}], "instructions": "Be brief."}, "input", "no message"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format", "name and schema"),
        ({"input": [output_of("call_1")]}, "input[0].call_id", "call of the assistant"),
        ({"input": [{"type": "function_call", "call_id": "a", "name": "b"}]}, "input", "without a result: a"),
        ({"tools": [{"type": "web_search"}]}, "tools[0]", "web_search is not supported"),
        ({"tools": [ROLL, {"type": "tool_search"}]}, "tools[1]", "tool_search is not supported"),
        ({"tools": [{"type": "namespace", "name": "a", "tools": [TOOLS]}]}, "tools[0]", "function or custom only"),
        ({"tools": [{"type": "namespace", "tools": []}]}, "tools[0]", "name is missing"),
        ({"tools": [{"type": "mcp", "server_label": "other"}]}, "tools[0]", "other MCP servers"),
        ({"tools": [ROLL, ROLL]}, "tools", "occurs twice"),
        ({"tools": [ROLL | {"name": "a b"}]}, "tools[0].name", "pattern"),
        ({"tools": [ROLL | {"parameters": DEEP}]}, "tools", "nested too deeply"),
        ({"text": {"format": SCHEMA | {"schema": DEEP}}}, "text.format", "nested too deeply"),
        ({"tools": [{"type": "function"}]}, "tools[0]", "name is missing"),
        ({"tool_choice": {"type": "web_search"}}, "tool_choice", "web_search is not supported"),
        ({"tool_choice": {"type": "function", "name": "nobody"}}, "tool_choice", "no tool has the name"),
        ({"background": True, "store": False}, "store", "is stored"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt", "not supported"),
        ({"include": ["message.output_text.logprobs"]}, "include", "logprobs"),
        ({"conversation": "a", "previous_response_id": "resp_1"}, "conversation", "either"),
        ({"conversation": "a b"}, "conversation", "conversation: must be 1-64 characters"),
        ({"conversation": "a", "store": False}, "store", "is stored"),
        ({"metadata": {"a": "b" * 513}}, "metadata.a", "512"),
        ({"max_tool_calls": 0}, "max_tool_calls", "greater than or equal to 1"),
    ],
)
async def test_what_is_missing_is_named(
    fields: dict[str, Any], param: str, words: str, offline: httpx.AsyncClient
) -> None:
    answer = await offline.post(RESPONSES, json={"model": "toolchat", "input": "?", **fields})
    assert error_of(answer) == (400, "invalid_value", param)
    assert words in answer.json()["error"]["message"]
    assert answer.headers["x-should-retry"] == "false"


async def accepted(client: httpx.AsyncClient) -> str:
    body = {"model": "toolchat-time", "input": "What time is it?", "background": True}
    document = (await client.post(RESPONSES, json=body)).json()
    assert (document["status"], document["background"], document["output"]) == ("queued", True, [])
    return f"{RESPONSES}/{document['id']}"


async def ended(client: httpx.AsyncClient, path: str) -> dict[str, Any]:
    async def has_ended() -> bool:
        return (await client.get(path)).json()["status"] not in ("queued", "in_progress")

    await until(has_ended)
    document: dict[str, Any] = (await client.get(path)).json()
    return document


@pytest.fixture(scope="module")
async def sensible() -> AsyncGenerator[tuple[httpx.AsyncClient, OpenAIPlayer], None]:
    async with played(sensible_model({"timeZoneId": "Asia/Tokyo"})) as (client, player):
        yield client, player


async def test_a_response_is_polled_and_continued_by_its_id(sensible: tuple[httpx.AsyncClient, OpenAIPlayer]) -> None:
    client, _ = sensible
    path = await accepted(client)
    document = await ended(client, path)
    assert (document["status"], document["background"]) == ("completed", True)
    assert path.endswith(document["id"])
    assert [each["type"] for each in document["output"]] == ["mcp_call", "message"]
    again = {"model": "toolchat-time", "input": "And now?", "previous_response_id": document["id"]}
    assert (await client.post(RESPONSES, json=again)).json()["status"] == "completed"
    assert len((await client.get(f"{path}/input_items")).json()["data"]) == 1


async def test_its_stream_is_continued_behind_any_event(sensible: tuple[httpx.AsyncClient, OpenAIPlayer]) -> None:
    client, _ = sensible
    body = {"model": "toolchat-time", "input": "What time is it?", "background": True, "stream": True}
    first = events_of((await client.post(RESPONSES, json=body)).text)
    assert [each["sequence_number"] for each in first] == list(range(len(first)))
    assert (first[0]["type"], first[-1]["type"]) == ("response.created", "response.completed")
    path = f"{RESPONSES}/{first[0]['response']['id']}"
    rest = events_of((await client.get(path, params={"stream": "true", "starting_after": 3})).text)
    assert rest == first[4:]


async def test_a_cancelled_response_is_cancelled_and_stays_so() -> None:
    async with played([Answer(is_silent=True, ending="hang")]) as (client, player):
        path = await accepted(client)
        await asyncio.wait_for(player.asked.wait(), 60)
        for _ in range(2):
            assert (await client.post(f"{path}/cancel")).json()["status"] == "cancelled"
        assert (await client.get(path)).json()["status"] == "cancelled"


async def test_a_response_that_fails_says_why() -> None:
    async with played([whole({"error": {"message": "no", "type": "x", "code": None}}, 401)]) as (client, _):
        document = await ended(client, await accepted(client))
    assert (document["status"], document["error"]["code"]) == ("failed", "server_error")
