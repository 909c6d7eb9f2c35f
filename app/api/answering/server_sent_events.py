"""An answer as server-sent events (WHATWG HTML, section 9.2), live while the model writes."""

from collections.abc import Mapping
from typing import Any, ClassVar

from fastapi import Request, Response
from pydantic_core import to_json

from app.api.answering.asked import Asked
from app.api.answering.format import EVENT_SCHEMA, StreamFormat, StreamWriter
from app.api.problems import problem
from app.chat.request import ChatEvent, Notice
from app.chat_models.base import ChatResponse, TextDelta
from app.errors import ToolchatError
from app.tool_calling.events import ToolCallFinished, ToolCallProgress, ToolCallStarted, parsed_arguments

__all__ = ["EventWriter", "ServerSentEvents"]

_EXAMPLE = 'event: delta\ndata: {"text":"北京现在是 17:30。"}\n\nevent: done\ndata: {"answer":"北京现在是 17:30。"}\n\n'

_EVENTS = (
    "Events, each with a JSON object: `tool_call_started`, `tool_call_finished` (an entry of `tool_calls`), `delta` "
    "(`text`), what an advisor tells, `usage`, then `done` (a ChatAnswer), or `error` (a Problem) and no `done`"
)


class EventWriter(StreamWriter):
    """Writes each event as its name and a JSON object."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        # A browser that lost the connection sends the id back, and is then told to stop.
        self._id = b"id: %b\n" % asked.request_id.encode()

    def keep_alive(self) -> bytes:
        """See :meth:`StreamWriter.keep_alive`."""
        return self._with_id(super().keep_alive())

    def event(self, event: ChatEvent) -> bytes:
        """See :meth:`StreamWriter.event`."""
        if isinstance(event, TextDelta):
            return self._written("delta", {"text": event.text})
        if isinstance(event, ToolCallStarted):
            return self._written("tool_call_started", _started_record(event))
        if isinstance(event, ToolCallProgress):
            return self._written("tool_call_progress", event.as_record())
        if isinstance(event, ToolCallFinished):
            return self._written("tool_call_finished", event.as_record())
        return self._written(event.name, event.data) if isinstance(event, Notice) else b""

    def done(self, response: ChatResponse) -> bytes:
        """See :meth:`StreamWriter.done`."""
        usage = self._written("usage", response.usage.as_record())
        return usage + self._written("done", self.asked.document(response))

    def failed(self, error: ToolchatError) -> bytes:
        """See :meth:`StreamWriter.failed`; a problem document."""
        return self._written("error", problem(error, self.asked.request_id))

    def _written(self, name: str, data: Mapping[str, Any]) -> bytes:
        return self._with_id(b"event: %b\ndata: %b\n\n" % (name.encode(), to_json(data, inf_nan_mode="strings")))

    def _with_id(self, piece: bytes) -> bytes:
        identifier, self._id = self._id, b""
        return identifier + piece


class ServerSentEvents(StreamFormat):
    """Events for tool calls, text, tokens and the end, each with a JSON object."""

    media_type = "text/event-stream"
    parameters = "; charset=utf-8"
    documentation: ClassVar = {"schema": {**EVENT_SCHEMA, "description": _EVENTS}, "example": _EXAMPLE}
    writer = EventWriter

    def without_asking(self, request: Request) -> Response | None:
        """Stop a browser that reconnects by itself: 204 does it, and the model is not asked twice."""
        if "last-event-id" not in request.headers:
            return None
        return Response(status_code=204, headers={"Cache-Control": "no-store"})


def _started_record(event: ToolCallStarted) -> dict[str, Any]:
    call = event.call
    return {"id": call.id, "name": call.name, "arguments": parsed_arguments(call), "round": event.round}
