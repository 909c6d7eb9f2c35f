"""Approval routes: show the calls that wait for approval, resume their answer, and export what was decided."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool
from pydantic_core import PydanticSerializationError, from_json, to_json

from toolchat.chat.request import Approval
from toolchat.errors import DependencyMissing, NotFound, SessionBusy, StoreUnavailable, ValidationFailed
from toolchat.service.api.advisors import SessionLockAdvisor
from toolchat.service.api.approval_records import CURSOR_PATTERN, AlreadyDecided, ApprovalByAnother, list_approvals
from toolchat.service.api.parameters import Parameter
from toolchat.service.api.problems import problems
from toolchat.service.api.responses.answers import answer_prompt
from toolchat.service.api.responses.formats import (
    accepted_format,
    json_lines,
    json_lines_responses,
    json_response,
    negotiate,
)
from toolchat.service.api.schemas import ANSWER_RESPONSES, ApprovalDocument, Approvals
from toolchat.service.api.service import Service
from toolchat.service.api.tool_routes import RUN_FORMS

router = APIRouter(tags=["Approvals"])
_TOKEN = Parameter(
    "X-Approval-Token",
    {"type": "string"},
    "The token of an approval link, in place of a key; valid for this approval until the decision",
)
_WITH_TOKEN = {"parameters": [_TOKEN.documented("header")]}
_TIME = "A time of ISO 8601, in UTC unless it says otherwise"


def _sendable(arguments: dict[str, Any]) -> dict[str, Any]:
    """Check that arguments can be encoded as JSON: no lone surrogate, no NaN, no deep nesting."""
    try:
        from_json(to_json(arguments, inf_nan_mode="constants"), allow_inf_nan=False)
    except (PydanticSerializationError, RecursionError) as error:
        raise ValueError("cannot be encoded as JSON") from error
    return arguments


class Decision(BaseModel):
    """A decision on one call."""

    model_config = ConfigDict(extra="forbid")

    approved: StrictBool
    reason: str = Field("", max_length=1000, description="Sent to the model if the call is rejected")
    arguments: Annotated[dict[str, Any], AfterValidator(_sendable)] | None = Field(
        None, description="Replaces the model's arguments"
    )

    def as_approval(self) -> Approval:
        """Convert the decision for the chat client."""
        return Approval(
            self.approved, self.reason, None if self.arguments is None else to_json(self.arguments).decode()
        )


class Decisions(BaseModel):
    """Decisions by call id; a call without one is rejected."""

    model_config = ConfigDict(extra="forbid")

    decisions: dict[str, Decision] = Field(max_length=200)


@router.get(
    "/approvals/{identifier}",
    openapi_extra=_WITH_TOKEN,
    response_model=ApprovalDocument,
    response_model_exclude_unset=True,
    responses=problems(NotFound, DependencyMissing),
    summary="Show the calls that wait for approval, or what was decided",
)
async def show(service: Service, identifier: str) -> Response:
    """Show the calls of an answer that waits for approval, and its question, without deciding about them.

    Who asked and who may decide see it. Once it was decided, it shows the decision and what came of it, until it would
    have expired.
    """
    return json_response(await service.approvals.show(identifier))


@router.get(
    "/approvals",
    openapi_extra=_WITH_TOKEN,
    response_model=Approvals,
    response_model_exclude_unset=True,
    responses=problems(ValidationFailed),
    summary="List approvals",
)
async def listed(
    service: Service,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    before: Annotated[str, Query(pattern=CURSOR_PATTERN, description="`next` of the page before")] = "",
) -> Response:
    """List what the client may decide or has asked: first what waits, then what was decided, the newest first."""
    found, following = await list_approvals(service.store, limit, before)
    return json_response({"approvals": [service.approvals.document(each) for each in found], "next": following})


@router.post(
    "/approvals/{identifier}",
    openapi_extra=_WITH_TOKEN,
    response_class=Response,
    responses={
        **ANSWER_RESPONSES,
        **problems(NotFound, AlreadyDecided, ApprovalByAnother, DependencyMissing, SessionBusy),
    },
    summary="Approve or reject the calls of an answer, and resume it",
)
async def decide(request: Request, service: Service, identifier: str, decisions: Decisions) -> Response:
    """Resume a turn that paused because a tool needs approval: by who asked, or by somebody else with a role.

    The paused answer has `finish_reason` `approval_required` and this path's id under `approval`. Each id can be used
    once, at any replica; a call without a decision is rejected. If the request is refused before a tool runs, as with
    409 `session-busy`, the id stays valid.
    """
    if response := accepted_format(request).short_circuit(request):
        return response
    approvals = {call_id: decision.as_approval() for call_id, decision in decisions.decisions.items()}
    waiting = await service.approvals.find(identifier, approvals)
    is_direct = waiting.turn.is_direct
    prompt = waiting.prompt(service.manual_client if is_direct else service.chat, approvals)
    if is_direct and waiting.asked.conversation:  # as the call would have had it
        prompt = prompt.advisors(SessionLockAdvisor(service.memory))
    return await answer_prompt(request, prompt, negotiate(request, RUN_FORMS) if is_direct else None, taken=waiting)


@router.get(
    "/audit",
    response_class=StreamingResponse,
    responses=json_lines_responses(ValidationFailed, StoreUnavailable),
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
    return await json_lines(service.approvals.audit.entries(begin, to, tenant=tenant, tool=tool))
