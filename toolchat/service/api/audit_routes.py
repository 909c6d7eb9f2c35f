"""The route of the audit trail."""

from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from toolchat.errors import StoreUnavailable, ValidationFailed
from toolchat.service.api.problems import problems
from toolchat.service.api.service import Service

router = APIRouter(tags=["Approvals"])
_MEDIA_TYPE = "application/jsonl"
_TIME = "A time of ISO 8601, in UTC unless it says otherwise"


@router.get(
    "/audit",
    response_class=StreamingResponse,
    responses={
        200: {"description": "One JSON object a line", "content": {_MEDIA_TYPE: {"schema": {"type": "string"}}}},
        **problems(ValidationFailed, StoreUnavailable),
    },
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
    lines = _lines(service.approvals.audit.entries(begin, to, tenant=tenant, tool=tool))
    first = await anext(lines, b"")  # so that a store that is away gets a status of its own
    return StreamingResponse(_from(first, lines), media_type=_MEDIA_TYPE, headers={"Cache-Control": "no-store"})


async def _lines(entries: AsyncGenerator[dict[str, Any], None]) -> AsyncGenerator[bytes, None]:
    async for each in entries:
        yield to_json(each) + b"\n"


async def _from(first: bytes, lines: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    yield first
    async for line in lines:
        yield line
