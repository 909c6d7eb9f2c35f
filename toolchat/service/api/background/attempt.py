"""One try of a background question: its request is answered as if a client were connected, and its events stored."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from time import perf_counter

from pydantic_core import from_json, to_json
from starlette.types import ASGIApp, Message, Scope

from toolchat.errors import CLIENT_GONE, DeadlineExceeded, SessionBusy, StoreUnavailable, ToolchatError, Unauthorized
from toolchat.models.base import ChatResponse
from toolchat.service.access.principals import Principal, RequestCaller
from toolchat.service.api.background.checkpoints import CheckpointAdvisor
from toolchat.service.api.background.records import MAX_AGE, BackgroundQuestion, BackgroundRecords, Event, State
from toolchat.service.api.paused_turns import turn_of, turn_record
from toolchat.service.api.problems import problem
from toolchat.service.observability.logs import hashed
from toolchat.service.observability.observer import MeasuredRequest
from toolchat.service.request_state import RequestState, with_state
from toolchat.state.base import Lock, LockLost, decoding
from toolchat.tool_calling.caller import current_caller
from toolchat.tool_calling.context import ToolContext

_MAX_CRASHES = 3
_FLUSH_SECONDS = 0.25
_TEMPORARY = {"overloaded", "quota-exceeded", "session-busy", "store-unavailable"}
"""Codes of problems that end by themselves: the question is tried again, and continues at its last checkpoint."""
_COMPLETED = {"done", "response.completed", "response.incomplete"}
_LAST = {*_COMPLETED, "error", "response.failed"}
"""Names of events that end an answer: nothing follows except for one of the same kind."""
_CANCELLED: Event = ("cancelled", "{}")
_OWN_HEADERS = (b"content-type", b"application/json"), (b"accept", b"text/event-stream")


class Attempt:
    """One try of a question, under its lock; also the client to which the application sends the answer."""

    def __init__(self, app: ASGIApp, records: BackgroundRecords, question: BackgroundQuestion, lock: Lock) -> None:
        self._app, self._records, self._question, self._lock = app, records, question, lock
        self._body = b""
        self._state = RequestState(own_address=question.service, form="text/event-stream")
        if question.principal.name:
            self._state.summary["principal"] = question.principal.name
        self._earlier: ChatResponse | None = None
        """The turn at the last checkpoint of an earlier try."""
        self._is_stream, self._rest = False, b""
        self._events: list[Event] = []
        """Those that are not stored yet."""
        self._last: list[Event] = []
        """Those that end the answer."""
        self._writing = asyncio.Lock()

    async def take_over(self, rights: Callable[[Principal], Principal | None]) -> BackgroundQuestion:
        """Begin the next try of a question, and return it as :meth:`run` does."""
        body, turn = await self._records.asked(self._question)
        with decoding("the checkpoint of this question cannot be read"):
            self._earlier = turn_of(from_json(turn)) if turn else None
        if self._question.state == "running":  # it was not stored how the last try ended, so its process has died
            self._question = self._question.after_crash(len(self._earlier.executions) if self._earlier else 0)
        if await self._records.is_cancelled(self._question):
            return await self._end("cancelled", _CANCELLED, untried=CLIENT_GONE)
        principal = rights(self._question.principal)
        if principal is None or self._question.crashes >= _MAX_CRASHES or self._question.is_late():
            error = _refusal(self._question, principal)
            document = problem(error, hashed(self._question.identifier))
            return await self._end("failed", ("failed", to_json(document).decode()), untried=error.code)
        self._question = replace(self._question, tries=self._question.tries + 1, principal=principal)
        await self._store()
        return await self.run(body)

    async def run(self, body: bytes) -> BackgroundQuestion:
        """Answer a question, and return it as it was stored then: queued if it is to be tried again."""
        self._body = body
        try:
            if await self._is_cancelled_before(self._app(self._scope(), self._receive, self._send)):
                return await self._end("cancelled", _CANCELLED)
        except asyncio.CancelledError:  # this process shuts down, which is no crash
            with suppress(LockLost, StoreUnavailable):
                await self._end("queued")
            raise
        last = self._last or [("failed", "{}")]
        if last[-1][0] in _COMPLETED:
            return await self._end("completed", *last)
        if self._state.will_retry or self._state.outcome == "draining":
            return await self._end("queued", ("waiting", last[-1][1]))
        return await self._end("failed", *last)

    async def _is_cancelled_before(self, answering: Awaitable[None]) -> bool:
        """Answer, and store the events, until it has ended or its cancellation was requested."""
        running = asyncio.ensure_future(answering)
        try:
            while not (await asyncio.wait([running], timeout=_FLUSH_SECONDS))[0]:
                if self._events:
                    await self._store()
                if await self._records.is_cancelled(self._question):
                    self._state.outcome = CLIENT_GONE
                    return True
            await running
            return False
        except Exception:  # the next try, here or in another process, counts it
            self._state.outcome, self._state.will_retry = CLIENT_GONE, True
            raise
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _save(self, turn: ChatResponse) -> None:
        # What is in the context, the request brings again.
        self._earlier = replace(turn, context=ToolContext())
        try:
            await self._store(to_json(turn_record(self._earlier)))
        except LockLost:
            raise SessionBusy("another process has taken the question over") from None

    async def _end(self, state: State, *last: Event, untried: str = "") -> BackgroundQuestion:
        """End this try, and the question unless it is queued again; ``untried`` counts one that ends without a try."""
        self._events.extend(last)
        await self._store(b"" if self._earlier and state != "queued" else None, state)
        if untried:
            self._state.outcome = untried
            MeasuredRequest().end(self._question.path, self._state, perf_counter())
        return self._question

    async def _store(self, turn: bytes | None = None, state: State = "running") -> None:
        """Store the question, its turn at a checkpoint, and the events that have come since the last time."""
        async with self._writing:
            events, question = list(self._events), replace(self._question, state=state)
            self._question = await self._records.store(question, self._lock, events, turn)
            del self._events[: len(events)]

    def _scope(self) -> Scope:
        question = self._question
        given = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in question.headers]
        current_caller.set(RequestCaller.from_request(question.principal, question.address, given))
        self._state.background = CheckpointAdvisor(question.identifier, self._earlier, self._save)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": question.path,
            "raw_path": question.path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [*given, *_OWN_HEADERS, (b"x-request-id", hashed(question.identifier).encode())],
            "server": ("toolchat", None),
            "client": (question.address, 0),
        }
        return with_state(scope, self._state)

    async def _receive(self) -> Message:
        if not self._body:
            await asyncio.Event().wait()  # the client never leaves
        body, self._body = self._body, b""
        return {"type": "http.request", "body": body, "more_body": False}

    async def _send(self, message: Message) -> None:
        if (failure := self._state.failure) is not None and failure.code in _TEMPORARY:
            self._state.will_retry = not self._question.is_late(failure.retry_after or 0)
        if message["type"] == "http.response.start":
            self._is_stream = dict(message["headers"]).get(b"content-type", b"").startswith(b"text/event-stream")
            return
        self._rest += message.get("body", b"")
        if not self._is_stream:
            self._last = [("failed", self._rest.decode() or "{}")]
            return
        *blocks, self._rest = self._rest.split(b"\n\n")
        for event in filter(None, map(_event, blocks)):
            (self._last if event[0] in _LAST else self._events).append(event)


def _event(block: bytes) -> Event | None:
    """The name and the data of an event; ``None`` for a comment."""
    head, found, data = block.decode().partition("data: ")
    return (head.partition("event: ")[2].rstrip(), data) if found else None


def _refusal(question: BackgroundQuestion, principal: Principal | None) -> ToolchatError:
    if principal is None:
        return Unauthorized("the key that asked has been withdrawn")
    if question.crashes >= _MAX_CRASHES:
        return ToolchatError(f"{_MAX_CRASHES} processes died at the same point of this question", retryable=False)
    return DeadlineExceeded(f"the question was not answered within {MAX_AGE // 60} minutes")
