"""Requests of an MCP host on any HTTP client."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
from pydantic_core import from_json

__all__ = ["ACCEPT", "FOLDERS", "LEGACY", "MODERN", "Asked", "Host", "asked", "messages_of", "meta", "session_of"]

FOLDERS = "tests.service.protocols.mcp_server.folders"
ACCEPT = {"Accept": "application/json, text/event-stream"}
MODERN, LEGACY = "2026-07-28", ("2025-11-25", "2025-06-18")
PREFIX = "io.modelcontextprotocol/"


def meta(**fields: Any) -> dict[str, Any]:
    """What a modern request says about itself."""
    said = {"protocolVersion": MODERN, "clientCapabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return {PREFIX + name: value for name, value in said.items()} | fields


class Host:
    """A host of one lane."""

    def __init__(self, client: httpx.AsyncClient, version: str = MODERN, **capabilities: Any) -> None:
        self._client = client
        self._version = version
        self._capabilities = capabilities

    def request(self, method: str, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
        """The body and the headers of a request."""
        headers = {**ACCEPT, "MCP-Protocol-Version": self._version}
        if self._version == MODERN:
            headers |= {"Mcp-Method": method} | ({"Mcp-Name": params["name"]} if method == "tools/call" else {})
            said = meta(**{f"{PREFIX}clientCapabilities": self._capabilities})
            params = {**params, "_meta": said | params.get("_meta", {})}
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers

    async def ask(self, method: str, headers: Mapping[str, str] | None = None, **params: Any) -> httpx.Response:
        """Send a request."""
        body, own = self.request(method, **params)
        return await self._client.post("/mcp", json=body, headers={**own, **(headers or {})})

    async def result(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a request, which must have one."""
        answer = await self.ask(method, **params)
        assert answer.status_code == 200, answer.text
        response: dict[str, Any] = answer.json()
        assert (response["jsonrpc"], response["id"]) == ("2.0", 1)
        result: dict[str, Any] = response["result"]
        return result

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The result of a call."""
        return await self.result("tools/call", name=name, arguments=arguments)

    async def error(self, method: str, headers: Mapping[str, str] | None = None, **params: Any) -> tuple[int, int]:
        """The HTTP status and the code of a request that fails."""
        answer = await self.ask(method, headers, **params)
        return answer.status_code, answer.json()["error"]["code"]


def messages_of(body: str) -> list[Any]:
    """The messages of a finished stream of events."""
    blocks = [block.split("\n") for block in body.split("\n\n") if block and not block.startswith(":")]
    assert all(name == "event: message" for name, _ in blocks)
    return [from_json(data.removeprefix("data: ")) for _, data in blocks]


class Asked:
    """A call of a host that began with `initialize`, while the service asks about it in its stream."""

    def __init__(self, client: httpx.AsyncClient, session: Mapping[str, str], stream: httpx.Response) -> None:
        self._session, self._lines = session, stream.aiter_lines()
        self._client = client

    async def message(self) -> dict[str, Any]:
        """The next message of the stream."""
        async for line in self._lines:
            if line.startswith("data: "):
                message: dict[str, Any] = from_json(line.removeprefix("data: "))
                return message
        raise AssertionError("the stream has ended")

    async def respond(self, identifier: str, action: str = "accept", **headers: str) -> int:
        """Send the user's decision; returns the HTTP status."""
        body = {"jsonrpc": "2.0", "id": identifier, "result": {"action": action, "content": {}}}
        return (await self._client.post("/mcp", json=body, headers={**self._session, **headers})).status_code


async def session_of(client: httpx.AsyncClient, version: str = LEGACY[0], **capabilities: Any) -> dict[str, str]:
    """The headers of a host that has begun with `initialize`."""
    said = {"capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}
    body, headers = Host(client, version).request("initialize", protocolVersion=version, **said)
    answer = await client.post("/mcp", json=body, headers=headers)
    return headers | {name: value for name, value in answer.headers.items() if name == "mcp-session-id"}


@asynccontextmanager
async def asked(
    client: httpx.AsyncClient, name: str, arguments: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> AsyncGenerator[Asked, None]:
    """Call a tool by a host that can ask its user."""
    session = {**await session_of(client, elicitation={}), **(headers or {})}
    body, _ = Host(client, LEGACY[0]).request("tools/call", name=name, arguments=arguments)
    async with client.stream("POST", "/mcp", json=body, headers=session) as stream:
        yield Asked(client, session, stream)
