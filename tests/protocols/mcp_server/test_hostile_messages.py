"""Malformed and hostile messages."""

from typing import Any

import httpx
import pytest
from pydantic_core import to_json

from tests.protocols.mcp_server.host import ACCEPT, Host

JSON = {**ACCEPT, "Content-Type": "application/json"}
PING = b'"jsonrpc":"2.0","method":"ping"'
PARSE, INVALID = (400, -32700), (400, -32600)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", PARSE),
        (b"hello", PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"', PARSE),
        (b'{%b,"id":1,"params":{"x":NaN}}' % PING, PARSE),
        (b'{%b,"id":1,"params":{"x":Infinity}}' % PING, PARSE),
        (b'{%b,"id":"\\ud800"}' % PING, PARSE),
        (b'{%b,"id":"\xff"}' % PING, PARSE),
        (b'{%b,"id":1,"params":{"x":%b}}' % (PING, b"[" * 5000 + b"]" * 5000), PARSE),
        (b'[{%b,"id":1}]' % PING, INVALID),
        (b"[]", INVALID),
        (b"null", INVALID),
        (b'"ping"', INVALID),
        (b'{%b,"id":null}' % PING, INVALID),
        (b'{%b,"id":true}' % PING, INVALID),
        (b'{%b,"id":1.5}' % PING, INVALID),
        (b'{%b,"id":[1]}' % PING, INVALID),
        (b'{"id":1,"method":"ping"}', INVALID),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', INVALID),
        (b'{"jsonrpc":"2.0","id":1}', INVALID),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', INVALID),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', INVALID),
        (b'{%b,"id":1,"params":[]}' % PING, INVALID),
    ],
    ids=lambda value: value[:60].decode("latin-1") if isinstance(value, bytes) else "",
)
async def test_malformed_messages_are_rejected(
    body: bytes, expected: tuple[int, int], client: httpx.AsyncClient
) -> None:
    answer = await client.post("/mcp", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["error"]["code"]) == expected
    assert (answer.json()["jsonrpc"], answer.json()["id"]) == ("2.0", None)


@pytest.mark.parametrize("identifier", [0, -1, 10**30, "", "a\u0000b", "時", "x" * 10_000])
async def test_every_id_is_returned_unchanged(identifier: Any, client: httpx.AsyncClient) -> None:
    answer = await client.post("/mcp", json={"jsonrpc": "2.0", "id": identifier, "method": "ping"}, headers=JSON)
    assert answer.json()["id"] == identifier


async def test_the_last_of_repeated_keys_counts_and_must_match_the_headers(
    modern: Host, client: httpx.AsyncClient
) -> None:
    body, headers = modern.request("tools/call", name="quotes", arguments={})
    twice = to_json(body).replace(b'"name":"quotes"', b'"name":"fail","name":"quotes"')
    answer = await client.post("/mcp", content=twice, headers={**JSON, **headers})
    assert answer.json()["result"]["content"][0]["text"].startswith("[{")
    other = await client.post("/mcp", content=twice, headers={**JSON, **headers, "Mcp-Name": "fail"})
    assert (other.status_code, other.json()["error"]["code"]) == (400, -32020)


async def test_a_message_that_is_too_long_is_rejected_unread(modern: Host) -> None:
    answer = await modern.ask("tools/call", name="quote", arguments={"price": "1" * 400_000})
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_an_html_form_cannot_send_a_message(media_type: str, client: httpx.AsyncClient) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    answer = await client.post("/mcp", content=body, headers={**JSON, "Content-Type": media_type})
    assert (answer.status_code, answer.json()["error"]["code"]) == INVALID


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("quote", {"price": "dear"}),
        ("quote", {}),
        ("quote", {"price": 1, "__proto__": {}}),
        ("ask", {}),
        ("ask", {"question": ""}),
        ("ask", {"question": "x" * 4001}),
        ("ask", {"question": "?", "tools": ["nothing"]}),
        ("ask", {"question": "?", "sessionId": "a/b"}),
    ],
)
async def test_invalid_arguments_are_reported_to_the_hosts_model(
    name: str, arguments: dict[str, Any], modern: Host
) -> None:
    result = await modern.call(name, **arguments)
    assert result["isError"] is True
    assert '"kind":"invalid-arguments"' in result["content"][0]["text"]


@pytest.mark.parametrize("meta", [[], "x", {"io.modelcontextprotocol/protocolVersion": None}])
async def test_an_invalid_meta_is_rejected(meta: Any, client: httpx.AsyncClient) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": meta}}
    answer = await client.post("/mcp", json=body, headers=JSON)
    # A meta that does not name a version leaves the request in the legacy lane.
    expected = (400, -32602) if isinstance(meta, dict) else (200, -32602)
    assert (answer.status_code, answer.json()["error"]["code"]) == expected
