"""What a form of answers is: the same answer as text, as JSON, as events, or in the words of another protocol."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from fastapi import Request, Response

from app.api.answering.asked import Asked
from app.chat.request import ChatEvent
from app.chat_models.base import ChatResponse
from app.errors import ToolchatError

__all__ = ["EVENT_SCHEMA", "AnswerFormat", "StreamFormat", "StreamWriter", "WholeFormat"]

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

    def without_asking(self, request: Request) -> Response | None:  # noqa: ARG002
        """The answer to a request for which the model need not be asked; ``None`` for nearly all."""
        return None

    async def finished(self, asked: Asked, response: ChatResponse) -> ChatResponse:  # noqa: ARG002
        """What is done with a finished answer before it is written: keep something of it, tell it otherwise."""
        return response

    def refused(self, asked: Asked, error: ToolchatError) -> Response:  # noqa: ARG002
        """Tell an error before the first byte has gone out.

        Raised, as here, it goes to the application's exception handlers, which make a problem document of it.
        """
        raise error


class WholeFormat(AnswerFormat):
    """A form in which the answer is sent when it is finished."""

    @abstractmethod
    def written(self, asked: Asked, response: ChatResponse) -> bytes:
        """The body of the response."""


class StreamFormat(AnswerFormat):
    """A form in which the answer is sent while it is made."""

    writer: Callable[[Asked], "StreamWriter"]
    """Makes one anew for every answer, so that it can remember what it has written."""


class StreamWriter(ABC):
    """Writes one streamed answer, piece by piece; what gives no bytes is not told in this form."""

    def __init__(self, asked: Asked) -> None:
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
    def failed(self, error: ToolchatError) -> bytes:
        """The end, too: an error after the first byte."""
