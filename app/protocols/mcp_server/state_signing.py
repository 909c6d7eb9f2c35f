"""What a host is handed and brings back, signed, so that hardly anything is kept here for it meanwhile.

How long it holds is not in it, for clocks are set: whoever hands it out keeps its id in the state store for so long.

The key lies in the state store, so that any replica knows what another one has signed; with the store in memory that
is this process alone. A signature does not keep a state from being used twice: each bears an id, which is used up.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json, to_json

from app.protocols.mcp_server.jsonrpc import INVALID_PARAMS, RpcError
from toolchat.state.base import StateStore
from toolchat.state.locks import Locks

__all__ = ["StateSigner", "not_handed_out", "seal_of"]

_KEY, _KEY_LASTS = "mcp:signing-key", 86400


@dataclass(frozen=True, slots=True)
class StateSigner:
    """Signs and opens the states of one call."""

    key: bytes
    call: str
    """Whose call it is, of what, and with which arguments: a state of another call does not open."""

    def state(self, identifier: str) -> str:
        """A ``requestState`` that bears an id."""
        payload = to_json({"id": identifier})
        return base64.urlsafe_b64encode(self._mac(payload) + payload).decode()

    def identifier(self, state: Any) -> str:
        """The id that a state bears; raises :class:`RpcError` for one that was not handed out, or not for this call."""
        try:
            raw = base64.b64decode(state, b"-_", validate=True)
            mac, payload = raw[:32], raw[32:]
            if not hmac.compare_digest(mac, self._mac(payload)):
                raise ValueError("forged, or made for another call")
            content = from_json(payload)
        except (ValueError, TypeError, binascii.Error):
            raise not_handed_out() from None
        return str(content["id"])

    def _mac(self, payload: bytes) -> bytes:
        return hmac.digest(self.key, b"%b\n%b" % (payload, hashlib.sha256(self.call.encode()).digest()), "sha256")


def not_handed_out() -> RpcError:
    """What a host is told whose state is good for nothing."""
    text = "requestState was not handed out for this call, or its time is over; call again without it"
    return RpcError(INVALID_PARAMS, text)


async def seal_of(store: StateStore, *call: Any) -> StateSigner:
    """Get the seal of a call.

    Args:
        store: keeps the key that all replicas share, made by the first that needs it.
        call: its owner, its tool and its arguments.

    Raises:
        StoreUnavailable: the key cannot be read.
    """
    return StateSigner(await _signing_key(store), to_json(call).decode())


async def _signing_key(store: StateStore) -> bytes:
    if key := await store.get(_KEY):
        return key
    async with Locks(store).hold(_KEY) as lock:
        key = await store.get(_KEY)
        if key is None:
            key = secrets.token_bytes(32)
            await store.put(_KEY, key, ttl=_KEY_LASTS, lock=lock)
    return key
