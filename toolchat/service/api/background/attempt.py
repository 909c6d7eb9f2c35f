"""One try of a background question: its request is answered as if a client were connected, and its events stored."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pydantic_core import from_json, to_json
from starlette.types import ASGIApp, Message, Scope

from toolchat.errors import DeadlineExceeded, SessionBusy, StoreUnavailable, ToolchatError, Unauthorized
from toolchat.models.base import ChatResponse
from toolchat.service.access.principals import Principal, RequestCaller
from toolchat.service.access.runtime import OWN_ADDRESS
from toolchat.service.api.background.checkpoints import CheckpointAdvisor
from toolchat.service.api.background.records import MAX_AGE, BackgroundQuestion, BackgroundRecords, Event, State
from toolchat.service.api.paused_turns import turn_of, turn_record
from toolchat.service.api.problems import FAILURE, problem
from toolchat.service.api.responses.active_request import BACKGROUND
from toolchat.service.observability.logs import hashed
from toolchat.state.base import Lock, LockLost, decoding
from toolchat.tool_calling.caller import current_caller
from toolchat.tool_calling.context import ToolContext

_MAX_CRASHES = 3
_FLUSH_SECONDS = 0.25
_TEMPORARY = {"overloaded", "quota-exceeded", "session-busy", "draining", "store-unavailable"}
"""Codes of problems that end by themselves: the question is tried again, and continues at its last checkpoint."""
_COMPLETED = {"done", "response.completed", "response.incomplete"}
_LAST = {*_COMPLETED, "error", "response.failed"}
"""Names of events that end an answer: nothing follows except for one of the same kind."""


class Attempt:
    """One try of a question, under its lock."""

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
        self._writing = asyncio.Lock()

    async def run(self) -> BackgroundQuestion:
        """Run the question, and return it as it was stored: not finished if it is to be tried again."""
        question = self._question
        body, turn = await self._records.asked(question)
        with decoding("the checkpoint of this question cannot be read"):
            earlier = turn_of(from_json(turn)) if turn else None
        if question.state == "running":  # it was not stored how the last try ended, so its process has died
            question = question.after_crash(len(earlier.executions) if earlier else 0)
        principal, refusal = self._rights(question.principal), _refusal(question)
        self._question = question
        if await self._records.is_cancelled(question):
            return await self._end("cancelled", ("cancelled", "{}"))
        if principal is None or refusal is not None:
            document = problem(
                refusal or Unauthorized("the key that asked has been withdrawn"), hashed(question.identifier)
            )
            return await self._end("failed", _failed(document))
        self._question = replace(question, state="queued", tries=question.tries + 1)
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in question.headers]
        current_caller.set(RequestCaller.from_request(principal, question.address, headers))
        scope = _scope(question, headers, CheckpointAdvisor(question.identifier, earlier, self._save))
        try:
            return await self._answered(scope, body)
        except asyncio.CancelledError:  # this process shuts down, which is no crash
            with suppress(LockLost, StoreUnavailable):
                await self._end("queued")
            raise

    async def _answered(self, scope: Scope, body: bytes) -> BackgroundQuestion:
        """Answer the request, and store how it ended."""
        running = asyncio.ensure_future(self._app(scope, _receiver(body), self._answer.send))
        try:
            is_cancelled = await self._is_cancelled_before(running)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        if is_cancelled:
            return await self._end("cancelled", ("cancelled", "{}"))
        last = self._answer.last or [_failed({})]
        if last[-1][0] in _COMPLETED:
            return await self._end("completed", *last)
        if not _passes(scope["state"].get(FAILURE), self._question):
            return await self._end("failed", *last)
        return await self._end("queued", ("waiting", last[-1][1]))

    async def _is_cancelled_before(self, running: asyncio.Future[None]) -> bool:
        """Store the events until a request has ended, or its cancellation was requested."""
        while not (await asyncio.wait([running], timeout=_FLUSH_SECONDS))[0]:
            await self._store(self._question.state)
            if await self._records.is_cancelled(self._question):
                return True
        await running
        return False

    async def _save(self, turn: ChatResponse | None) -> None:
        # What is in the context, the request brings again.
        record = to_json(turn_record(replace(turn, context=ToolContext()))) if turn else b""
        try:
            await self._store("running", record)
        except LockLost:
            raise SessionBusy("another process has taken the question over") from None

    async def _end(self, state: State, *last: Event) -> BackgroundQuestion:
        """End this try; the question has ended, too, unless it is queued again."""
        self._answer.events.extend(last)
        await self._store(state, releases=True)
        return self._question

    async def _store(self, state: State, turn: bytes = b"", *, releases: bool = False) -> None:
        """Store what has come since the last time: the state, the turn at a checkpoint, and events."""
        async with self._writing:
            events, question = list(self._answer.events), replace(self._question, state=state)
            if events or turn or releases or question != self._question:
                self._question = await self._records.store(question, self._lock, events, turn, releases=releases)
                del self._answer.events[: len(events)]


class _Answer:
    """Receives a response: a stream of events, or a problem document."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        """Those that are not stored yet."""
        self.last: list[Event] = []
        """Those that end the answer."""
        self._is_stream = False
        self._rest = b""

    async def send(self, message: Message) -> None:
        """Receive a message of the application."""
        if message["type"] == "http.response.start":
            self._is_stream = dict(message["headers"]).get(b"content-type", b"").startswith(b"text/event-stream")
            return
        self._rest += message.get("body", b"")
        if not self._is_stream:
            self.last = [("failed", self._rest.decode() or "{}")]
            return
        *blocks, self._rest = self._rest.split(b"\n\n")
        for event in filter(None, map(_event, blocks)):
            (self.last if event[0] in _LAST else self.events).append(event)


def _event(block: bytes) -> Event | None:
    """The name and the data of an event; ``None`` for a comment."""
    fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if ": " in line and line[0] != ":")
    return (fields.get("event", ""), fields["data"]) if "data" in fields else None


def _failed(document: Any) -> Event:
    """The end of an answer without events of its own."""
    return "failed", to_json(document).decode()


def _refusal(question: BackgroundQuestion) -> ToolchatError | None:
    """Why a question may not be tried again; ``None`` if it may."""
    if question.crashes >= _MAX_CRASHES:
        return ToolchatError(f"{_MAX_CRASHES} processes died at the same point of this question", retryable=False)
    if time.time() > question.created_at + MAX_AGE:
        return DeadlineExceeded(f"the question was not answered within {MAX_AGE // 60} minutes")
    return None


def _passes(failure: ToolchatError | None, question: BackgroundQuestion) -> bool:
    """Whether a failure ends by itself before the question's time is over."""
    if failure is None or failure.code not in _TEMPORARY:
        return False
    return time.time() + (failure.retry_after or 0) < question.created_at + MAX_AGE


def _scope(
    question: BackgroundQuestion, headers: Sequence[tuple[bytes, bytes]], checkpoints: CheckpointAdvisor
) -> Scope:
    own = (b"content-type", b"application/json"), (b"accept", b"text/event-stream")
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
        "headers": [*headers, *own, (b"x-request-id", hashed(question.identifier).encode())],
        "server": ("toolchat", None),
        "client": (question.address, 0),
        "state": {BACKGROUND: checkpoints, OWN_ADDRESS: question.service},
    }


def _receiver(body: bytes) -> Callable[[], Any]:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not messages:
            await asyncio.Event().wait()  # the client never leaves
        return messages.pop()

    return receive
