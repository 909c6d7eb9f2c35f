"""The user's consent to one call, asked for by way of the host, without anything kept here meanwhile.

The host is handed a state that it brings back with the user's answer. It is signed, names the call and who asked, and
lasts ten minutes. The key lies in the state store, so that any replica knows what another one has signed; with the
store in memory that is this process alone. A signature does not keep a state from being used twice: each bears an id,
and the call runs under that id as under an ``Idempotency-Key``.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json, to_json

from app.api.mcp.exchange import Exchange
from app.api.mcp.rpc import INVALID_PARAMS, MISSING_CAPABILITY, RpcError
from app.chat.idempotency import Wish
from app.state_store.base import StateStore
from app.state_store.locks import Locks
from app.tool_calling.errors import ToolExecutionError
from app.tool_calling.result_converter import truncated

__all__ = ["consent_to"]

_LASTS = 600
_KEY, _KEY_LASTS = "mcp:signing-key", 86400
_REQUEST = "consent"
_SHOWN_ARGUMENTS = 1000


async def consent_to(
    exchange: Exchange,
    store: StateStore,
    owner: str,
    name: str,
    arguments: Mapping[str, Any],
    *,
    lasts: int = _LASTS,
) -> Wish | bytes:
    """Find out whether the user agrees with a call.

    Args:
        exchange: the request; its client can ask the user, or this fails.
        store: keeps the key.
        owner: on whose behalf the request is made.
        name: the tool.
        arguments: the call's.
        lasts: seconds in which the user must decide.

    Returns:
        The wish under which the call runs once, or a result that asks the host to ask.

    Raises:
        ToolExecutionError: the user does not want it, or this client cannot ask in its protocol version.
        RpcError: the client cannot ask, or what it brings back was not handed out for this call.
        StoreUnavailable: the key cannot be read.
    """
    _check_can_ask(exchange, name)
    call = to_json([owner, name, arguments]).decode()
    params = exchange.message.params
    state, answer = params.get("requestState"), _answer(params.get("inputResponses"))
    key = await _signing_key(store)
    if state is None or answer is None:
        return _question(name, arguments, _signed(key, call, lasts))
    identifier = _opened(key, state, call)
    if answer != "accept":
        raise ToolExecutionError("the user rejected this call", kind="rejected")
    return Wish(owner, f"mcp\n{identifier}", call)


def _check_can_ask(exchange: Exchange, name: str) -> None:
    how = f"{name} needs the user's consent: POST /tools/{name} with an Idempotency-Key gives it"
    if not exchange.is_modern:
        hint = f"{how}; hosts that speak MCP 2026-07-28 and can elicit ask their user"
        raise ToolExecutionError("this call waits for the user's consent", kind="approval-required", hint=hint)
    elicitation = exchange.capabilities.get("elicitation")
    if not isinstance(elicitation, dict) or (elicitation and "form" not in elicitation):
        needed: dict[str, Any] = {"requiredCapabilities": {"elicitation": {"form": {}}}}
        raise RpcError(MISSING_CAPABILITY, f"{how}, or a client that can elicit", needed)


def _answer(responses: Any) -> str | None:
    """What the user said; ``None`` where nobody has been asked."""
    response = responses.get(_REQUEST) if isinstance(responses, dict) else None
    action = response.get("action") if isinstance(response, dict) else None
    return action if isinstance(action, str) else None


def _question(name: str, arguments: Mapping[str, Any], state: str) -> bytes:
    shown = truncated(to_json(arguments).decode(), _SHOWN_ARGUMENTS)
    elicitation = {
        "mode": "form",
        "message": f"Run {name} with {shown}?",
        "requestedSchema": {"type": "object", "properties": {}},
    }
    requests = {_REQUEST: {"method": "elicitation/create", "params": elicitation}}
    return to_json({"resultType": "input_required", "inputRequests": requests, "requestState": state})


def _signed(key: bytes, call: str, lasts: int) -> str:
    payload = to_json({"id": secrets.token_hex(16), "until": int(time.time()) + lasts})
    return base64.urlsafe_b64encode(_mac(key, payload, call) + payload).decode()


def _opened(key: bytes, state: Any, call: str) -> str:
    """The id in a state that was handed out for this call not long ago; raises :class:`RpcError` for any other."""
    try:
        raw = base64.b64decode(state, b"-_", validate=True)
        mac, payload = raw[:32], raw[32:]
        if not hmac.compare_digest(mac, _mac(key, payload, call)):
            raise ValueError("forged, or made for another call")
        content = from_json(payload)
        if content["until"] < time.time():
            raise ValueError("too late")
    except (ValueError, TypeError, binascii.Error):
        text = "requestState was not handed out for this call, or its time is over; call again without it"
        raise RpcError(INVALID_PARAMS, text) from None
    return str(content["id"])


def _mac(key: bytes, payload: bytes, call: str) -> bytes:
    return hmac.digest(key, b"%b\n%b" % (payload, hashlib.sha256(call.encode()).digest()), "sha256")


async def _signing_key(store: StateStore) -> bytes:
    """The key that all replicas share, made by the first that needs it."""
    if key := await store.get(_KEY):
        return key
    async with Locks(store).hold(_KEY) as lock:
        key = await store.get(_KEY)
        if key is None:
            key = secrets.token_bytes(32)
            await store.put(_KEY, key, ttl=_KEY_LASTS, lock=lock)
    return key
