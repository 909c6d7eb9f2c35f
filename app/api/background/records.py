"""The records of background questions: the accepted request, its state, and the events of its answer."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from app.access.principals import Principal, RequestCaller
from toolchat.state.base import Lock, StateStore, decoding
from toolchat.state.versions import RECORD_VERSION, RecordVersion

__all__ = ["MAX_AGE", "RESULT_TTL", "BackgroundQuestion", "BackgroundRecords", "Event"]

MAX_AGE = 3600
"""Seconds in which a question is answered, counted from its acceptance; then it has failed."""
RESULT_TTL = 600
"""Seconds for which an answer is kept."""
_FIRST_POLL, _POLL_SECONDS = 0.01, 0.1

State = Literal["queued", "running", "completed", "failed", "cancelled"]
Event = tuple[str, str]
"""The name of a server-sent event, and its data."""


@dataclass(frozen=True, slots=True)
class BackgroundQuestion:
    """An accepted request, and what has become of it."""

    path: str
    body: str
    headers: tuple[tuple[str, str], ...]
    principal: Principal
    address: str
    tenant: str
    identifier: str = field(default_factory=lambda: secrets.token_hex(16))
    created_at: float = field(default_factory=time.time)
    state: State = "queued"
    tries: int = 0
    """How often it was begun; each try has events of its own."""
    crashes: int = 0
    """How many processes in succession died while they answered it, without getting further."""
    progress: int = 0
    """The length of its journal when a process died last."""
    chunks: int = 0
    """Number of the stored pieces of the last try's events, once it has ended."""
    shown: Any = None
    """What a protocol of its own shows until it has ended."""
    result: Any = None
    """The answer's document, or the problem document of a failure."""
    version: RecordVersion = RECORD_VERSION

    @property
    def key(self) -> str:
        """Its key in the state store, which is also its lock's."""
        return f"background:{self.identifier}"

    @property
    def is_finished(self) -> bool:
        """Whether nothing will change any more."""
        return self.state in ("completed", "failed", "cancelled")

    def caller(self, principal: Principal) -> RequestCaller:
        """The caller for whom it runs, with the principal's current rights."""
        tenant = principal.tenant or principal.name or self.tenant
        return RequestCaller(principal.name, principal.owner or self.address, tenant, principal.roles, principal)


_QUESTION = TypeAdapter(BackgroundQuestion)


class BackgroundRecords:
    """Background questions in the state store. Every operation raises ``StoreUnavailable``.

    The events of a try are stored in pieces, each under a key of its own, so that a long answer is not written again
    with each of them.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store

    async def find(self, identifier: str, principal: Principal) -> BackgroundQuestion | None:
        """A question of a principal; ``None`` if there is none, or it belongs to another one."""
        question = self.load(await self._store.get(f"background:{identifier}"))
        return question if question is not None and question.principal.owner == principal.owner else None

    def load(self, value: bytes | None) -> BackgroundQuestion | None:
        """The question of a stored value."""
        with decoding("the record of this question cannot be read"):
            return _QUESTION.validate_json(value) if value else None

    async def save(self, question: BackgroundQuestion, lock: Lock | None = None) -> None:
        """Store a question; raises ``LockLost`` if another process has taken it over."""
        ttl = RESULT_TTL if question.is_finished else MAX_AGE + RESULT_TTL
        await self._store.put(question.key, _QUESTION.dump_json(question), ttl=ttl, lock=lock)

    async def delete(self, question: BackgroundQuestion) -> None:
        """Delete a finished question and its events."""
        events = [self._piece(question, question.tries, number) for number in range(question.chunks)]
        await self._store.delete(question.key, *events)

    async def request_cancellation(self, question: BackgroundQuestion) -> None:
        """Ask the process that runs a question to stop it."""
        await self._store.put(f"background-cancel:{question.identifier}", b"1", ttl=MAX_AGE)

    async def is_cancelled(self, question: BackgroundQuestion) -> bool:
        """Whether its cancellation was requested."""
        return await self._store.get(f"background-cancel:{question.identifier}") is not None

    async def append(self, question: BackgroundQuestion, number: int, events: Sequence[Event], lock: Lock) -> None:
        """Store the next piece of a question's events."""
        key = self._piece(question, question.tries, number)
        await self._store.put(key, to_json(events), ttl=MAX_AGE + RESULT_TTL, lock=lock)

    async def journal(self, question: BackgroundQuestion) -> list[Any]:
        """What earlier tries have done."""
        value = await self._store.get(f"background-journal:{question.identifier}")
        with decoding("the journal of this question cannot be read"):
            return list(from_json(value)) if value else []

    async def save_journal(self, question: BackgroundQuestion, entries: Sequence[bytes], lock: Lock) -> None:
        """Store everything that was done."""
        value = b"[" + b",".join(entries) + b"]"
        await self._store.put(f"background-journal:{question.identifier}", value, ttl=MAX_AGE, lock=lock)

    async def events(
        self, question: BackgroundQuestion, after: tuple[int, int] = (0, -1)
    ) -> AsyncGenerator[tuple[int, int, Event], None]:
        """The events of a question, as they come, to its end: each with its try and its number.

        If a process dies, the next one begins anew: the events of its try follow, from number 0.

        Args:
            question: the question.
            after: the try and the number of the last event that is not wanted.
        """
        attempt, last = max(after[0], 1), after[1] if after[0] else -1
        piece = number = 0
        pause = _FIRST_POLL  # most answers come soon; those that take long are polled less often
        while True:
            value = await self._store.get(self._piece(question, attempt, piece))
            if value is not None:
                piece += 1
                for name, data in from_json(value):
                    if number > last:
                        yield attempt, number, (name, data)
                    number += 1
                continue
            now = self.load(await self._store.get(question.key))
            # A try that was never made, as in a made-up id of an event, has no pieces.
            if now is None or (now.is_finished and (attempt, piece) >= (now.tries, now.chunks)):
                return
            if now.tries > attempt:
                attempt, last, piece, number = now.tries, -1, 0, 0
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _POLL_SECONDS)

    @staticmethod
    def _piece(question: BackgroundQuestion, attempt: int, number: int) -> str:
        # The identifier alone follows the first colon: it keeps all keys of a question on one node of a Redis cluster.
        return f"background-events-{attempt}-{number}:{question.identifier}"
