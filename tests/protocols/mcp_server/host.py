"""Requests of an MCP host on any HTTP client."""

from collections.abc import Mapping
from typing import Any

import httpx
from pydantic_core import from_json

__all__ = ["ACCEPT", "FOLDERS", "LEGACY", "MODERN", "Host", "messages_of", "meta"]

FOLDERS = "tests.protocols.mcp_server.folders"
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
