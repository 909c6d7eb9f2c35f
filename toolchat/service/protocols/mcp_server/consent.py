"""User consent to tool calls, requested through the MCP host: by ``input_required`` results, or while calls wait."""

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    ClientCapabilities,
    ElicitResult,
)
from pydantic_core import ValidationError, to_json

from toolchat.service.api.idempotency import IdempotentRequest
from toolchat.service.protocols.mcp_server.calls import Context, Result, is_modern
from toolchat.state.base import StateStore
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.results import truncate

CONSENT_TTL = 600
DECISION_SECONDS = 590.0
"""How long a call waits for its user: less than the state of the call is stored."""
MAX_SHOWN_ARGUMENTS = 1000


async def require_consent(
    params: CallToolRequestParams, store: StateStore, owner: str, *, ttl: int = CONSENT_TTL
) -> IdempotentRequest | Result:
    """The request under which an allowed call runs, so that consent counts once; or the result that asks the host."""
    # The state is a random id, under which the store holds the digest of the call: so any replica can check it.
    digest, state, decided = call_digest(owner, params), params.request_state, decisions(params, 1)
    if state is None or decided is None:
        state = secrets.token_hex(16)
        await store.put(_key(state), digest.encode(), ttl=ttl)
        return consent_request([(params.name, params.arguments or {})], state)
    if await store.get(_key(state)) != digest.encode():
        raise invalid_state()
    if decided != [True]:
        raise ToolExecutionError("nobody has agreed to this call", kind="rejected")
    return IdempotentRequest(owner, f"mcp\n{state}", digest)


def call_digest(owner: str, params: CallToolRequestParams) -> str:
    """Identify a call of one caller, whatever the length of its arguments."""
    return sha256(to_json((owner, params.name, params.arguments or {}))).hexdigest()


def invalid_state() -> MCPError:
    """The error for a ``requestState`` that does not belong to the call."""
    text = "requestState was not issued for this call, or has expired; call again without it"
    return MCPError(INVALID_PARAMS, text)


def shows_forms(capabilities: ClientCapabilities | None) -> bool:
    """Whether a client can show a form to its user."""
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def can_ask(ctx: Context) -> bool:
    """Whether the host's user can be asked about a call: by its result, or in older versions while it is made."""
    return (is_modern(ctx) or ctx.session.can_send_request) and shows_forms(ctx.session.client_capabilities)


def check_can_ask(ctx: Context, name: str) -> None:
    """Refuse a call if the host cannot ask; its model reads the error, so it does not say how a person consents."""
    if can_ask(ctx):
        return
    text = f"a person must decide about {name}"
    if is_modern(ctx):
        required: Result = {"requiredCapabilities": {"elicitation": {"form": {}}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, text, required)
    raise ToolExecutionError(text, kind="approval-required")


async def with_decisions(ctx: Context, params: CallToolRequestParams, asked: Result) -> CallToolRequestParams:
    """Ask the host's user while the call waits, and return the call as a newer host would repeat it."""
    responses: dict[str, Any] = dict.fromkeys(asked["inputRequests"], ElicitResult(action="cancel"))
    with suppress(TimeoutError, MCPError, ValidationError):
        async with asyncio.timeout(DECISION_SECONDS):
            for key, request in asked["inputRequests"].items():
                form = request["params"]
                responses[key] = await ctx.session.elicit_form(form["message"], form["requestedSchema"], ctx.request_id)
    return params.model_copy(update={"input_responses": responses, "request_state": asked["requestState"]})


def decisions(params: CallToolRequestParams, number: int) -> list[bool] | None:
    """The user's decisions about ``number`` calls; ``None`` unless the host sends one for each."""
    responses = params.input_responses or {}
    actions = [getattr(responses.get(_input_key(index)), "action", None) for index in range(number)]
    return None if None in actions else [each == "accept" for each in actions]


def consent_request(calls: Sequence[tuple[str, Any]], state: str) -> Result:
    """The result that asks the host for its user's consent to calls, each a tool's name and its arguments."""
    requests = {
        _input_key(index): {"method": "elicitation/create", "params": _form(name, arguments)}
        for index, (name, arguments) in enumerate(calls)
    }
    return {"resultType": "input_required", "inputRequests": requests, "requestState": state}


def _key(state: str) -> str:
    return f"mcp-asked:{state}"


def _input_key(index: int) -> str:
    return f"consent-{index}" if index else "consent"


def _form(name: str, arguments: Any) -> Result:
    shown = truncate(to_json(arguments).decode(), MAX_SHOWN_ARGUMENTS)
    schema = {"type": "object", "properties": {}}
    return {"mode": "form", "message": f"Run {name} with {shown}?", "requestedSchema": schema}
