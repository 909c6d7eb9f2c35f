"""Errors in OpenAI's format with OpenAI's status codes, wherever they arise."""

from typing import Any

import httpx
import pytest

from tests.players.openai_player import body
from tests.service.protocols.openai.asking import COMPLETIONS, ROLL, call, error_of, played, result, user

AS_JSON = {"Content-Type": "application/json"}
ROLLED = {"role": "assistant", "content": None, "tool_calls": [call("roll")]}
FUNCTION: dict[str, Any] = ROLL["function"]  # type: ignore[assignment]


BMP = {"type": "image_url", "image_url": {"url": "data:image/bmp;base64,AA=="}}
IMAGE = {"role": "user", "content": [{"type": "text", "text": " "}, BMP]}
SCHEMA = {"type": "json_schema"}
FORMATS = [{}, {"type": "xml"}, SCHEMA, SCHEMA | {"json_schema": {"name": "a"}}, SCHEMA | {"json_schema": "a"}]
FORMATS += [SCHEMA | {"name": "a", "schema": {"type": "object"}}]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"model": None}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": [{"role": "function", "content": "?"}]}, "messages[0].role"),
        ({"messages": [user("a"), {"role": "user", "content": 5}]}, "messages[1].content"),
        ({"messages": [IMAGE]}, "messages[0].content[1]"),
        ({"messages": [user("a"), user(" ")]}, "messages[1].content"),
        ({"messages": [user("a\0b")]}, "messages[0].content"),
        ({"messages": [user("a"), IMAGE, {"role": "system", "content": "Be brief."}]}, "messages[1].content[1]"),
        ({"messages": [user("?"), result("call_1", "4")]}, "messages[1].tool_call_id"),
        ({"messages": [user("?"), ROLLED]}, "messages"),
        ({"messages": [user("?"), ROLLED, user("and?")]}, "messages"),
        ({"messages": [user("?"), ROLLED, result("call_1", "4"), result("call_1", "4")]}, "messages[3].tool_call_id"),
        ({"messages": [user("?"), ROLLED, {"role": "tool", "content": "4"}]}, "messages[2].tool_call_id"),
        *(({"response_format": each}, "response_format") for each in FORMATS),
        ({"temperature": 3}, "temperature"),
        ({"n": 2}, "n"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "nobody"}}}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": "nobody"}}, "tool_choice"),
        ({"tool_choice": ["auto"]}, "tool_choice"),
        ({"modalities": ["text", "audio"]}, "modalities[1]"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": FUNCTION | {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tools": [ROLL, ROLL]}, "tools"),
        ({"tools": [ROLL] * 129}, "tools"),
        ({"tools": [{"type": "function", "function": FUNCTION | {"description": "x" * 300_000}}]}, "tools"),
    ],
)
async def test_an_invalid_request_gets_400_with_the_field(
    fields: dict[str, Any], param: str, offline: httpx.AsyncClient
) -> None:
    answer = await offline.post(COMPLETIONS, json={"model": "toolchat", "messages": [user("?")], **fields})
    assert error_of(answer) == (400, "invalid_value", param)
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        *((each, "not valid JSON") for each in (b"", b"{", b"\xff", b"[" * 100_000)),
        (b'{"model":"\\ud800","messages":[{"role":"user","content":"?"}]}', "a lone surrogate"),
    ],
)
async def test_invalid_json_gets_400(sent: bytes, message: str, offline: httpx.AsyncClient) -> None:
    answer = await offline.post(COMPLETIONS, content=sent, headers=AS_JSON)
    assert error_of(answer)[:2] == (400, "invalid_request")
    assert message in answer.json()["error"]["message"]


ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [ROLL]}}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"tool_choice": ALLOWED}, "allowed_tools is not supported; send only tools that may be called, or name one"),
    ({"functions": [FUNCTION]}, "not supported; use tools"),
    ({"function_call": "auto"}, "not supported; use tool_choice"),
    ({"logprobs": True, "top_logprobs": 2}, "not supported; providers do not agree on them"),
    ({"audio": {"voice": "alloy"}}, "not supported; the models answer with text only"),
    # Without options a search is still requested.
    ({"web_search_options": {}}, "not supported; add a tool that searches the web to the service"),
    ({"prediction": {"type": "content", "content": "a"}}, "not supported; the models get no predicted text"),
]


@pytest.mark.parametrize(("fields", "message"), REFUSED)
async def test_what_a_client_relies_on_is_refused_with_a_remedy(
    fields: dict[str, Any], message: str, offline: httpx.AsyncClient
) -> None:
    answer = await offline.post(COMPLETIONS, json={"model": "toolchat", "messages": [user("?")], **fields})
    field = next(iter(fields))
    assert error_of(answer) == (400, "invalid_value", field)
    assert answer.json()["error"]["message"] == f"{field}: {message}"


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"stop": ["."], "seed": 0}, "stop, seed"),
        ({"frequency_penalty": 1, "presence_penalty": -1}, "frequency_penalty, presence_penalty"),
        ({"stop": [], "frequency_penalty": 0, "presence_penalty": 0}, ""),
    ],
)
async def test_options_that_the_providers_api_does_not_have_are_refused_if_they_change_anything(
    fields: dict[str, Any], names: str
) -> None:
    async with played([body(b"{}", 429)], OPENAI_API="responses") as (client, player):
        answer = await client.post(COMPLETIONS, json={"model": "toolchat", "messages": [user("?")], **fields})
    if not names:
        assert [each.path for each in player.requests] == ["/v1/responses"]
        return
    assert (error_of(answer)[:2], player.requests) == ((400, "invalid_request"), [])
    assert answer.json()["error"]["message"].startswith(f"{names}: the chat provider's Responses API")


async def test_fields_that_say_nothing_or_change_no_answer_are_accepted(offline: httpx.AsyncClient) -> None:
    nothing: dict[str, Any] = {"functions": [], "function_call": None, "logprobs": False, "top_logprobs": 0}
    nothing |= {"audio": None, "prediction": None}
    ignored = {"modalities": ["text"], "user": "ada", "store": True, "metadata": {"a": "b"}, "logit_bias": {"1": 1}}
    answer = await offline.post(COMPLETIONS, json={"model": "toolchat", "messages": [user("?")]} | nothing | ignored)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", COMPLETIONS, 405, "method not allowed"),
        ("POST", "/v1/audio/speech", 404, "not found"),
        ("GET", "/v1/responses", 405, "method not allowed"),
        ("GET", "/v1/responses/resp_1", 404, "no response is stored"),
        ("POST", "/v1/completions", 404, "set the client to chat completions"),
        ("POST", "/v1/embeddings", 404, "another server"),
        ("GET", "/v1/conversations/conv_1", 404, "no conversation is stored"),
        ("GET", "/v1/conversations/conv_1/items/msg_1", 404, "no conversation is stored"),
        ("GET", "/v1/conversations", 405, "method not allowed"),
        ("GET", "/v1/conversations/conv_1/other", 404, "not found"),
        ("POST", "/v1/responses/input_tokens", 404, "count the tokens"),
        ("POST", "/v1/responses/compact", 404, "summarize"),
    ],
)
async def test_unknown_routes_and_methods_are_reported_in_openais_format(
    method: str, path: str, status: int, words: str, offline: httpx.AsyncClient
) -> None:
    answer = await offline.request(method, path)
    assert error_of(answer)[0] == status
    assert words in answer.json()["error"]["message"]


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"properties": {"a": value}} if depth % 2 else {"a": [value]}
    return value


def tool_of(parameters: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "roll", "parameters": parameters}}]


KEPT = f"call_kept_{'f' * 24}"
ODD = {"type": ["x", None], "enum": [], "default": 10**400}
HOSTILE: list[dict[str, Any]] = [
    {"response_format": nested(400)},
    *({"tools": tool_of(nested(depth))} for depth in (98, 400)),
    *({"tools": tool_of(each)} for each in ({"type": "string"}, {"$ref": "#"}, {"properties": {"a": ODD}})),
    {"tools": [ROLL], "tool_choice": {"type": "function", "function": {"name": "nobody"}}},
    {"seed": 10**30},
    {"max_tokens": 10**400},
    {"stop": [""] * 16},
    {"messages": [user("\u0000")]},
    {"messages": [user("x" * 1_000_000)]},
    {"messages": [user("?")] * 4096},
    {"messages": [{"role": "assistant", "content": "?"}]},
    {"messages": [{"role": "system", "content": None}]},
    {"messages": [{"role": "user", "content": []}]},
    {"messages": [{"role": "user", "content": "?", "tool_calls": [call("roll")]}]},
    {
        "messages": [user("?"), {"role": "assistant", "tool_calls": [call("roll", "}{", KEPT)]}, result(KEPT, "4")],
        "tools": [ROLL],
    },
    {"model": "toolchat-../../etc"},
    {"model": "toolchat-" + "x" * 100_000},
    {"stream_options": {"include_usage": "perhaps"}},
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("number", range(len(HOSTILE)))
async def test_hostile_requests_never_break_the_service(number: int, stream: bool, offline: httpx.AsyncClient) -> None:
    body = {"model": "toolchat", "messages": [user("What time is it?")], "stream": stream, **HOSTILE[number]}
    answer = await offline.post(COMPLETIONS, json=body)
    if answer.status_code == 200:
        assert "chat.completion" in answer.text
        assert '"error"' not in answer.text
    else:
        assert 400 <= answer.status_code < 500
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
        assert len(answer.text) < 2000
