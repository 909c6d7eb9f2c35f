"""Answers of any length from the store: one JSON object a line."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from toolchat.errors import ToolchatError
from toolchat.service.api.problems import problems

_MEDIA_TYPE = "application/jsonl"


def json_lines_responses(*errors: type[ToolchatError]) -> dict[int | str, dict[str, Any]]:
    """The responses of a route that answers by :func:`json_lines`, for OpenAPI."""
    content = {_MEDIA_TYPE: {"schema": {"type": "string"}}}
    return {200: {"description": "One JSON object a line", "content": content}, **problems(*errors)}


async def json_lines(entries: AsyncGenerator[Mapping[str, Any], None]) -> StreamingResponse:
    """Answer with objects, as they come."""
    first = await anext(entries, None)  # so that a store that is away gets a status of its own

    async def lines() -> AsyncGenerator[bytes, None]:
        if first is not None:
            yield to_json(first) + b"\n"
        async for each in entries:
            yield to_json(each) + b"\n"

    return StreamingResponse(lines(), media_type=_MEDIA_TYPE)
