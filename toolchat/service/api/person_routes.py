"""The routes of one person's data: exported, and deleted."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import StreamingResponse

from toolchat.errors import Forbidden, NotFound, SessionBusy, StoreUnavailable
from toolchat.service.access.principals import PRIVACY, current_request_caller
from toolchat.service.api.dependencies import require_same_site
from toolchat.service.api.json_lines import json_lines, json_lines_responses
from toolchat.service.api.personal_data import PersonalData
from toolchat.service.api.problems import problems
from toolchat.service.api.service import Service

router = APIRouter(tags=["Chat"])


async def _data(
    service: Service,
    name: Annotated[
        str, Query(description="The principal as logs name it: a key, or key~person; by default the client's own")
    ] = "",
) -> PersonalData:
    principal = current_request_caller().principal
    if name not in ("", principal.name) and PRIVACY not in principal.roles:
        raise Forbidden(f"the data of others needs the role {PRIVACY}")
    if not (whose := name or principal.name):
        raise NotFound("clients without a key share their data: delete a session by its id")
    return PersonalData(service.store, service.memory, whose)


Data = Annotated[PersonalData, Depends(_data)]


@router.get(
    "/person",
    response_class=StreamingResponse,
    responses=json_lines_responses(Forbidden, NotFound, StoreUnavailable),
    summary="Export a person's data",
)
async def export(data: Data) -> StreamingResponse:
    """List all that is stored for a principal, one JSON object a line: conversations, answers, approvals and so on.

    Decisions about calls are in `/audit`.
    """
    return await json_lines(data.export())


@router.delete(
    "/person",
    status_code=204,
    dependencies=[Depends(require_same_site)],
    responses=problems(Forbidden, NotFound, SessionBusy, StoreUnavailable),
    summary="Delete a person's data",
)
async def delete(data: Data) -> Response:
    """Delete all that is stored for a principal, except for the record of decisions; 204 even if there is nothing.

    Questions in the background are cancelled. If it fails, a part is deleted already, and another try deletes the rest.
    """
    await data.delete()
    return Response(status_code=204)
