"""Requests of the service to a host: sent in the stream of the host's call, answered by a POST of its own."""

import asyncio
import re
import secrets
from time import perf_counter
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST, JSONRPCError, JSONRPCResponse
from pydantic_core import from_json, to_json

from toolchat.service.api.dependencies import belonging_to, scoped_key
from toolchat.service.observability.observer import current_request
from toolchat.state.base import StateStore

REQUEST_TTL = 600
_POLL_SECONDS = 0.25
_IDENTIFIER = re.compile("[0-9a-f]{32}")


async def open_request(store: StateStore) -> str:
    """The id of a new request to the host of the current principal."""
    identifier = secrets.token_hex(16)
    await store.put(_request_key(identifier), b"", ttl=REQUEST_TTL, lists=belonging_to())
    return identifier


async def response_to(store: StateStore, identifier: str) -> dict[str, Any]:
    """Wait for the host's result; raises ``MCPError`` if the host responds with an error."""
    request = current_request.get()
    request.wait(perf_counter())
    try:
        while (response := await store.get(_response_key(identifier))) is None:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(_POLL_SECONDS)
    finally:
        request.go_on(perf_counter())
    result: dict[str, Any] | None = from_json(response)
    if result is None:
        raise MCPError(INVALID_REQUEST, "the host could not answer")
    return result


async def accept_response(store: StateStore, response: JSONRPCResponse | JSONRPCError) -> None:
    """Store a host's response for the replica that waits for it; only the first one counts.

    Raises:
        MCPError: the service waits for no such response of this principal.
    """
    identifier = str(response.id)
    # Only one process can delete the request, and that one answers it.
    if not _IDENTIFIER.fullmatch(identifier) or not await store.delete(_request_key(identifier)):
        raise MCPError(INVALID_REQUEST, "no request of the service waits for this response")
    result = response.result if isinstance(response, JSONRPCResponse) else None
    await store.put(_response_key(identifier), to_json(result), ttl=REQUEST_TTL, lists=belonging_to())


def _request_key(identifier: str) -> str:
    return f"mcp-request:{scoped_key(identifier)}"


def _response_key(identifier: str) -> str:
    return f"mcp-response:{scoped_key(identifier)}"
