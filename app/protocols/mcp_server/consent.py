"""The user's consent to calls, asked for by way of the host."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from app.protocols.mcp_server.exchange import Exchange
from app.protocols.mcp_server.jsonrpc import MISSING_CAPABILITY, RpcError
from app.protocols.mcp_server.state_signing import not_handed_out, seal_of
from toolchat.chat.advisors.idempotency import IdempotentRequest
from toolchat.state.base import StateStore
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.results import truncate

__all__ = ["answers", "can_ask", "consent_to", "question"]

_LASTS = 600
_SHOWN_ARGUMENTS = 1000


async def consent_to(
    exchange: Exchange,
    store: StateStore,
    owner: str,
    name: str,
    arguments: Mapping[str, Any],
    *,
    lasts: int = _LASTS,
) -> IdempotentRequest | bytes:
    """Find out whether the user agrees with a call.

    Args:
        exchange: the request; its client can ask the user, or this fails.
        store: keeps the key of the signature, and for how long the user may decide.
        owner: on whose behalf the request is made.
        name: the tool.
        arguments: the call's.
        lasts: seconds in which the user must decide.

    Returns:
        The idempotent request under which the call runs once, or a result that makes the host ask its user.

    Raises:
        ToolExecutionError: the user does not want it, or this client cannot ask in its protocol version.
        RpcError: the client cannot ask, or what it brings back was not handed out for this call.
        StoreUnavailable: the store cannot be reached.
    """
    _check_can_ask(exchange, name)
    seal = await seal_of(store, owner, name, arguments)
    state, agreed = exchange.message.params.get("requestState"), answers(exchange, 1)
    if state is None or agreed is None:
        identifier = secrets.token_hex(16)
        await store.put(_asked(identifier), b"", ttl=lasts)
        return question([(name, arguments)], seal.state(identifier))
    identifier = seal.identifier(state)
    if await store.get(_asked(identifier)) is None:
        raise not_handed_out()
    if agreed != [True]:
        raise ToolExecutionError("the user rejected this call", kind="rejected")
    return IdempotentRequest(owner, f"mcp\n{identifier}", seal.call)


def can_ask(exchange: Exchange) -> bool:
    """Whether a client can ask its user: older revisions cannot without a session, and not every host has a form."""
    elicitation = exchange.capabilities.get("elicitation")
    return exchange.is_modern and isinstance(elicitation, dict) and (not elicitation or "form" in elicitation)


def _asked(identifier: str) -> str:
    return f"mcp-asked:{identifier}"


def _check_can_ask(exchange: Exchange, name: str) -> None:
    if can_ask(exchange):
        return
    how = f"{name} needs the user's consent: POST /tools/{name} with an Idempotency-Key gives it"
    if exchange.is_modern:
        needed: dict[str, Any] = {"requiredCapabilities": {"elicitation": {"form": {}}}}
        raise RpcError(MISSING_CAPABILITY, f"{how}, or a client that can elicit", needed)
    hint = f"{how}; hosts that speak MCP 2026-07-28 and can elicit ask their user"
    raise ToolExecutionError("this call waits for the user's consent", kind="approval-required", hint=hint)


def answers(exchange: Exchange, number: int) -> list[bool] | None:
    """Which of so many calls the user agrees with; ``None`` where one was not decided: then all are asked for again."""
    responses = exchange.message.params.get("inputResponses")
    given = [responses.get(_key(place)) if isinstance(responses, dict) else None for place in range(number)]
    actions = [each.get("action") if isinstance(each, dict) else None for each in given]
    return [each == "accept" for each in actions] if all(isinstance(each, str) for each in actions) else None


def question(calls: Sequence[tuple[str, Any]], state: str) -> bytes:
    """A result that asks the host to ask its user about calls, each a name with its arguments."""
    requests = {
        _key(place): {"method": "elicitation/create", "params": _form(name, arguments)}
        for place, (name, arguments) in enumerate(calls)
    }
    return to_json({"resultType": "input_required", "inputRequests": requests, "requestState": state})


def _key(place: int) -> str:
    return f"consent-{place}" if place else "consent"


def _form(name: str, arguments: Any) -> dict[str, Any]:
    shown = truncate(to_json(arguments).decode(), _SHOWN_ARGUMENTS)
    schema = {"type": "object", "properties": {}}
    return {"mode": "form", "message": f"Run {name} with {shown}?", "requestedSchema": schema}
