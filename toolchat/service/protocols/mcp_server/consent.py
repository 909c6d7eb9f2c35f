"""User consent to tool calls, requested through the MCP host by ``input_required`` results."""

import re
import secrets
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY, CallToolRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic_core import to_json

from toolchat.service.api.idempotency import IdempotentRequest
from toolchat.service.protocols.mcp_server.calls import Context, Result
from toolchat.state.base import StateStore
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.results import truncate

CONSENT_TTL = 600
MAX_SHOWN_ARGUMENTS = 1000
_STATE = re.compile("[0-9a-f]{32}")


async def require_consent(
    params: CallToolRequestParams, store: StateStore, owner: str, *, ttl: int = CONSENT_TTL
) -> IdempotentRequest | Result:
    """Check that the user has agreed to a call, or let the host ask.

    The host's ``requestState`` is a random id, under which the store holds the digest of the call. So consent to one
    call of one caller cannot be used for another, and any replica can check it.

    Args:
        params: the call.
        store: remembers which calls the host was asked about.
        owner: the principal and tenant that make the call.
        ttl: seconds in which the user must decide.

    Returns:
        The idempotent request under which the call runs, so that consent counts once; or the result that asks the host.
    """
    digest, state, decided = call_digest(owner, params), params.request_state, decisions(params, 1)
    if state is None or decided is None:
        state = secrets.token_hex(16)
        await store.put(_key(state), digest.encode(), ttl=ttl)
        return consent_request([(params.name, params.arguments or {})], state)
    if not _STATE.fullmatch(state) or await store.get(_key(state)) != digest.encode():
        raise invalid_state()
    if decided != [True]:
        raise ToolExecutionError("the user rejected this call", kind="rejected")
    return IdempotentRequest(owner, f"mcp\n{state}", digest)


def call_digest(owner: str, params: CallToolRequestParams) -> str:
    """Identify a call of one caller, whatever the length of its arguments."""
    return sha256(to_json((owner, params.name, params.arguments or {}))).hexdigest()


def invalid_state() -> MCPError:
    """The error for a ``requestState`` that does not belong to the call."""
    text = "requestState was not issued for this call, or has expired; call again without it"
    return MCPError(INVALID_PARAMS, text)


def can_ask(ctx: Context) -> bool:
    """Whether the client can show a form to its user; older versions could only do so within a session."""
    capabilities = ctx.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    if elicitation is None or ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    return elicitation.form is not None or elicitation.url is None


def check_can_ask(ctx: Context, name: str) -> None:
    """Explain how to consent to a call if the client cannot ask."""
    if can_ask(ctx):
        return
    how = f"{name} requires the user's consent: give it by POST /tools/{name} with an Idempotency-Key"
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        required: Result = {"requiredCapabilities": {"elicitation": {"form": {}}}}
        text = f"{how}, or use a client that supports elicitation"
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, text, required)
    hint = f"{how}, or use a host that supports elicitation in MCP {MODERN_PROTOCOL_VERSIONS[-1]}"
    raise ToolExecutionError("this call requires the user's consent", kind="approval-required", hint=hint)


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
