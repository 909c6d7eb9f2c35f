"""What a form of answers is: the same answer as text, as JSON, as events, or in the words of another protocol."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from fastapi import Request, Response
from pydantic_core import to_json

from app.api.problems import problem
from app.api.responses.active_request import ActiveRequest
from toolchat.chat.request import ChatEvent, Notice
from toolchat.errors import ToolchatError
from toolchat.models.base import ChatResponse, TextDelta
from toolchat.tool_calling.events import ToolCallFinished, ToolCallProgress, ToolCallStarted, parse_arguments

__all__ = [
    "EVENT_SCHEMA",
    "AnswerFormat",
    "BufferedFormat",
    "EventWriter",
    "JsonDocument",
    "PlainText",
    "ServerSentEvents",
    "StreamFormat",
    "StreamWriter",
]


EVENT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["data"],
    "properties": {
        "event": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "id": {"type": "string"},
    },
}
"""Each event of a stream, as OpenAPI's readers take the schema of ``text/event-stream``."""


class AnswerFormat(ABC):
    """One form of an answer: how it is written, whole or as it comes, and how an error is told in it."""

    media_type: ClassVar[str]
    """As ``Accept`` asks for it and OpenAPI shows it."""
    parameters: ClassVar[str] = ""
    """What follows the media type in ``Content-Type``, such as ``; charset=utf-8``."""
    documentation: ClassVar[dict[str, Any]]
    """The media type object of OpenAPI: its schema and an example."""
    negotiated: ClassVar[bool] = True
    """Whether ``Accept`` must allow it; not where the request says in other words how it is to be answered."""

    def short_circuit(self, request: Request) -> Response | None:  # noqa: ARG002
        """The answer to a request for which the model need not be asked; ``None`` for nearly all."""
        return None

    async def finished(self, asked: ActiveRequest, response: ChatResponse) -> ChatResponse:  # noqa: ARG002
        """What is done with a finished answer before it is written: keep something of it, tell it otherwise."""
        return response

    def refused(self, asked: ActiveRequest, error: ToolchatError) -> Response:  # noqa: ARG002
        """Tell an error before the first byte has gone out.

        Raised, as here, it goes to the application's exception handlers, which make a problem document of it.
        """
        raise error


class BufferedFormat(AnswerFormat):
    """A form in which the answer is sent when it is finished."""

    @abstractmethod
    def render(self, asked: ActiveRequest, response: ChatResponse) -> bytes:
        """The body of the response."""


class StreamFormat(AnswerFormat):
    """A form in which the answer is sent while it is made."""

    writer: Callable[[ActiveRequest], "StreamWriter"]
    """Makes one anew for every answer, so that it can remember what it has written."""


class StreamWriter(ABC):
    """Writes one streamed answer, piece by piece; what gives no bytes is not told in this form."""

    def __init__(self, asked: ActiveRequest) -> None:
        self.asked = asked

    def keep_alive(self) -> bytes:
        """What is sent into a long silence: a comment, for those who read server-sent events."""
        return b": keep-alive\n\n"

    @abstractmethod
    def event(self, event: ChatEvent) -> bytes:
        """Something that happens while the question is being answered."""

    @abstractmethod
    def done(self, response: ChatResponse) -> bytes:
        """The end: the finished answer."""

    @abstractmethod
    def on_error(self, error: ToolchatError) -> bytes:
        """The end, too: an error after the first byte."""


class PlainText(BufferedFormat):
    """What a client gets that asks for nothing else."""

    media_type = "text/plain"
    parameters = "; charset=utf-8"
    documentation: ClassVar = {"schema": {"type": "string"}, "example": "北京现在是 17:30。"}

    def render(self, asked: ActiveRequest, response: ChatResponse) -> bytes:  # noqa: ARG002
        """See :meth:`BufferedFormat.render`."""
        return response.message.text.encode()


class JsonDocument(BufferedFormat):
    """The answer, the tool calls behind it, tokens and times: ``ChatAnswer`` in OpenAPI."""

    media_type = "application/json"
    documentation: ClassVar = {"schema": {"$ref": "#/components/schemas/ChatAnswer"}}

    def render(self, asked: ActiveRequest, response: ChatResponse) -> bytes:
        """See :meth:`BufferedFormat.render`."""
        return to_json(asked.document(response), inf_nan_mode="strings")


_EXAMPLE = 'event: delta\ndata: {"text":"北京现在是 17:30。"}\n\nevent: done\ndata: {"answer":"北京现在是 17:30。"}\n\n'

_EVENTS = (
    "Events, each with a JSON object: `tool_call_started`, `tool_call_finished` (an entry of `tool_calls`), `delta` "
    "(`text`), what an advisor tells, `usage`, then `done` (a ChatAnswer), or `error` (a Problem) and no `done`"
)


class EventWriter(StreamWriter):
    """Writes each event as its name and a JSON object."""

    def __init__(self, asked: ActiveRequest) -> None:
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
            return self._written("tool_call_progress", event.to_dict())
        if isinstance(event, ToolCallFinished):
            return self._written("tool_call_finished", event.to_dict())
        return self._written(event.name, event.data) if isinstance(event, Notice) else b""

    def done(self, response: ChatResponse) -> bytes:
        """See :meth:`StreamWriter.done`."""
        usage = self._written("usage", response.usage.to_dict())
        return usage + self._written("done", self.asked.document(response))

    def on_error(self, error: ToolchatError) -> bytes:
        """See :meth:`StreamWriter.on_error`; a problem document."""
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

    def short_circuit(self, request: Request) -> Response | None:
        """Stop a browser that reconnects by itself: 204 does it, and the model is not asked twice."""
        if "last-event-id" not in request.headers:
            return None
        return Response(status_code=204, headers={"Cache-Control": "no-store"})


def _started_record(event: ToolCallStarted) -> dict[str, Any]:
    call = event.call
    return {"id": call.id, "name": call.name, "arguments": parse_arguments(call), "round": event.round}
