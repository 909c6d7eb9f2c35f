"""Chat completions: the request to the model, and what the client gets, whole and as chunks."""

import re
from typing import Any

import httpx
import pytest

from tests.players.openai_player import chunk, delta, finish, message, sensible_model, sse, whole
from tests.service.protocols.openai.asking import (
    COMPLETIONS,
    ROLL,
    ask,
    asks,
    call,
    chunks_of,
    completion,
    played,
    says,
    streamed,
    user,
)

FOLDERS = "tests.service.protocols.openai.folders"
TOKENS = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
SAYS = whole(message(content="Hello.", usage=TOKENS))
HELLO = sse(delta(content="Hel"), delta(content="lo."), finish("stop"), chunk(usage=TOKENS))
TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}')
SHIP = call("ship", '{"number":1}')
SHIPPING = {"id": "call_1", "name": "ship", "arguments": {"number": 1}}
PROGRESS = {"X-Toolchat-Progress": "open-webui"}


def deltas(chunks: list[Any]) -> list[Any]:
    return [each["choices"][0]["delta"] for each in chunks if each != "[DONE]" and each["choices"]]


def text_of(answer: httpx.Response) -> str:
    return "".join(each.get("content") or "" for each in deltas(chunks_of(answer.text)))


async def test_an_answer_is_a_chat_completion_with_the_headers_that_clients_read() -> None:
    async with played([SAYS]) as (client, _):
        body = {"model": "toolchat-plain", "messages": [user("Hi")]}
        answer = await client.post(COMPLETIONS, json=body, headers={"X-Request-ID": "mine"})
    document = answer.json()
    (choice,) = document.pop("choices")
    assert document.pop("id").startswith("chatcmpl-")
    assert document.pop("created") > 1_700_000_000
    assert choice == {"index": 0, "message": choice["message"], "logprobs": None, "finish_reason": "stop"}
    assert choice["message"] == {"role": "assistant", "content": "Hello.", "refusal": None}
    details = {
        "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    assert document == {"object": "chat.completion", "model": "toolchat-plain", "usage": TOKENS | details}
    assert (answer.headers["x-request-id"], answer.headers["content-type"]) == ("mine", "application/json")
    assert int(answer.headers["openai-processing-ms"]) >= 0


async def test_a_stream_has_a_chunk_per_piece_then_the_finish_reason_and_done() -> None:
    async with played([HELLO] * 2) as (client, _):
        answer = await streamed(client, user("Hi"), model="toolchat-plain")
        counted = await streamed(client, stream_options={"include_usage": True})
    *chunks, done = chunks_of(answer.text)
    assert (done, int(answer.headers["openai-processing-ms"]) >= 0) == ("[DONE]", True)
    assert deltas(chunks) == [{"role": "assistant", "content": "Hel"}, {"content": "lo."}, {}]
    assert [each["choices"][0]["finish_reason"] for each in chunks] == [None, None, "stop"]
    ((identifier, *head),) = {(each["id"], each["object"], each["model"]) for each in chunks}
    assert (identifier[:9], head) == ("chatcmpl-", ["chat.completion.chunk", "toolchat-plain"])
    assert len({each["created"] for each in chunks}) == 1
    assert all("usage" not in each for each in chunks)
    *first, last, _ = chunks_of(counted.text)
    assert [each["usage"] for each in first] == [None] * len(first)
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 10)


async def test_calls_of_the_service_are_never_returned() -> None:
    asked = sse(delta(tool_calls=[{"index": 0, **TIME}]), finish("tool_calls"))
    async with played([asks(TIME), SAYS, asked, HELLO]) as (client, player):
        document = await completion(client, user("What time is it?"), model="toolchat-time")
        answer = await streamed(client, user("What time is it?"), model="toolchat-time")
    (choice,) = document["choices"]
    assert choice["message"] == {"role": "assistant", "content": "Hello.", "refusal": None}
    assert choice["finish_reason"] == "stop"
    assert player.requests[1].body["messages"][-1]["role"] == "tool"
    chunks = chunks_of(answer.text)
    assert text_of(answer) == "Hello."
    assert not [each for each in deltas(chunks) if "tool_calls" in each]
    assert not [each for each in chunks if "event" in each]
    assert "getCityTime" not in answer.text


@pytest.mark.parametrize(("headers", "variables"), [(PROGRESS, {}), ({}, {"OPENAI_API_PROGRESS": "open-webui"})])
async def test_open_webui_gets_tool_status_and_progress_in_ordinary_chunks(
    headers: dict[str, str], variables: dict[str, str]
) -> None:
    asked = sse(delta(tool_calls=[{"index": 0, **call("pack")}]), finish("tool_calls"))
    async with played([asked, HELLO], FOLDERS, **variables) as (client, _):
        answer = await streamed(client, user("Pack"), model="toolchat-ship", headers=headers)
    told = [each for each in chunks_of(answer.text) if "event" in each]
    assert {each["event"]["type"] for each in told} == {"status"}
    assert [each["event"]["data"]["done"] for each in told] == [False, False, True]
    *running, ended = [each["event"]["data"]["description"] for each in told]
    assert running == ["Running pack …", "pack: 2 of 2, box 2"]
    assert ended.startswith("pack answered in ")
    assert [each["choices"][0]["delta"] for each in told] == [{}, {}, {}]
    assert text_of(answer) == "Hello."


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream", "text/html"])
async def test_the_body_chooses_the_format_and_not_accept(accept: str, offline: httpx.AsyncClient) -> None:
    # The official client accepts JSON even if it requests a stream.
    body = {"model": "toolchat-plain", "messages": [user("hello")]}
    answer = await offline.post(COMPLETIONS, json=body, headers={"Accept": accept})
    assert answer.json()["object"] == "chat.completion"


OPTIONS: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["\n"], "reasoning_effort": "low"}
OPTIONS |= {"frequency_penalty": 1, "presence_penalty": -1, "response_format": {"type": "json_object"}}


@pytest.mark.parametrize(
    ("sent", "given"),
    [
        (OPTIONS, OPTIONS),
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"max_tokens": 5, "max_completion_tokens": 9}, {"max_tokens": 9}),
        ({"stop": "END"}, {"stop": ["END"]}),
        ({"parallel_tool_calls": False}, {"parallel_tool_calls": False}),
        ({"tool_choice": "required"}, {"tool_choice": "required"}),
        ({"temperature": None, "stop": None, "tools": None, "tool_choice": None, "stream_options": None}, {}),
        ({"user": "u-1", "logit_bias": {}, "store": True, "metadata": {"a": 1}, "invented": [1]}, {}),
    ],
)
async def test_options_are_passed_on_and_unknown_fields_ignored(sent: dict[str, Any], given: dict[str, Any]) -> None:
    async with played([SAYS]) as (client, player):
        await completion(client, user("?"), **sent)
    body = player.requests[0].body
    assert {name: body[name] for name in body if name not in ("model", "messages", "tools")} == given


NAMED = {"type": "function", "function": {"name": "getCityTimeFunction"}}


@pytest.mark.parametrize(
    ("choice", "tools", "sent"),
    [("auto", True, None), ("none", False, None), ("required", True, "required"), (NAMED, True, NAMED)],
)
async def test_tool_choice_applies_to_the_services_tools_once(choice: object, tools: bool, sent: object) -> None:
    async with played([asks(TIME) if tools else SAYS, SAYS]) as (client, player):
        await completion(client, user("?"), tool_choice=choice)
    first = player.requests[0].body
    assert ("tools" in first, first.get("tool_choice")) == (tools, sent)
    assert [each.body.get("tool_choice") for each in player.requests[1:]] == [None] * tools


@pytest.mark.parametrize(
    ("reason", "told"), [("stop", "stop"), ("length", "length"), ("content_filter",) * 2, ("pause_turn", "length")]
)
async def test_the_finish_reason_is_one_of_openai(reason: str, told: str) -> None:
    async with played([whole(message(reason, content="Hel"))]) as (client, _):
        document = await completion(client)
    assert document["choices"][0]["finish_reason"] == told


async def test_reasoning_is_returned_beside_the_content() -> None:
    thinks = sse(delta(reasoning_content="2 and 2"), delta(reasoning_content=" make 4"), delta("stop", content="4"))
    async with played([whole(message(content="4", reasoning_content="2 and 2")), thinks]) as (client, _):
        document = await completion(client)
        answer = await streamed(client)
    assert document["choices"][0]["message"]["reasoning_content"] == "2 and 2"
    told = [each.get("reasoning_content", "") for each in deltas(chunks_of(answer.text))]
    assert ("".join(told), text_of(answer)) == ("2 and 2 make 4", "4")


@pytest.mark.parametrize("is_agent", [False, True])
async def test_usage_is_that_of_all_model_calls_or_of_the_last_for_an_agent(is_agent: bool) -> None:
    # Codex and Cline take a request's usage as the size of their context, and compact it; LiteLLM as what it costs.
    tokens = [{"prompt_tokens": each, "completion_tokens": 2, "total_tokens": each + 2} for each in (7, 11)]
    asked = message("tool_calls", tool_calls=[TIME], usage=tokens[0])
    async with played([whole(asked), says("Noon.", usage=tokens[1])] * 2) as (client, _):
        chat = await completion(client, user("?"), tools=[ROLL] if is_agent else [])
        response = await ask(client, "?", tools=[{"type": "custom", "name": "patch"}] if is_agent else [])
    prompt, total = (11, 13) if is_agent else (18, 22)
    assert (chat["usage"]["prompt_tokens"], chat["usage"]["total_tokens"]) == (prompt, total)
    assert (response["usage"]["input_tokens"], response["usage"]["total_tokens"]) == (prompt, total)


async def consent(client: httpx.AsyncClient, identifier: str) -> str:
    answer = await client.post(f"/approvals/{identifier}", json={"decisions": {"call_1": {"approved": True}}})
    assert answer.status_code == 200
    return answer.text


@pytest.mark.parametrize("tools", [[], [ROLL]], ids=["no tools", "with tools of the client"])
async def test_the_answer_names_the_pending_call_and_how_to_approve_it(tools: list[object]) -> None:
    async with played([asks(SHIP), says("It is on its way.")], FOLDERS) as (client, _):
        body = {"model": "toolchat-ship", "messages": [user("Ship order 1")], "tools": tools}
        answer = await client.post(COMPLETIONS, json=body)
        document = answer.json()
        identifier = answer.headers["x-approval-id"]
        (choice,) = document["choices"]
        assert (choice["finish_reason"], "tool_calls" in choice["message"]) == ("stop", False)
        page = re.escape(f"{client.base_url}/playground/?approval={identifier}#token=")
        text = choice["message"]["content"]
        assert re.fullmatch(rf"To approve or reject ship within 10 minutes, open {page}[\w-]+", text)
        waiting = (await client.get(f"/approvals/{identifier}")).json()
        described = SHIPPING | {"description": "Ship an order.", "may_edit": True}
        assert (waiting["id"], waiting["calls"], waiting["question"]) == (identifier, [described], "Ship order 1")
        assert document["approval"]["calls"] == [SHIPPING]
        assert await consent(client, identifier) == "It is on its way."
        assert (await client.get(f"/approvals/{identifier}")).json()["status"] == "decided"


@pytest.mark.parametrize("spoken", ["", "Shipping."])
async def test_a_stream_names_it_behind_its_text_and_in_its_header_if_nothing_was_sent(spoken: str) -> None:
    told = [delta(content=spoken)] if spoken else []
    script = [sse(*told, delta(tool_calls=[{"index": 0, **SHIP}]), finish("tool_calls")), says("It is on its way.")]
    async with played(script, FOLDERS) as (client, _):
        answer = await streamed(client, user("Ship order 1"), model="toolchat-ship")
        *_, last, done = chunks_of(answer.text)
        identifier = last["approval"]["id"]
        assert answer.headers.get("x-approval-id") == (None if spoken else identifier)
        assert await consent(client, identifier) == "It is on its way."
    begin = "Shipping.\n\n" if spoken else ""
    assert text_of(answer).startswith(f"{begin}To approve or reject ship within 10 minutes, open http")
    assert (identifier in text_of(answer), done) == (True, "[DONE]")


async def test_nothing_is_pending_beside_a_call_of_the_clients_tool() -> None:
    # The model learns that the call did not run, and can repeat it once the client's result has arrived.
    async with played([asks(SHIP, call("roll", identifier="call_2")), asks(SHIP)], FOLDERS) as (client, player):
        first = (await completion(client, model="toolchat-ship", tools=[ROLL]))["choices"][0]["message"]
        (rolled,) = first["tool_calls"]
        told = (user("?"), first, {"role": "tool", "tool_call_id": rolled["id"], "content": "4"})
        second = await completion(client, *told, model="toolchat-ship", tools=[ROLL])
    assert "not run" in player.requests[1].body["messages"][-2]["content"]
    assert second["approval"]["calls"][0]["name"] == "ship"


async def test_a_tool_with_state_works_without_a_session_and_shows_no_id_of_one() -> None:
    script = sensible_model({"items": [{"id": "1", "text": "a", "status": "pending"}]})
    async with played(script) as (client, _):
        answer = await client.post(COMPLETIONS, json={"model": "toolchat-todo", "messages": [user("Plan")]})
    assert "#1: a" in answer.json()["choices"][0]["message"]["content"]
    assert "x-session-id" not in answer.headers
