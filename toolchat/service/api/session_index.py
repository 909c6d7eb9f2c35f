"""The sessions of each key, with titles, so that every client of a key can list them."""

import logging
import time
from collections.abc import Sequence
from typing import Any

from pydantic_core import from_json, to_json

from toolchat.errors import SessionBusy, StoreUnavailable
from toolchat.messages import Message, UserMessage
from toolchat.state.base import StateStore, decoding
from toolchat.state.locks import Locks

_log = logging.getLogger(__name__)
MAX_SESSIONS = 100
"""Sessions that are listed for a key; the oldest is dropped first, and can still be used by its id."""
MAX_TITLE = 80
_FRESH = 60.0
"""Seconds after which the time of the newest session is written again: most turns write nothing."""


class SessionIndex:
    """The newest sessions of each key; anonymous clients share their sessions, and have no list.

    Args:
        store: the state store.
        locks: the locks of the lists; requests of one key change its list one after another.
        ttl: seconds for which a session is stored after its last turn.
    """

    def __init__(self, store: StateStore, locks: Locks, *, ttl: float) -> None:
        self._store, self._locks, self._ttl = store, locks, ttl

    async def sessions(self, owner: str) -> list[dict[str, Any]]:
        """The sessions of a key that may still be stored, the newest first. Raises ``StoreUnavailable``."""
        return self._load(await self._store.get(_key(owner))) if owner else []

    async def record(self, conversation: str, messages: Sequence[Message], approval: str = "") -> None:
        """Move a session to the top; a failure is logged only, since the answer is stored already.

        Args:
            conversation: the session's conversation.
            messages: the messages of its newest turn.
            approval: the id of the approval that this turn waits for.
        """
        owner, _, session = conversation.rpartition("/")
        if not owner:
            return
        try:
            first = next(iter(await self.sessions(owner)), None)
            is_fresh = first and first["session_id"] == session and first["updated_at"] >= time.time() - _FRESH
            if approval or not is_fresh:
                await self._change(owner, session, _title(messages), approval)
        except (SessionBusy, StoreUnavailable) as error:
            _log.warning("the list of sessions was not updated", extra={"reason": error.detail})

    async def remove(self, conversation: str) -> None:
        """Remove a session from the list; raises ``SessionBusy`` or ``StoreUnavailable``."""
        owner, _, session = conversation.rpartition("/")
        if owner:
            await self._change(owner, session, None)

    async def _change(self, owner: str, session: str, title: str | None, approval: str = "") -> None:
        async with self._locks.hold(_key(owner)) as lock:
            entries = self._load(lock.value)
            found = next((each for each in entries if each["session_id"] == session), None)
            kept = [each for each in entries if each is not found]
            if title is not None:
                # The first question stays the title, and an approval may wait while other questions are answered.
                entry = {"title": title, **(found or {}), "session_id": session, "updated_at": time.time()}
                kept.insert(0, entry | {"approval": approval} if approval else entry)
            if title is not None or found:
                await self._locks.save_and_release(lock, to_json(kept[:MAX_SESSIONS]), ttl=self._ttl)

    def _load(self, value: bytes | None) -> list[dict[str, Any]]:
        with decoding("the list of sessions cannot be read"):
            entries = from_json(value) if value else []
            return [each for each in entries if each["updated_at"] + self._ttl > time.time()]


def _key(owner: str) -> str:
    return f"sessions:{owner}"


def _title(messages: Sequence[Message]) -> str:
    text = next((each.text for each in messages if isinstance(each, UserMessage)), "")
    line = " ".join(text[: 8 * MAX_TITLE].split())
    return line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1]}…"
