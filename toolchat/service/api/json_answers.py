"""Answers in JSON: a document, or one object a line for what is long."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from fastapi.responses import Response, StreamingResponse
from pydantic_core import to_json

from toolchat.errors import ToolchatError
from toolchat.service.api.problems import problems

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
