"""The route of the audit trail."""

from collections.abc import AsyncGenerator, Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from toolchat.errors import StoreUnavailable, ToolchatError, ValidationFailed
from toolchat.service.api.problems import problems
from toolchat.service.api.service import Service

router = APIRouter(tags=["Approvals"])
_MEDIA_TYPE = "application/jsonl"
_TIME = "A time of ISO 8601, in UTC unless it says otherwise"


def jsonl_responses(*errors: type[ToolchatError]) -> dict[int | str, dict[str, Any]]:
    """The responses of a route that answers by :func:`jsonl`, for OpenAPI."""
    content = {_MEDIA_TYPE: {"schema": {"type": "string"}}}
    return {200: {"description": "One JSON object a line", "content": content}, **problems(*errors)}


async def jsonl(entries: AsyncGenerator[Mapping[str, Any], None]) -> StreamingResponse:
    """Objects from the store, one JSON object a line."""
    lines = _lines(entries)
    first = await anext(lines, b"")  # so that a store that is away gets a status of its own
    return StreamingResponse(_from(first, lines), media_type=_MEDIA_TYPE, headers={"Cache-Control": "no-store"})


@router.get(
    "/audit",
    response_class=StreamingResponse,
    responses=jsonl_responses(ValidationFailed, StoreUnavailable),
    summary="Export the decisions about calls",
)
async def audit(
    service: Service,
    begin: Annotated[datetime | None, Query(alias="from", description=_TIME)] = None,
    to: Annotated[datetime | None, Query(description=_TIME)] = None,
    tenant: str = "",
    tool: str = "",
) -> StreamingResponse:
    """List who decided what about which call, one JSON object a line, the newest first."""
    return await jsonl(service.approvals.audit.entries(begin, to, tenant=tenant, tool=tool))


async def _lines(entries: AsyncGenerator[Mapping[str, Any], None]) -> AsyncGenerator[bytes, None]:
    async for each in entries:
        yield to_json(each) + b"\n"


async def _from(first: bytes, lines: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    yield first
    async for line in lines:
        yield line
