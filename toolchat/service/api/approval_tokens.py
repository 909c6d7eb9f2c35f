"""Approval links: their tokens, with which a person without a key decides about one paused answer."""

import hashlib
import re
import secrets

from pydantic import TypeAdapter, ValidationError

from toolchat.errors import NotFound
from toolchat.service.access.principals import Principal, current_request_caller
from toolchat.service.api.dependencies import belonging_to
from toolchat.state.base import RECORD_VERSION, RecordVersion, StateStore

LINK_FRAGMENT = "#token="
"""Begins the fragment of an approval link, which browsers do not send: no server's log has the token."""
_RECORD = TypeAdapter(tuple[str, Principal, RecordVersion])
_TOKEN = re.compile(rb"((?:#|%23)token(?:=|%3D))[\w-]+", re.IGNORECASE)


class AlreadyDecided(NotFound):
    """The calls of a paused answer were decided before."""

    code, title = "already-decided", "Already decided"


class ApprovalTokens:
    """Issues tokens for one paused answer each, which is claimed once; the store knows a token by its hash."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    async def issue(self, identifier: str, ttl: float, principal: Principal | None = None) -> str:
        """Issue a token of 256 random bits that acts for a principal, by default the current one, for some seconds."""
        token = secrets.token_urlsafe(32)
        record = (identifier, principal or current_request_caller().principal, RECORD_VERSION)
        await self._store.put(_key(token), _RECORD.dump_json(record), ttl=ttl, lists=belonging_to())
        return token

    async def principal(self, identifier: str, token: str) -> Principal:
        """The principal for which a token was issued, as it was then."""
        try:
            issued_for, principal, _ = _RECORD.validate_json(await self._store.get(_key(token)) or b"")
        except ValidationError:  # there is none
            raise approval_not_found() from None
        if issued_for != identifier:
            raise approval_not_found()
        return principal


def link_to(address: str, identifier: str, token: str) -> str:
    """The page of an approval; with a token, whoever has the link can decide. Opening it decides nothing."""
    return f"{address}/playground/?approval={identifier}{token and LINK_FRAGMENT + token}"


def without_tokens(content: bytes) -> bytes:
    """Remove the tokens of approval links: a model could open a link, and decide by itself."""
    return _TOKEN.sub(rb"\1...", content) if b"#token" in content or b"%23token" in content else content


def approval_not_found() -> NotFound:
    """The error for an approval that does not exist, was decided, has expired, or belongs to somebody else."""
    return NotFound("no answer waits for approval under this id; it was decided before, or has expired")


def _key(token: str) -> str:
    return f"approval-token:{hashlib.sha256(token.encode()).hexdigest()}"
