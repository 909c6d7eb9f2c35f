"""The records of background questions: each is one entry of the state store, with its request and events as its log."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from toolchat.errors import StoreUnavailable
from toolchat.service.access.principals import Principal
from toolchat.service.api.dependencies import of_person, parts_of
from toolchat.state.base import RECORD_VERSION, Lock, RecordVersion, StateStore, Write, decoding
from toolchat.state.locks import Hold, Locks

MAX_AGE = 3600
"""Seconds in which a question is answered, counted from its acceptance; then it has failed."""
_RESULT_TTL = 600
"""Seconds for which an answer is kept."""
_STORED_SECONDS = MAX_AGE + _RESULT_TTL
"""Seconds for which everything else is stored."""
_POLL_SECONDS = 0.1
_CANCEL_SECONDS = 10
"""Seconds in which a running try has to end."""
_IMAGES_LEFT_OUT = b'"[images left out]"'
"""The log's first line in place of a request with images, which is deleted when the question has ended."""
_LIST, _MANY = "background", 2000
"""The list of all unfinished questions, and a number that it never has: there is a limit."""

State = Literal["queued", "running", "completed", "failed", "cancelled"]
Event = tuple[str, str]
"""The name of a server-sent event, and its data."""


class Unfinished(NamedTuple):
    """What all processes know of a question until it has ended."""

    identifier: str
    client: str
    """Whose unfinished questions are counted together."""
    session: str
    tries: int
    """Its tries that have ended for a reason that passes."""


@dataclass(frozen=True, slots=True)
class BackgroundQuestion:
    """An accepted request without its body, and what has become of it."""

    path: str
    headers: tuple[tuple[str, str], ...]
    principal: Principal
    address: str
    service: str = ""
    """The service's own address, as the client called it."""
    session: str = ""
    """The session in which it is asked; empty if its protocol does not say so in the body."""
    asked: str = ""
    """The text that is shown with the session."""
    identifier: str = field(default_factory=lambda: secrets.token_hex(16))
    created_at: float = field(default_factory=time.time)
    state: State = "queued"
    tries: int = 0
    """How often it was begun; each try has events of its own."""
    crashes: int = 0
    """How many processes in succession died while they answered it, without getting further."""
    progress: int = 0
    """The tool calls of its checkpoint when a process died last."""
    lines: int = 1
    """The length of its log: the body, and pieces of the events of all tries."""
    shown: Any = None
    """What a protocol of its own shows until it has ended."""
    version: RecordVersion = RECORD_VERSION

    @property
    def key(self) -> str:
        return f"background:{self.identifier}"

    @property
    def lists(self) -> tuple[str, ...]:
        owner = self.principal.owner
        return (*(parts_of(owner + self.session) if self.session else ()), *of_person(owner))

    @property
    def unfinished(self) -> Unfinished:
        return Unfinished(self.identifier, self.principal.owner or self.address, self.session, self.tries)

    @property
    def is_finished(self) -> bool:
        return self.state in ("completed", "failed", "cancelled")

    def is_late(self, seconds: float = 0) -> bool:
        return time.time() + seconds >= self.created_at + MAX_AGE

    def after_crash(self, progress: int) -> "BackgroundQuestion":
        """Copy that counts one more crash; what has got further since the last one is not the cause of this one."""
        return replace(self, crashes=self.crashes * (progress == self.progress) + 1, progress=progress)


_QUESTION = TypeAdapter(BackgroundQuestion)


class BackgroundRecords:
    """Background questions in the state store. Every operation raises ``StoreUnavailable``."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._locks = Locks(store, wait=0)

    async def add(self, question: BackgroundQuestion, body: bytes) -> None:
        """Store a question and its request's body; once this returns, it is answered whatever crashes."""
        write = partial(Write, ttl=_STORED_SECONDS, is_kept=True, lists=question.lists)
        images = [write(_images_key(question), body)] if b"data:image/" in body else []
        entry = write(question.key, _QUESTION.dump_json(question), line=_IMAGES_LEFT_OUT if images else body)
        await self._store.commit((entry, *images, _listing(question)), name="accept question")

    def hold(self, identifier: str) -> Hold:
        """Hold the lock of a question, whose value is its record; raises ``SessionBusy`` if another process does."""
        return self._locks.hold(f"background:{identifier}")

    async def find(self, identifier: str, principal: Principal) -> BackgroundQuestion | None:
        """A question of a principal; ``None`` if there is none, or it belongs to another one."""
        question = self.load(await self._store.get(f"background:{identifier}"))
        return question if question is not None and question.principal.owner == principal.owner else None

    def load(self, value: bytes | None) -> BackgroundQuestion | None:
        with decoding("the record of this question cannot be read"):
            return _QUESTION.validate_json(value) if value else None

    async def unfinished(self) -> Mapping[Unfinished, bool]:
        """The unfinished questions of all processes, the oldest first, and whether each is free: no process runs it."""
        found = await self._store.listed(_LIST, limit=_MANY)
        with decoding("the list of background questions cannot be read"):
            listed = [Unfinished(key.partition(":")[2], *from_json(value)) for key, value, _ in reversed(found)]
        keys = [f"background:{each.identifier}" for each in listed]
        free = set(await self._store.unlocked(keys)) if keys else ()
        return {each: key in free for each, key in zip(listed, keys, strict=True)}

    async def store(
        self, question: BackgroundQuestion, lock: Lock, events: Sequence[Event], turn: bytes | None
    ) -> BackgroundQuestion:
        """Store a question under its lock, with its next events and its turn; returns it as stored.

        The lock is released unless it is running. An empty turn is deleted.
        """
        is_over, runs, line = question.is_finished, question.state == "running", None
        place = question.lines
        if events:
            line = to_json((question.tries, events, is_over))
            question = replace(question, lines=place + 1)
        ttl = _RESULT_TTL if is_over else _STORED_SECONDS
        writes = [Write(question.key, _QUESTION.dump_json(question), ttl, not is_over, line=line, place=place)]
        writes += [] if runs else [_listing(question), lock.release]
        writes += [Write(_images_key(question))] if is_over else []
        if turn is not None:
            lists = question.lists if turn else ()
            writes.append(Write(_turn_key(question), turn or None, _STORED_SECONDS, is_kept=True, lists=lists))
        await self._store.commit_under(lock, writes, "store question")
        if not runs:
            self._locks.released(lock)
        return question

    async def delete(self, question: BackgroundQuestion) -> None:
        """Delete a question and its events, after its running try, which is cancelled.

        Raises:
            SessionBusy: the try does not end.
        """
        if not question.is_finished:
            await self.request_cancellation(question)
        async with Locks(self._store, wait=_CANCEL_SECONDS).hold(question.key) as lock:
            names = "background", "background-unfinished", "background-turn", "background-cancel", "background-images"
            await self._store.delete(*[f"{each}:{question.identifier}" for each in names], lock=lock)

    async def delete_unfinished(self, *names: str) -> None:
        """Cancel and delete the unfinished questions that are in lists; raises as :meth:`delete`."""
        for name in names:
            async for key, value, _ in self._store.newest(name):
                question = None
                with suppress(StoreUnavailable):  # what cannot be read does not run
                    question = self.load(value) if key.startswith("background:") else None
                if question and not question.is_finished:
                    await self.delete(question)

    async def request_cancellation(self, question: BackgroundQuestion) -> None:
        await self._store.put(f"background-cancel:{question.identifier}", b"1", ttl=MAX_AGE)

    async def is_cancelled(self, question: BackgroundQuestion) -> bool:
        return await self._store.get(f"background-cancel:{question.identifier}") is not None

    async def asked(self, question: BackgroundQuestion) -> tuple[bytes, bytes | None]:
        with decoding("the request of this question cannot be read"):
            body = (await self._store.read_log(question.key))[0]
            body = await self._store.get(_images_key(question)) or body if body == _IMAGES_LEFT_OUT else body
            return body, await self._store.get(_turn_key(question))

    async def result(self, question: BackgroundQuestion) -> Any:
        """The answer's document, or the problem document of a failure; ``None`` as long as there is none."""
        if not question.is_finished:
            return None
        with decoding("the answer cannot be read"):
            [[_, events, _]] = map(from_json, await self._store.read_log(question.key, question.lines - 1))
            return from_json(events[-1][1])

    async def events(
        self, question: BackgroundQuestion, after: tuple[int, int] = (0, -1)
    ) -> AsyncGenerator[list[tuple[int, int, Event]], None]:
        """The events behind one, as they are stored, to the end: each with its try and its number in that, from 0."""
        place, tries, number, is_over = 1, 0, 0, False
        while not is_over:
            lines = await self._store.read_log(question.key, place)
            place += len(lines)
            for line in lines:
                before = tries
                with decoding("the events of this question cannot be read"):
                    tries, events, is_over = from_json(line)
                number *= tries == before
                numbered = [(tries, at, tuple(event)) for at, event in enumerate(events, number)]
                yield [each for each in numbered if each[:2] > after]
                number += len(events)
            if not lines:
                if await self._store.get(question.key) is None:
                    return
                await asyncio.sleep(_POLL_SECONDS)


def _listing(question: BackgroundQuestion) -> Write:
    """The write that lists a question as long as it is unfinished."""
    key, lists = f"background-unfinished:{question.identifier}", (_LIST, *question.lists)
    if question.is_finished:
        return Write(key)
    return Write(key, to_json(question.unfinished[1:]), _STORED_SECONDS, is_kept=True, lists=lists)


def _turn_key(question: BackgroundQuestion) -> str:
    return f"background-turn:{question.identifier}"


def _images_key(question: BackgroundQuestion) -> str:
    return f"background-images:{question.identifier}"
