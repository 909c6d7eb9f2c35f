"""User consent to tool calls, requested through the MCP host by ``input_required`` results."""

import re
import secrets
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from pydantic_core import to_json

from app.protocols.mcp_server.jsonrpc import INVALID_PARAMS, MISSING_CAPABILITY, Exchange, RpcError
from toolchat.chat.advisors.idempotency import IdempotentRequest
from toolchat.state.base import StateStore
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.results import truncate

__all__ = ["call_digest", "can_ask", "consent_request", "decisions", "invalid_state", "require_consent"]

CONSENT_TTL = 600
MAX_SHOWN_ARGUMENTS = 1000
_STATE = re.compile("[0-9a-f]{32}")


async def require_consent(
    exchange: Exchange,
    store: StateStore,
    owner: str,
    name: str,
    arguments: Mapping[str, Any],
    *,
    ttl: int = CONSENT_TTL,
) -> IdempotentRequest | bytes:
    """Check that the user has agreed to a call, or let the host ask.

    The host's ``requestState`` is a random id, under which the store holds the digest of the call. So consent to one
    call of one caller cannot be used for another, and any replica can check it.

    Args:
        exchange: the request.
        store: remembers which calls the host was asked about.
        owner: the principal and tenant that make the call.
        name: the tool.
        arguments: the arguments of the call.
        ttl: seconds in which the user must decide.

    Returns:
        The idempotent request under which the call runs, so that consent counts once; or the result that asks the host.

    Raises:
        ToolExecutionError: the user rejected the call, or the client cannot ask in its protocol version.
        RpcError: the client cannot ask, or its state was not issued for this call.
        StoreUnavailable: the store cannot be reached.
    """
    _check_can_ask(exchange, name)
    digest = call_digest(owner, name, arguments)
    state, decided = exchange.message.params.get("requestState"), decisions(exchange, 1)
    if state is None or decided is None:
        state = secrets.token_hex(16)
        await store.put(_key(state), digest.encode(), ttl=ttl)
        return consent_request([(name, arguments)], state)
    if not isinstance(state, str) or not _STATE.fullmatch(state) or await store.get(_key(state)) != digest.encode():
        raise invalid_state()
    if decided != [True]:
        raise ToolExecutionError("the user rejected this call", kind="rejected")
    return IdempotentRequest(owner, f"mcp\n{state}", digest)


def call_digest(owner: str, name: str, arguments: Mapping[str, Any]) -> str:
    """Identify a call of one caller, whatever the length of its arguments."""
    return sha256(to_json((owner, name, arguments))).hexdigest()


def invalid_state() -> RpcError:
    """The error for a ``requestState`` that does not belong to the call."""
    text = "requestState was not issued for this call, or has expired; call again without it"
    return RpcError(INVALID_PARAMS, text)


def can_ask(exchange: Exchange) -> bool:
    """Whether the client can show a form to its user; legacy versions could only do so within a session."""
    elicitation = exchange.capabilities.get("elicitation")
    return exchange.is_modern and isinstance(elicitation, dict) and (not elicitation or "form" in elicitation)


def _check_can_ask(exchange: Exchange, name: str) -> None:
    if can_ask(exchange):
        return
    how = f"{name} requires the user's consent: give it by POST /tools/{name} with an Idempotency-Key"
    if exchange.is_modern:
        required: dict[str, Any] = {"requiredCapabilities": {"elicitation": {"form": {}}}}
        raise RpcError(MISSING_CAPABILITY, f"{how}, or use a client that supports elicitation", required)
    hint = f"{how}, or use a host that supports elicitation in MCP 2026-07-28"
    raise ToolExecutionError("this call requires the user's consent", kind="approval-required", hint=hint)


def decisions(exchange: Exchange, number: int) -> list[bool] | None:
    """The user's decisions about ``number`` calls; ``None`` unless the host sends one for each."""
    responses = exchange.message.params.get("inputResponses")
    received = [responses.get(_input_key(index)) if isinstance(responses, dict) else None for index in range(number)]
    actions = [each.get("action") if isinstance(each, dict) else None for each in received]
    return [each == "accept" for each in actions] if all(isinstance(each, str) for each in actions) else None


def consent_request(calls: Sequence[tuple[str, Any]], state: str) -> bytes:
    """The result that asks the host for its user's consent to calls, each a tool's name and its arguments."""
    requests = {
        _input_key(index): {"method": "elicitation/create", "params": _form(name, arguments)}
        for index, (name, arguments) in enumerate(calls)
    }
    return to_json({"resultType": "input_required", "inputRequests": requests, "requestState": state})


def _key(state: str) -> str:
    return f"mcp-asked:{state}"


def _input_key(index: int) -> str:
    return f"consent-{index}" if index else "consent"


def _form(name: str, arguments: Any) -> dict[str, Any]:
    shown = truncate(to_json(arguments).decode(), MAX_SHOWN_ARGUMENTS)
    schema = {"type": "object", "properties": {}}
    return {"mode": "form", "message": f"Run {name} with {shown}?", "requestedSchema": schema}
