"""One try of a background question: its request is answered as if a client were connected, and its events stored."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from pydantic_core import from_json, to_json
from starlette.types import ASGIApp, Message, Scope

from app.access.principals import Principal
from app.api.background.journal import JournalAdvisor
from app.api.background.records import MAX_AGE, BackgroundQuestion, BackgroundRecords, Event
from app.api.problems import FAILURE, problem
from app.api.responses.active_request import BACKGROUND
from toolchat.errors import DeadlineExceeded, SessionBusy, ToolchatError, Unauthorized
from toolchat.state.base import Lock, LockLost
from toolchat.tool_calling.caller import current_caller

__all__ = ["Attempt"]

_MAX_CRASHES = 3
_FLUSH_SECONDS = 0.25
_TEMPORARY = {"overloaded", "quota-exceeded", "session-busy", "draining", "store-unavailable"}
"""Codes of problems that end by themselves: the question is tried again, and continues where its journal ends."""
_COMPLETED = {"done", "response.completed", "response.incomplete"}
"""Names of the last event of an answer; any other one is a failure."""


class Attempt:
    """One try of a question, under its lock.

    Args:
        app: answers the request.
        records: stores events and journal.
        rights: see ``BackgroundRunner``.
        question: the question as it is stored.
        lock: its lock.
    """

    def __init__(
        self,
        app: ASGIApp,
        records: BackgroundRecords,
        rights: Callable[[Principal], Principal | None],
        question: BackgroundQuestion,
        lock: Lock,
    ) -> None:
        self._app, self._records, self._rights, self._lock = app, records, rights, lock
        self._question = question
        self._answer = _Answer()
        self._scope: Scope = {}
        self._flushed = 0

    async def run(self) -> BackgroundQuestion:
        """Run the question.

        Returns:
            The question to be stored; not finished if it is to be tried again.

        Raises:
            LockLost: another process has taken it over.
            StoreUnavailable: the store cannot be reached.
        """
        question = self._question
        is_first = question.tries == 0
        earlier = [] if is_first else await self._records.journal(question)
        if question.state == "running":  # it was not stored how the last try ended, so its process has died
            # What has got further since the last crash is not the cause of this one.
            crashes = question.crashes if len(earlier) == question.progress else 0
            question = replace(question, crashes=crashes + 1, progress=len(earlier))
        principal = self._rights(question.principal)
        refusal = _refusal(question, principal)
        if not is_first and await self._records.is_cancelled(question):
            return replace(question, state="cancelled")
        if refusal is not None or principal is None:
            return replace(question, state="failed", result=problem(refusal or _withdrawn(), question.identifier))
        self._question = question = replace(question, state="queued", tries=question.tries + 1)
        journal = JournalAdvisor(earlier, self._begin, self._save_journal)
        self._scope = _scope(question, journal)
        is_cancelled = await self._answered(principal)
        ended = replace(question, state="cancelled") if is_cancelled else await self._ended(question)
        return replace(ended, chunks=self._flushed)

    async def _answered(self, principal: Principal) -> bool:
        """Answer the request, and store its events meanwhile; returns whether it was cancelled."""
        current_caller.set(self._question.caller(principal))
        running = asyncio.ensure_future(self._app(self._scope, _receiver(self._question.body), self._answer.send))
        try:
            while not running.done():
                await asyncio.wait([running], timeout=_FLUSH_SECONDS)
                await self._flush()
                if not running.done() and await self._records.is_cancelled(self._question):
                    return True
            await running
            await self._flush()  # what has come since the last round of the loop
            return False
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _flush(self) -> None:
        if events := self._answer.take():
            await self._append(events)

    async def _append(self, events: Sequence[Event]) -> None:
        await self._records.append(self._question, self._flushed, events, self._lock)
        self._flushed += 1

    async def _begin(self) -> None:
        await self._stored(self._records.save(replace(self._question, state="running"), self._lock))

    async def _save_journal(self, entries: Sequence[bytes]) -> None:
        await self._stored(self._records.save_journal(self._question, entries, self._lock))

    @staticmethod
    async def _stored(storing: Awaitable[None]) -> None:
        try:
            await storing
        except LockLost:
            raise SessionBusy("another process has taken the question over") from None

    async def _ended(self, question: BackgroundQuestion) -> BackgroundQuestion:
        name, result = self._answer.result()
        if name in _COMPLETED:
            return replace(question, state="completed", result=result)
        failure: ToolchatError | None = self._scope["state"].get(FAILURE)
        if failure is not None and failure.code in _TEMPORARY:
            await self._append([("waiting", to_json(result).decode())])
            return replace(question, state="queued")
        return replace(question, state="failed", result=result)


class _Answer:
    """Receives a response: a stream of events, or a problem document."""

    def __init__(self) -> None:
        self._is_stream = False
        self._rest = b""
        self._events: list[Event] = []
        self._last: Event = ("error", "{}")

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._is_stream = dict(message["headers"]).get(b"content-type", b"").startswith(b"text/event-stream")
            return
        self._rest += message.get("body", b"")
        while self._is_stream and b"\n\n" in self._rest:
            block, _, self._rest = self._rest.partition(b"\n\n")
            if event := _event(block.decode()):
                self._events.append(event)
                self._last = event

    def take(self) -> list[Event]:
        """The events since the last call."""
        taken, self._events = self._events, []
        return taken

    def result(self) -> tuple[str, Any]:
        """The name of the last event and its data; a response without events is an error."""
        if self._is_stream:
            return self._last[0], from_json(self._last[1])
        return "error", from_json(self._rest or b"{}")


def _event(block: str) -> Event | None:
    """The name and the data of an event; ``None`` for a comment."""
    fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and not line.startswith(":"))
    return (fields.get("event", ""), fields["data"]) if "data" in fields else None


def _refusal(question: BackgroundQuestion, principal: Principal | None) -> ToolchatError | None:
    """Why a question may not be tried again; ``None`` if it may."""
    if principal is None:
        return _withdrawn()
    if question.crashes >= _MAX_CRASHES:
        return ToolchatError(f"{_MAX_CRASHES} processes died at the same point of this question", retryable=False)
    if time.time() > question.created_at + MAX_AGE:
        return DeadlineExceeded(f"the question was not answered within {MAX_AGE // 60} minutes")
    return None


def _withdrawn() -> ToolchatError:
    return Unauthorized("the key that asked has been withdrawn")


def _scope(question: BackgroundQuestion, journal: JournalAdvisor) -> Scope:
    given = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in question.headers]
    headers = [*given, (b"x-request-id", question.identifier.encode()), (b"content-type", b"application/json")]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": question.path,
        "raw_path": question.path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [*headers, (b"accept", b"text/event-stream")],
        "server": ("toolchat", None),
        "client": (question.address, 0),
        "state": {BACKGROUND: (question.identifier, journal)},
    }


def _receiver(body: str) -> Callable[[], Any]:
    messages = [{"type": "http.request", "body": body.encode(), "more_body": False}]

    async def receive() -> Message:
        if not messages:
            await asyncio.Event().wait()  # the client never leaves
        return messages.pop()

    return receive
