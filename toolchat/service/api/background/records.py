"""The records of background questions: the accepted request with its state, and a log of what its tries have done."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from toolchat.service.access.principals import Principal, RequestCaller
from toolchat.state.base import RECORD_VERSION, Lock, RecordVersion, StateStore, decoding
from toolchat.state.locks import Hold, Locks

MAX_AGE = 3600
"""Seconds in which a question is answered, counted from its acceptance; then it has failed."""
_RESULT_TTL = 600
"""Seconds for which an answer is kept."""
STORED_SECONDS = MAX_AGE + _RESULT_TTL
"""Seconds for which everything else is stored."""
_POLL_SECONDS = 0.1

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
    service: str = ""
    """The service's own address, as the client called it."""
    session: str = ""
    """The session in which it is asked; empty if its protocol does not say so in the body."""
    identifier: str = field(default_factory=lambda: secrets.token_hex(16))
    created_at: float = field(default_factory=time.time)
    state: State = "queued"
    tries: int = 0
    """How often it was begun; each try has events of its own."""
    crashes: int = 0
    """How many processes in succession died while they answered it, without getting further."""
    progress: int = 0
    """The length of its journal when a process died last."""
    pieces: int = 0
    """Number of the pieces in the log of the last try, once it has ended."""
    rest: tuple[Event, ...] = ()
    """The events behind those of the log, once it has ended; the last one has the answer or the problem."""
    shown: Any = None
    """What a protocol of its own shows until it has ended."""
    version: RecordVersion = RECORD_VERSION

    @property
    def key(self) -> str:
        """Its key in the state store, which is also its lock's."""
        return f"background:{self.identifier}"

    @property
    def client(self) -> str:
        """Whose unfinished questions are counted together."""
        return self.principal.owner or self.address

    @property
    def is_finished(self) -> bool:
        """Whether nothing will change any more."""
        return self.state in ("completed", "failed", "cancelled")

    @property
    def result(self) -> Any:
        """The answer's document, or the problem document of a failure; ``None`` as long as there is none."""
        return from_json(self.rest[-1][1]) if self.rest else None

    def caller(self, principal: Principal) -> RequestCaller:
        """The caller for whom it runs, with the principal's current rights."""
        tenant = principal.tenant or principal.name or self.tenant
        return RequestCaller(principal.name, principal.owner or self.address, tenant, principal.roles, principal)


_QUESTION = TypeAdapter(BackgroundQuestion)


class BackgroundRecords:
    """Background questions in the state store. Every operation raises ``StoreUnavailable``.

    The log of a try has a key for each piece, so that nothing is written again. A piece has events and entries of the
    journal; the last events of all are part of the question's record, so that a short answer needs no piece for them.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._locks = Locks(store, wait=0)
        self._changes: dict[str, asyncio.Future[None]] = {}
        """Those who wait for a question's next event, by its identifier."""

    async def find(self, identifier: str, principal: Principal) -> BackgroundQuestion | None:
        """A question of a principal; ``None`` if there is none, or it belongs to another one."""
        question = self.load(await self._store.get(f"background:{identifier}"))
        return question if question is not None and question.principal.owner == principal.owner else None

    def load(self, value: bytes | None) -> BackgroundQuestion | None:
        """The question of a stored value."""
        with decoding("the record of this question cannot be read"):
            return _QUESTION.validate_json(value) if value else None

    def hold(self, identifier: str) -> Hold:
        """Hold the lock of a question, whose value is its record; raises ``SessionBusy`` if another process does."""
        return self._locks.hold(f"background:{identifier}")

    def dump(self, question: BackgroundQuestion) -> bytes:
        """The value to be stored for a question."""
        return _QUESTION.dump_json(question)

    async def save(self, question: BackgroundQuestion, lock: Lock) -> None:
        """Store a question that runs; raises ``LockLost`` if another process has taken it over."""
        await self._store.put(question.key, self.dump(question), ttl=STORED_SECONDS, lock=lock)

    async def save_and_release(self, question: BackgroundQuestion, lock: Lock) -> None:
        """Store a question whose try has ended, and release its lock; raises as :meth:`save`."""
        ttl = _RESULT_TTL if question.is_finished else STORED_SECONDS
        await self._locks.save_and_release(lock, self.dump(question), ttl=ttl)
        self._notify(question)

    async def delete(self, question: BackgroundQuestion) -> None:
        """Delete a finished question and its events."""
        pieces = [_piece(question, question.tries, number) for number in range(question.pieces)]
        await self._store.delete(question.key, *pieces)

    async def request_cancellation(self, question: BackgroundQuestion) -> None:
        """Ask the process that runs a question to stop it."""
        await self._store.put(f"background-cancel:{question.identifier}", b"1", ttl=MAX_AGE)

    async def is_cancelled(self, question: BackgroundQuestion) -> bool:
        """Whether its cancellation was requested."""
        return await self._store.get(f"background-cancel:{question.identifier}") is not None

    async def append(
        self, question: BackgroundQuestion, number: int, events: Sequence[Event], entries: Sequence[Any], lock: Lock
    ) -> None:
        """Store the piece with a number in the log of a question's try; raises ``LockLost`` as :meth:`save`."""
        key = _piece(question, question.tries, number)
        await self._store.put(key, to_json([events, entries]), ttl=STORED_SECONDS, lock=lock)
        self._notify(question)

    async def journal(self, question: BackgroundQuestion) -> list[Any]:
        """The journal's entries of all earlier tries, in order."""
        found: list[Any] = []
        for attempt in range(1, question.tries + 1):
            number = 0
            while (piece := await self._read(question, attempt, number)) is not None:
                found += piece[1]
                number += 1
        return found

    async def events(
        self, question: BackgroundQuestion, after: tuple[int, int] = (0, -1)
    ) -> AsyncGenerator[tuple[int, int, Event], None]:
        """The events of a question, as they come, to its end: each with its try and its number.

        If a process dies, the next one begins anew: the events of its try follow, from number 0.
        ``after`` is the try and the number of the last event that is not wanted.
        """
        attempt, last = max(after[0], 1), after[1] if after[0] else -1
        piece = number = 0
        is_over = False
        while not is_over:
            if (found := await self._read(question, attempt, piece)) is not None:
                piece, events = piece + 1, found[0]
            elif (now := self.load(await self._store.get(question.key))) is None:
                return
            elif now.tries > attempt:
                attempt, last, piece, number, events = now.tries, -1, 0, 0, []
            elif now.is_finished and (attempt > now.tries or piece >= now.pieces):
                # A try that was never made, as in a made-up id of an event, has no events.
                is_over, events = True, list(now.rest) if attempt <= max(now.tries, 1) else []
            else:
                events = []
                await self._change(question)
            for event in events:
                if number > last:
                    yield attempt, number, event
                number += 1

    async def _read(
        self, question: BackgroundQuestion, attempt: int, number: int
    ) -> tuple[list[Event], list[Any]] | None:
        value = await self._store.get(_piece(question, attempt, number))
        with decoding("the log of this question cannot be read"):
            return from_json(value) if value else None

    async def _change(self, question: BackgroundQuestion) -> None:
        """Wait until this process has stored something for a question, or another one may have."""
        loop = asyncio.get_running_loop()
        await asyncio.wait([self._changes.setdefault(question.identifier, loop.create_future())], timeout=_POLL_SECONDS)
        self._changes.pop(question.identifier, None)

    def _notify(self, question: BackgroundQuestion) -> None:
        if (change := self._changes.pop(question.identifier, None)) is not None:
            change.set_result(None)


def _piece(question: BackgroundQuestion, attempt: int, number: int) -> str:
    # The identifier alone follows the first colon: it keeps all keys of a question on one node of a Redis cluster.
    return f"background-log-{attempt}-{number}:{question.identifier}"
