"""Streamed answers: the events of ``text/event-stream``, and the response that sends them while the model writes.

Event types: ``tool_call_started``, ``tool_call_progress``, ``tool_call_finished``, ``delta``, ``usage``, ``done`` and
``error``; a notice of an advisor is sent under its own name, such as ``todo``.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from math import inf
from typing import Any, ClassVar

from fastapi import Request, Response
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from toolchat.chat.request import ChatEvent, Notice
from toolchat.errors import CLIENT_GONE, ToolchatError
from toolchat.models.base import ChatResponse, TextDelta
from toolchat.service.api.problems import as_toolchat_error, problem
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.responses.formats import AnswerFormat, JsonDocument, PlainText
from toolchat.service.request_state import state_of
from toolchat.tool_calling.events import (
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
    discard_event,
    parse_arguments,
)

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment of server-sent events."""
EVENT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["data"],
    "properties": {
        "event": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "id": {"type": "string"},
    },
}
"""One event of a stream, for OpenAPI: readers apply the schema of ``text/event-stream`` to each event."""


class StreamFormat(AnswerFormat):
    """A format that is sent while the model writes."""

    media_type = "text/event-stream"
    parameters = "; charset=utf-8"
    writer: Callable[[ActiveRequest], "StreamWriter"]
    """Creates the writer of one answer; writers remember what they have written."""

    async def respond(self, active: ActiveRequest) -> Response:
        return StreamedAnswer(active, self)

    def headers(self, active: ActiveRequest, response: ChatResponse | None = None) -> dict[str, str]:
        return super().headers(active, response) | {"X-Accel-Buffering": "no"}  # nginx would buffer the stream


class StreamWriter(ABC):
    """Encodes the events of one streamed answer as bytes; an event that the format does not have is empty."""

    text_frame: tuple[bytes, bytes] | None = None
    """The bytes around a piece of text as JSON, while the pieces differ in their text alone; the answer writes them.

    A writer sets it after the first piece, and removes it as long as text needs more than that.
    """

    def __init__(self, active: ActiveRequest) -> None:
        self.active = active

    def begin(self) -> bytes:
        """Encode what is sent at once; without it the stream begins with the first event."""
        return b""

    def keep_alive(self) -> bytes:
        """The bytes that keep a silent stream open."""
        return KEEP_ALIVE

    @abstractmethod
    def event(self, event: ChatEvent) -> bytes: ...

    @abstractmethod
    def done(self, response: ChatResponse) -> bytes: ...

    @abstractmethod
    def on_error(self, error: ToolchatError) -> bytes:
        """Encode an error after the first byte; it ends the stream."""


_TEXT = "a text, which takes the place of this one"


def frame_of(write: Callable[[str], bytes]) -> tuple[bytes, bytes]:
    """The bytes that a function writes around a text."""
    before, _, after = write(_TEXT).partition(to_json(_TEXT))
    return before, after


_EXAMPLE = 'event: delta\ndata: {"text":"北京现在是 17:30。"}\n\nevent: done\ndata: {"answer":"北京现在是 17:30。"}\n\n'

_EVENTS = (
    "Events, each with a JSON object: `tool_call_started`, `tool_call_finished` (an entry of `tool_calls`), `delta` "
    "(`text`), the notices of advisors, `usage`, then `done` (a ChatAnswer), or `error` (a Problem) and no `done`"
)


_TEXT_FRAME = (b'event: delta\ndata: {"text":', b"}\n\n")


class EventWriter(StreamWriter):
    """Writes each event as its type and a JSON object."""

    def __init__(self, active: ActiveRequest) -> None:
        super().__init__(active)
        # A browser that loses the connection reconnects with this id, and gets 204 to stop it.
        self._id = b"id: %b\n" % active.request_id.encode()

    def keep_alive(self) -> bytes:
        return self._with_id(super().keep_alive())

    def event(self, event: ChatEvent) -> bytes:
        if isinstance(event, TextDelta):
            self.text_frame = _TEXT_FRAME
            return self._write("delta", {"text": event.text})
        if isinstance(event, ToolCallStarted):
            call, arguments = event.call, parse_arguments(event.call)
            begun = {"id": call.id, "name": call.name, "arguments": arguments, "round": event.round}
            return self._write("tool_call_started", begun)
        if isinstance(event, ToolCallProgress):
            return self._write("tool_call_progress", event.to_dict())
        if isinstance(event, ToolCallFinished):
            return self._write("tool_call_finished", event.to_dict())
        return self._write(event.name, event.data) if isinstance(event, Notice) else b""

    def done(self, response: ChatResponse) -> bytes:
        usage = self._write("usage", response.usage.to_dict())
        return usage + self._write("done", self.active.document(response))

    def on_error(self, error: ToolchatError) -> bytes:
        return self._write("error", problem(error, self.active.request_id))

    def _write(self, name: str, data: Mapping[str, Any]) -> bytes:
        return self._with_id(b"event: %b\ndata: %b\n\n" % (name.encode(), to_json(data, inf_nan_mode="strings")))

    def _with_id(self, piece: bytes) -> bytes:
        identifier, self._id = self._id, b""
        return identifier + piece


class ServerSentEvents(StreamFormat):
    """Server-sent events, each with a JSON object."""

    documentation: ClassVar = {"schema": {**EVENT_SCHEMA, "description": _EVENTS}, "example": _EXAMPLE}
    writer = EventWriter

    def short_circuit(self, request: Request) -> Response | None:
        """Answer a browser that reconnects with 204, which stops it; else the model would run twice."""
        return Response(status_code=204) if "last-event-id" in request.headers else None


class EventStream(Response):
    """Sends a response in pieces while its end is still being produced."""

    # The status line goes out with the first piece, so that an error before it still has its own HTTP status; it is
    # raised, and the exception handlers answer. After the first piece an error becomes the last piece. Comments keep a
    # silent stream open: proxies close connections that are silent for 60 s.

    def __init__(self, media_type: str, keep_alive: float, begin: float = inf) -> None:
        # As Starlette's own streams: without a body, and so without its length.
        self.status_code, self.media_type, self.background = 200, media_type, None
        self.init_headers()
        self._longest_silence, self._first_silence = keep_alive, min(begin, keep_alive)
        self.started = False
        """Whether the status line and the headers have been sent."""
        self._writing = False
        self._last_sent = time.monotonic()
        self._keeper: asyncio.Task[None] | None = None

    async def produce(self) -> bytes:
        """Send pieces by :meth:`write`, and return the last one."""
        raise NotImplementedError

    def on_error(self, error: ToolchatError) -> bytes:
        """Encode an error after the first piece."""
        raise NotImplementedError

    def keep_alive(self) -> bytes:
        return KEEP_ALIVE

    def answer_headers(self) -> Mapping[str, str]:
        """The headers that are known when the first piece is sent."""
        return {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        self._send = send
        # A task only for an answer that is silent for so long: most are complete before.
        begin = asyncio.get_running_loop().call_later(self._first_silence, self._begin_keeping_open)
        try:
            await self.write(await self.produce(), is_last=True)
        except (Exception, asyncio.CancelledError) as error:
            # Before the first byte the handlers answer with a status; without a client there is nobody to write to.
            state = state_of(scope)
            client_is_gone = isinstance(error, asyncio.CancelledError) and state.outcome == CLIENT_GONE
            if not self.started or client_is_gone:
                raise
            last = as_toolchat_error(error)
            state.fail(last)
            await self.write(self.on_error(last), is_last=True)
        finally:
            begin.cancel()
            if self._keeper is not None:
                self._keeper.cancel()

    def _begin_keeping_open(self) -> None:
        self._keeper = asyncio.create_task(self._keep_open())

    async def write(self, piece: bytes, *, is_last: bool = False) -> None:
        if not self.started:
            self.started = True
            added = {"content-length": str(len(piece)), **self.answer_headers()} if is_last else self.answer_headers()
            self.raw_headers += [(name.lower().encode(), value.encode("latin-1")) for name, value in added.items()]
            await self._send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        self._writing = True
        try:
            await self._send({"type": "http.response.body", "body": piece, "more_body": not is_last})
        finally:
            self._writing = False
            self._last_sent = time.monotonic()

    async def _keep_open(self) -> None:
        longest = self._first_silence
        while True:
            silent = time.monotonic() - self._last_sent
            if silent >= longest:
                longest, silent = self._longest_silence, 0
                if not self._writing:  # a piece that waits for a slow client is not silence
                    await self.write(self.keep_alive())
            await asyncio.sleep(longest - silent)


class StreamedAnswer(EventStream):
    """Sends an answer while the model writes it."""

    def __init__(self, active: ActiveRequest, form: StreamFormat) -> None:
        tuning = active.service.tuning
        super().__init__(form.media_type + form.parameters, tuning.stream_keep_alive, tuning.stream_begin)
        self._active = active
        self._form = form
        self._writer = form.writer(active)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._active.service.admission.slot() as self._active.reservation:
            await super().__call__(scope, receive, send)

    async def produce(self) -> bytes:
        if begin := self._writer.begin():
            await self.write(begin)
        response = await self._form.finish(self._active, await self._active.stream(self._emit))
        return self._writer.done(response)

    def on_error(self, error: ToolchatError) -> bytes:
        return self._writer.on_error(error)

    def keep_alive(self) -> bytes:
        return self._writer.keep_alive()

    def answer_headers(self) -> Mapping[str, str]:
        return self._form.headers(self._active)

    def _emit(self, event: ChatEvent) -> Coroutine[Any, Any, None]:
        frame = self._writer.text_frame
        if frame is not None and isinstance(event, TextDelta):
            # Nearly every event is the next piece of a text, so it is encoded here, whatever the format.
            return self.write(frame[0] + to_json(event.text) + frame[1])
        piece = self._writer.event(event)
        return self.write(piece) if piece else discard_event(event)


EVENTS = ServerSentEvents()

ANSWER_FORMATS: tuple[AnswerFormat, ...] = (PlainText(), JsonDocument(), EVENTS)
"""The response formats, in the order in which ``*/*`` prefers them."""
