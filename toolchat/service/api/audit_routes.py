"""The route of the audit trail."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from toolchat.errors import StoreUnavailable, ValidationFailed
from toolchat.service.api.audit import AuditTrail
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
    lines = audit_lines(service.approvals.audit, begin, to, tenant=tenant, tool=tool)
    first = await anext(lines, b"")  # so that a store that is away gets a status of its own
    return StreamingResponse(_from(first, lines), media_type=_MEDIA_TYPE, headers={"Cache-Control": "no-store"})


async def audit_lines(
    trail: AuditTrail, begin: datetime | None, end: datetime | None, **wanted: str
) -> AsyncGenerator[bytes, None]:
    """The records as lines."""
    async for each in trail.entries(_in_utc(begin), _in_utc(end), **wanted):
        yield to_json(each) + b"\n"


async def _from(first: bytes, lines: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    yield first
    async for line in lines:
        yield line


def _in_utc(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at
