"""Response formats and their choice by ``Accept``: plain text, JSON, or a stream (``event_stream.py``)."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from toolchat.errors import NotAcceptable, ToolchatError
from toolchat.models.base import ChatResponse
from toolchat.service.access.hosts import headers
from toolchat.service.api.problems import problems
from toolchat.service.api.responses.active_request import ActiveRequest


class AnswerFormat(ABC):
    """A response format: its media type, its documentation, and the headers and errors that differ from others."""

    media_type: ClassVar[str]
    """The media type without parameters, as in ``Accept`` and OpenAPI."""
    parameters: ClassVar[str] = ""
    """The parameters of ``Content-Type``, such as ``; charset=utf-8``."""
    documentation: ClassVar[dict[str, Any]]
    """The media type object of OpenAPI: a schema and an example."""
    negotiated: ClassVar[bool] = True
    """Whether ``Accept`` must allow it; false if another part of the request chooses the format."""
    error_response: Callable[[ToolchatError, str], Response] | None = None
    """Answers with an error before the first byte, given the request's id; ``None``: as the request's protocol does."""

    def short_circuit(self, request: Request) -> Response | None:  # noqa: ARG002
        """Answer a request without the model; ``None`` if the model is needed, as for nearly all requests."""
        return None

    async def finish(self, active: ActiveRequest, response: ChatResponse) -> ChatResponse:  # noqa: ARG002
        """Change or save a complete answer before it is sent."""
        return response

    @abstractmethod
    async def respond(self, active: ActiveRequest) -> Response:
        """Answer a question; raises ``ToolchatError`` before the first byte."""

    def headers(self, active: ActiveRequest, response: ChatResponse | None = None) -> dict[str, str]:
        """The headers of an answer, computed when they are sent; a stream's go out before there is a ``response``."""
        return active.headers(response)


class BufferedFormat(AnswerFormat):
    """A format that is sent when the answer is complete."""

    async def respond(self, active: ActiveRequest) -> Response:
        async with active.service.admission.slot() as active.reservation:
            response = await self.finish(active, await active.complete())
        headers = self.headers(active, response)
        return Response(self.render(active, response), media_type=self.media_type + self.parameters, headers=headers)

    @abstractmethod
    def render(self, active: ActiveRequest, response: ChatResponse) -> bytes:
        """The body of the response."""


class PlainText(BufferedFormat):
    """The text of the answer; the default format."""

    media_type = "text/plain"
    parameters = "; charset=utf-8"
    documentation: ClassVar = {"schema": {"type": "string"}, "example": "北京现在是 17:30。"}

    def render(self, active: ActiveRequest, response: ChatResponse) -> bytes:  # noqa: ARG002
        return response.message.text.encode()


class JsonDocument(BufferedFormat):
    """The answer with its tool calls, tokens and duration; ``ChatAnswer`` in OpenAPI."""

    media_type = "application/json"
    documentation: ClassVar = {"schema": {"$ref": "#/components/schemas/ChatAnswer"}}

    def render(self, active: ActiveRequest, response: ChatResponse) -> bytes:
        return to_json(active.document(response), inf_nan_mode="strings")


def accepted_format(request: Request, only: AnswerFormat | None = None) -> AnswerFormat:
    if only is not None and not only.negotiated:
        return only
    return negotiate(request, (only,) if only else request.app.state["answer_formats"])


def negotiate(request: Request, forms: tuple[AnswerFormat, ...]) -> AnswerFormat:
    return _best(",".join(headers(request.scope, b"accept")), forms)


@lru_cache(maxsize=256)
def _best(accept: str, forms: tuple[AnswerFormat, ...]) -> AnswerFormat:
    """Choose by quality, then by how exactly a range names the format, then by the order of the header."""
    if not accept.strip():
        return forms[0]
    # Bounded, since the header is the client's and every range is compared with every format.
    ranges = [_media_range(part) for part in accept[:4096].split(",")]
    rank, best = max(((_rank(form, ranges), form) for form in forms), key=lambda ranked: ranked[0])
    if rank[0] <= 0:
        if len(forms) == 1:
            raise NotAcceptable(f"the only form here is {forms[0].media_type}")
        raise NotAcceptable(f"Accept allows none of {', '.join(form.media_type for form in forms)}")
    return best


def _media_range(part: str) -> tuple[str, float]:
    name, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    try:
        return name, min(max(float(quality), 0.0), 1.0)
    except ValueError:
        return name, 0.0


def _rank(form: AnswerFormat, ranges: list[tuple[str, float]]) -> tuple[float, int, int]:
    main_type = form.media_type.split("/", 1)[0]
    for exactness, wanted in ((2, form.media_type), (1, f"{main_type}/*"), (0, "*/*")):
        for position, (name, quality) in enumerate(ranges):
            if name == wanted:
                # If only a wildcard matches, all formats have the same rank, and max keeps the first.
                return quality, exactness, -position
    return 0.0, 0, 0


_MEDIA_TYPE = "application/jsonl"


def json_response(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A document as JSON; FastAPI's own would copy it first, and refuse NaN."""
    return Response(to_json(document, inf_nan_mode="strings"), status, headers, "application/json")


def json_lines_responses(*errors: type[ToolchatError]) -> dict[int | str, dict[str, Any]]:
    """The responses of a route that answers by :func:`json_lines`, for OpenAPI."""
    content = {_MEDIA_TYPE: {"schema": {"type": "string"}}}
    return {200: {"description": "One JSON object a line", "content": content}, **problems(*errors)}


async def json_lines(entries: AsyncGenerator[Mapping[str, Any], None]) -> StreamingResponse:
    first = await anext(entries, None)  # so that a store that is away gets a status of its own

    async def lines() -> AsyncGenerator[bytes, None]:
        if first is not None:
            yield to_json(first) + b"\n"
        async for each in entries:
            yield to_json(each) + b"\n"

    return StreamingResponse(lines(), media_type=_MEDIA_TYPE)
