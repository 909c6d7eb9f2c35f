"""The routes of the alarms: ask the model to set one, list them, delete one."""

from collections.abc import Sequence
from typing import Literal

from dishka.integrations.fastapi import DishkaRoute, FromDishka
from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field

from app.tools.alarms.alarms import Alarm, AlarmIdempotency, AlarmOrder, AlarmStore
from app.tools.alarms.tools import AlarmTools
from app.user_clock import ZONE, DateTimeTools
from toolchat import CrossSite, NotConfigured, NotFound, ValidationFailed
from toolchat.service import (
    IdempotencyKey,
    IdempotentRequest,
    Owner,
    QuestionParameter,
    Service,
    answer_once,
    problems,
    question_routes,
    require_same_site,
)

router = APIRouter(tags=["Alarms"], route_class=DishkaRoute)

_ALARM = QuestionParameter(
    "帮我设置一个10分钟以后的闹钟，确认",
    {"半小时": "半小时后叫醒我，确认", "English": "Set an alarm in 10 minutes, yes"},
    url_of_post=True,
)


class AlarmRecord(BaseModel):
    """An alarm."""

    id: str
    time: str = Field(description="ISO-8601, in the time zone Asia/Shanghai")
    zone: str
    status: Literal["waiting", "fired"]


@question_routes(router, "/tool/alarm", _ALARM, once=True, summary="Write tool: setAlarm, once per key")
async def set_alarm(
    request: Request,
    service: Service,
    owner: Owner,
    idempotency_key: IdempotencyKey,
    store: FromDishka[AlarmIdempotency],
    clock: FromDishka[DateTimeTools],
    alarm: FromDishka[AlarmTools],
) -> Response:
    """Let the model set an alarm. The question is the parameter `query` or the body `{"query": ...}`.

    A GET gets 405: browsers and link previews can repeat it on their own.
    """
    idempotent = IdempotentRequest(owner, idempotency_key, await _ALARM.read(request))
    # The key names the request, so an alarm of a first, failed attempt is found by the second.
    order = AlarmOrder(owner, request=idempotent.name)
    asking = service.chat.prompt(idempotent.question).tools(clock, alarm).tool_context({"order": order})
    return await answer_once(request, asking, store, idempotent)


@router.get(
    "/tool/alarms",
    summary="List the tenant's alarms",
    response_model=list[AlarmRecord],
    responses=problems(ValidationFailed, NotConfigured),
)
async def alarms(owner: Owner, store: FromDishka[AlarmStore]) -> Sequence[AlarmRecord]:
    """List the tenant's alarms, sorted by time."""
    return [_record(each) for each in await store.of(owner)]


@router.delete(
    "/tool/alarms/{identifier}",
    summary="Delete an alarm",
    dependencies=[Depends(require_same_site)],
    response_model=AlarmRecord,
    responses=problems(CrossSite, NotFound, ValidationFailed, NotConfigured),
)
async def delete_alarm(identifier: str, owner: Owner, store: FromDishka[AlarmStore]) -> AlarmRecord:
    """Delete one of the tenant's alarms and return it."""
    return _record(await store.delete(owner, identifier))


def _record(alarm: Alarm) -> AlarmRecord:
    time = alarm.at.astimezone(ZONE).isoformat(timespec="seconds")
    return AlarmRecord(id=alarm.id, time=time, zone=ZONE.key, status="fired" if alarm.is_due else "waiting")
