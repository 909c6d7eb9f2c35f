"""Tools of Responses: those of a client that are no plain functions, as Codex sends them, and those of the service.

The forms are those of openai/codex: what it sends in ``codex-rs/tools/src/tool_spec.rs`` (``namespace`` and ``custom``)
and ``responses_api.rs``; which call it runs for which item in ``codex-rs/core/src/tools/router.rs``
(``build_tool_call``: the namespace and the name of the item). Codex 0.171 was run against both.
"""

from typing import Any

import httpx
import pytest
from pydantic_core import to_json

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

ROLL = {"type": "function", "name": "roll", "parameters": {"type": "object", "properties": {}}}
SEARCH = {
    "type": "function",
    "name": "search",
    "description": "Search the wiki",
    "strict": False,
    "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: begin_patch hunk+ end_patch"}
PATCH = {"type": "custom", "name": "apply_patch", "description": "Patch a file", "format": GRAMMAR}
WIKI = {
    "type": "namespace",
    "name": "mcp__wiki",
    "description": "Tools in the mcp__wiki namespace.",
    "tools": [SEARCH, {"type": "custom", "name": "note"}],
}
TEXT = "*** Begin Patch\n*** End Patch"

NOTE, LONG = WIKI | {"name": "multi_agent__"}, WIKI | {"name": "n" * 64}
PATCHED = {"type": "custom_tool_call", "name": "apply_patch", "input": TEXT}


def shell(*command: str, **fields: int) -> dict[str, Any]:
    return {"type": "local_shell_call", "action": {"type": "exec", "command": [*command], "env": {}, **fields}}


def function(namespace: str, arguments: str) -> dict[str, Any]:
    return {"type": "function_call", "namespace": namespace, "name": "search", "arguments": arguments}


CALLED: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (WIKI, call("mcp__wiki__search", '{"q":"x"}', "c1"), function("mcp__wiki", '{"q":"x"}')),
    (
        NOTE,
        call("multi_agent__note", '{"input":"x"}', "c1"),
        {"type": "custom_tool_call", "namespace": "multi_agent__", "name": "note", "input": "x"},
    ),
    (LONG, call(f"{'n' * 55}_0346e269", "{}", "c1"), function("n" * 64, "{}")),
    (PATCH, call("apply_patch", to_json({"input": TEXT}).decode(), "c1"), PATCHED),
    (PATCH, call("apply_patch", TEXT, "c1"), PATCHED),
    (
        {"type": "local_shell"},
        call("local_shell", '{"command":["ls","-l"],"timeout_ms":9}', "c1"),
        shell("ls", "-l", timeout_ms=9),
    ),
    ({"type": "local_shell"}, call("local_shell", '{"command":"ls | wc"}', "c1"), shell("sh", "-c", "ls | wc")),
]
"""The client's tool, the model's call, and the item that the client must get."""


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("tool", "called", "item"), CALLED)
async def test_a_call_comes_back_as_the_item_of_the_clients_own_tool(
    tool: dict[str, Any], called: dict[str, Any], item: dict[str, Any], stream: bool
) -> None:
    async with played([asks(called), says("Done.")]) as (client, player):
        body = {"model": "toolchat", "input": "?", "tools": [ROLL, tool], "store": False, "stream": stream}
        answer = await client.post(RESPONSES, json=body)
        shown = events_of(answer.text)[-1]["response"]["output"] if stream else answer.json()["output"]
        assert [{**each, "id": ""} for each in shown] == [{"id": "", "call_id": "c1", "status": "completed", **item}]
        output = output_of("c1") | {"type": f"{item['type'].removesuffix('_call')}_call_output"}
        await ask(client, [{"role": "user", "content": "?"}, *shown, output], tools=[ROLL, tool], store=False)
    offered = [each["function"]["name"] for each in player.requests[0].body["tools"]]
    said, result = player.requests[1].body["messages"][-2:]
    sent = said["tool_calls"][0]["function"]
    assert sent["name"] == called["function"]["name"]
    assert sent["name"] in offered
    assert (result["tool_call_id"], result["content"]) == ("c1", "4")


@pytest.mark.parametrize("continued", ["previous_response_id", "conversation"])
@pytest.mark.parametrize(("tool", "called", "item"), [CALLED[0], CALLED[3], CALLED[5]])
async def test_an_output_alone_continues_a_stored_call(
    tool: dict[str, Any], called: dict[str, Any], item: dict[str, Any], continued: str
) -> None:
    async with played([asks(called), says("Done.")]) as (client, player):
        named = {"conversation": "c-1"} if continued == "conversation" else {}
        first = await ask(client, "?", tools=[tool], **named)
        output = output_of(first["output"][0]["call_id"]) | {
            "type": f"{item['type'].removesuffix('_call')}_call_output"
        }
        await ask(client, [output], tools=[tool], **(named or {continued: first["id"]}))
    said, result = player.requests[1].body["messages"][-2:]
    assert [each["function"]["name"] for each in said["tool_calls"]] == [called["function"]["name"]]
    assert result["content"] == "4"


@pytest.mark.parametrize(
    ("tool", "written", "field", "text"),
    [
        (CALLED[0], "function_call_arguments", "arguments", '{"q":"x"}'),
        (CALLED[3], "custom_tool_call_input", "input", TEXT),
    ],
)
async def test_a_stream_writes_the_text_of_a_call_between_its_begin_and_its_end(
    tool: tuple[dict[str, Any], ...], written: str, field: str, text: str
) -> None:
    async with played([asks(tool[1])]) as (client, _):
        body = {"model": "toolchat", "input": "?", "tools": [tool[0]], "stream": True}
        events = events_of((await client.post(RESPONSES, json=body)).text)
    added, delta, done, ended = events[2:6]
    assert [each["type"].removeprefix("response.") for each in events[2:6]] == [
        *("output_item.added", f"{written}.delta", f"{written}.done", "output_item.done")
    ]
    assert (added["item"][field], delta["delta"], done[field], ended["item"][field]) == ("", text, text, text)
    assert {delta["item_id"], done["item_id"]} == {added["item"]["id"]}


async def test_a_function_for_a_custom_tool_has_one_string_and_its_grammar() -> None:
    async with played([says("Done.")]) as (client, player):
        await ask(client, "?", tools=[PATCH, WIKI])
    offered = {each["function"]["name"]: each["function"] for each in player.requests[0].body["tools"]}
    assert offered["apply_patch"]["parameters"]["properties"] == {"input": {"type": "string"}}
    assert offered["apply_patch"]["description"].startswith("Patch a file")
    assert GRAMMAR["definition"] in offered["apply_patch"]["description"]
    assert WIKI["description"] in offered["mcp__wiki__search"]["description"]


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ({"type": "custom", "name": "apply_patch"}, "apply_patch"),
        ({"type": "function", "name": "search"}, "mcp__wiki__search"),
    ],
)
async def test_a_choice_names_a_tool_as_the_client_knows_it(choice: dict[str, str], name: str) -> None:
    async with played([says("Done.")]) as (client, player):
        await ask(client, "?", tools=[PATCH, WIKI], tool_choice=choice)
    assert player.requests[0].body["tool_choice"]["function"]["name"] == name


@pytest.mark.parametrize(
    "other",
    [
        *(
            {"type": kind}
            for kind in ("web_search", "web_search_preview_2025_03_11", "file_search", "code_interpreter")
        ),
        *({"type": kind} for kind in ("image_generation", "computer_use_preview", "computer")),
        {"type": "mcp", "server_label": "mail", "connector_id": "connector_gmail"},
    ],
)
async def test_tools_that_openai_runs_are_left_out_beside_those_of_the_client(other: dict[str, Any]) -> None:
    async with played([says("Done.")]) as (client, player):
        document = await ask(client, "?", tools=[other, PATCH], model="toolchat-plain")
    assert [each["function"]["name"] for each in player.requests[0].body["tools"]] == ["apply_patch"]
    assert document["tools"] == [PATCH]


async def test_a_request_of_codex_is_answered() -> None:
    def said(role: str, text: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}

    fields = {"instructions": "You are Codex.", "tool_choice": "auto", "parallel_tool_calls": False, "store": False}
    fields |= {"reasoning": {"effort": "low", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}
    others = [{"type": "web_search", "external_web_access": False}, PATCH, WIKI]
    body = {"stream": True, "prompt_cache_key": "1", "text": {"verbosity": "low"}, "tools": [*others, ROLL]}
    items = [said("developer", "Rules."), said("user", "Context."), said("user", "Roll")]
    async with played([asks(call("roll", '{"sides":6}'))]) as (client, player):
        answer = await client.post(RESPONSES, json={"model": "toolchat", "input": items, **fields, **body})
    response = events_of(answer.text)[-1]["response"]
    assert [each["name"] for each in response["output"]] == ["roll"]
    assert response["tools"] == [PATCH, WIKI, ROLL]
    system, *rest = player.requests[0].body["messages"]
    assert system["content"].endswith("You are Codex.\n\nRules.")
    assert rest == [{"role": "user", "content": text} for text in ("Context.", "Roll")]


ALWAYS = {"always": {"tool_names": ["ship"]}}
TOOLS = {"type": "mcp", "server_label": "toolchat", "server_url": "http://unused"}


@pytest.mark.parametrize("allowed", [["getCityTimeFunction"], {"tool_names": ["getCityTimeFunction"]}], ids=str)
async def test_a_part_of_the_services_tools_can_be_allowed(allowed: object) -> None:
    async with played([says("Hello.")]) as (client, player):
        await ask(client, "Hello", tools=[{**TOOLS, "allowed_tools": allowed}])
    assert [each["function"]["name"] for each in player.requests[0].body["tools"]] == ["getCityTimeFunction"]


@pytest.mark.parametrize("approval", [None, "never", {"never": {"tool_names": ["ship"]}}], ids=str)
async def test_a_tool_of_the_service_can_be_chosen_by_its_name(approval: object) -> None:
    choice = {"type": "mcp", "server_label": "toolchat", "name": "getCityTimeFunction"}
    async with played([says("Noon.")]) as (client, player):
        await ask(client, "Hello", tools=[{**TOOLS, "require_approval": approval}], tool_choice=choice)
    assert player.requests[0].body["tool_choice"]["function"] == {"name": "getCityTimeFunction"}


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"tools": [TOOLS | {"require_approval": "always"}]}, "tools[0].require_approval", "only never"),
        ({"tools": [TOOLS | {"require_approval": ALWAYS}]}, "tools[0].require_approval", "only never"),
        ({"tools": [TOOLS | {"allowed_tools": {"read_only": True}}]}, "tools[0].allowed_tools", "send tool_names"),
        ({"tools": [TOOLS | {"allowed_tools": "ship"}]}, "tools[0].allowed_tools", "array"),
        ({"tool_choice": {"type": "mcp", "server_label": "toolchat"}}, "tool_choice", "mcp is not supported"),
        ({"tool_choice": {"type": "mcp", "server_label": "a", "name": "b"}}, "tool_choice", "mcp is not supported"),
    ],
)
async def test_what_the_service_would_not_heed_is_refused(
    fields: dict[str, Any], param: str, words: str, offline: httpx.AsyncClient
) -> None:
    answer = await offline.post(RESPONSES, json={"model": "toolchat", "input": "?", **fields})
    assert error_of(answer) == (400, "invalid_value", param)
    assert words in answer.json()["error"]["message"]
