"""Tokens of approval links, with which a person without a key decides about one paused answer."""

import hashlib
import secrets

from pydantic import TypeAdapter, ValidationError

from toolchat.errors import NotFound
from toolchat.service.access.principals import Principal, current_request_caller
from toolchat.service.api.dependencies import belonging_to
from toolchat.state.base import RECORD_VERSION, RecordVersion, StateStore

_RECORD = TypeAdapter(tuple[str, Principal, RecordVersion])


class AlreadyDecided(NotFound):
    """The calls of a paused answer were decided before."""

    code, title = "already-decided", "Already decided"


class ApprovalTokens:
    """Issues tokens, and finds the principal that a token acts for.

    The store knows a token by its hash, together with the paused answer and the principal that it is for. It gives
    access to nothing else, and ends with the answer's wait: an answer is claimed once, so a token decides once.

    Args:
        store: the state store; any replica accepts a token.
        ttl: seconds until a token expires.
    """

    def __init__(self, store: StateStore, *, ttl: float) -> None:
        self._store, self._ttl = store, ttl

    async def issue(self, identifier: str) -> str:
        """Issue a token of 256 random bits for a paused answer of the current principal."""
        token = secrets.token_urlsafe(32)
        record = (identifier, current_request_caller().principal, RECORD_VERSION)
        await self._store.put(_key(token), _RECORD.dump_json(record), ttl=self._ttl, lists=belonging_to())
        return token

    async def principal(self, identifier: str, token: str) -> Principal:
        """The principal for which a token was issued, as it was then.

        Raises:
            NotFound: the token is not for this answer, or has expired. The error is that of an answer that was decided.
            StoreUnavailable: the store cannot be reached, or a newer version of the service issued the token.
        """
        try:
            issued_for, principal, _ = _RECORD.validate_json(await self._store.get(_key(token)) or b"")
        except ValidationError:  # there is none
            raise approval_not_found() from None
        if issued_for != identifier:
            raise approval_not_found()
        return principal


def approval_not_found() -> NotFound:
    """The error for an approval that does not exist, was decided, has expired, or belongs to somebody else."""
    return NotFound("no answer waits for approval under this id; it was decided before, or has expired")


def _key(token: str) -> str:
    return f"approval-token:{hashlib.sha256(token.encode()).hexdigest()}"
