"""The documents' example that writes: alarms."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Depends, Header, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from app.api.answers import answer_prompt
from app.api.browsers import refuse_cross_site, refuse_unasked_get
from app.api.chat_routes import ANSWER_RESPONSES, MAX_QUERY_CHARS, checked_query
from app.api.problems import problem, problem_response, problems
from app.chat.client import PromptSpec
from app.errors import CrossSite, IdempotencyConflict, NotConfigured, NotFound, ValidationFailed
from app.tools.examples.alarms import Alarm, AlarmOrder, AlarmStore
from app.tools.examples.asking import Tenant, asked, component, prompt
from app.tools.examples.idempotency import IdempotencyStore, OnceAdvisor
from app.tools.examples.settings import ExamplesSettings
from app.tools.examples.tools import AlarmTools, DateTimeTools

__all__ = ["router"]

router = APIRouter()

_ALARM = "帮我设置一个10分钟以后的闹钟"
_GET_WINDOW = timedelta(minutes=1)
"""How long the same GET counts as a repetition, as browsers and previews make them."""

_Alarm = Annotated[str, asked(_ALARM, {"半小时": "半小时后叫醒我", "English": "Set an alarm in 10 minutes"})]
_Key = Annotated[
    str,
    Header(
        pattern="^[ -~]{1,255}$",
        description="Names this wish: the same key with the same question gets the first answer again. "
        "1 to 255 printable ASCII characters",
    ),
]


class AlarmQuestion(BaseModel):
    """The question as a document."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field("", max_length=MAX_QUERY_CHARS, description="The question. Missing or empty: the default.")


class AlarmRecord(BaseModel):
    """An alarm."""

    id: str
    time: str = Field(description="ISO-8601, in the zone of `EXAMPLES_ZONE`")
    zone: str
    status: Literal["waiting", "fired"]


_RESPONSES: dict[int | str, dict[str, Any]] = {
    **ANSWER_RESPONSES,
    200: ANSWER_RESPONSES[200]
    | {
        "headers": ANSWER_RESPONSES[200]["headers"]
        | {"Idempotency-Replayed": {"description": "`true`: the first answer, again", "schema": {"type": "string"}}}
    },
    **problems(CrossSite, IdempotencyConflict),
}


@router.post(
    "/tool/alarm",
    summary="Write tool: setAlarm, once per key",
    dependencies=[Depends(refuse_cross_site)],
    response_class=Response,
    responses=_RESPONSES,
)
async def set_alarm(
    request: Request,
    tenant: Tenant,
    idempotency_key: _Key,
    query: _Alarm = "",
    body: Annotated[AlarmQuestion | None, Body()] = None,
) -> Response:
    """Let the model set an alarm. The question is the parameter `query` or the body `{"query": ...}`.

    A GET is answered with 405, unless `EXAMPLES_ALARM_BY_GET` allows it as in the documents.
    """
    if len(request.headers.getlist("idempotency-key")) > 1:
        raise ValidationFailed("Idempotency-Key: given more than once")
    question = _question(request, query, body)
    key, store = (tenant, idempotency_key), await component(request, IdempotencyStore)
    try:
        known = store.find(key, question)
    except IdempotencyConflict as conflict:
        request.state.outcome = conflict.code
        return problem_response(problem(conflict, request.state.request_id), {"Retry-After": "1"})
    order = AlarmOrder(tenant)
    asking = (await _prompt(request, question, order)).advisors(OnceAdvisor(store, key, question, order))
    response = await answer_prompt(request, asking)
    if known is not None:
        response.headers["Idempotency-Replayed"] = "true"
    return response


@router.get("/tool/alarm", include_in_schema=False, response_class=Response)
async def set_alarm_by_get(request: Request, tenant: Tenant, query: _Alarm = "") -> Response:
    """The documents' own form, where the settings allow it: the same wish within a minute is one alarm."""
    if not (await component(request, ExamplesSettings)).alarm_by_get:
        raise HTTPException(405, headers={"Allow": "POST"})
    refuse_unasked_get(request)
    order = AlarmOrder(tenant, _GET_WINDOW)
    return await answer_prompt(request, await _prompt(request, checked_query(request, query, _ALARM), order))


@router.get(
    "/tool/alarms",
    summary="The tenant's alarms",
    response_model=list[AlarmRecord],
    responses=problems(ValidationFailed, NotConfigured),
)
async def alarms(request: Request, response: Response, tenant: Tenant) -> Sequence[AlarmRecord]:
    """List them, the next due first; they live in this process."""
    response.headers["Cache-Control"] = "no-store"
    settings = await component(request, ExamplesSettings)
    return [_record(each, settings) for each in (await component(request, AlarmStore)).of(tenant)]


@router.delete(
    "/tool/alarms/{identifier}",
    summary="Delete an alarm",
    dependencies=[Depends(refuse_cross_site)],
    response_model=AlarmRecord,
    responses=problems(CrossSite, NotFound, ValidationFailed, NotConfigured),
)
async def delete_alarm(request: Request, response: Response, identifier: str, tenant: Tenant) -> AlarmRecord:
    """Delete one of the tenant's alarms and give it back; a deleted one does not ring."""
    response.headers["Cache-Control"] = "no-store"
    deleted = (await component(request, AlarmStore)).delete(tenant, identifier)
    return _record(deleted, await component(request, ExamplesSettings))


async def _prompt(request: Request, question: str, order: AlarmOrder) -> PromptSpec:
    tools = (await component(request, DateTimeTools), await component(request, AlarmTools))
    return prompt(request, question, *tools).tool_context({"order": order})


def _question(request: Request, query: str, body: AlarmQuestion | None) -> str:
    in_body = body.query if body else ""
    if query and in_body:
        raise ValidationFailed("query: given in the URL and in the body")
    if "\x00" in in_body:
        raise ValidationFailed("query: holds a NUL character")
    return checked_query(request, query or in_body, _ALARM)


def _record(alarm: Alarm, settings: ExamplesSettings) -> AlarmRecord:
    time = alarm.at.astimezone(settings.time_zone).isoformat(timespec="seconds")
    return AlarmRecord(id=alarm.id, time=time, zone=settings.zone, status="fired" if alarm.fired else "waiting")
