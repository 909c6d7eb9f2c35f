"""The route that runs a tool without a model, and the JSON descriptions of tools."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from toolchat.chat.manual_execution import manual_request
from toolchat.chat.request import ChatEvent
from toolchat.errors import (
    CrossSite,
    DeadlineExceeded,
    Draining,
    IdempotencyConflict,
    InvalidRequest,
    NotConfigured,
    NotFound,
    Overloaded,
    QuotaExceeded,
    SessionBusy,
    StoreUnavailable,
    ToolFailed,
    ToolServerUnavailable,
    ValidationFailed,
)
from toolchat.models.base import ChatResponse
from toolchat.service.api.advisors import SessionLockAdvisor
from toolchat.service.api.dependencies import (
    IDEMPOTENCY_KEY,
    REPLAYED,
    TENANT,
    idempotency_key,
    refuse_cross_site,
    scoped_key,
    stored_tenant,
)
from toolchat.service.api.direct_calls import DirectCall
from toolchat.service.api.fast_router import DirectRoute
from toolchat.service.api.idempotency import IdempotentRequest
from toolchat.service.api.parameters import Parameter, Parameters, json_object
from toolchat.service.api.problems import problems
from toolchat.service.api.responses.active_request import ActiveRequest, door_of
from toolchat.service.api.responses.answers import answer_once, answer_prompt
from toolchat.service.api.responses.event_stream import EVENT_SCHEMA, EventWriter, ServerSentEvents
from toolchat.service.api.responses.formats import AnswerFormat, BufferedFormat, json_response, negotiate
from toolchat.service.api.schemas import ApprovalDocument, ToolRun
from toolchat.service.api.service import service_state
from toolchat.service.api.sessions import SESSION_ID, conversation_of
from toolchat.service.api.tool_registry import Entry
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.caller import current_caller
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.events import ToolCallEvent


def describe_module(entry: Entry, questions: Sequence[str] = ()) -> dict[str, Any]:
    """Describe a tool module with its tools, or with the reason why it is not registered."""
    module = entry.module
    state = {"registered": False, "reason": entry.fault} if entry.fault else {"registered": True}
    tools = [_describe_tool(tool, "function") for tool in entry.functions]
    tools += [_describe_tool(tool, "method") for tool in entry.methods]
    about = {"name": module.name, "title": module.title, "path": module.path, **state}
    about |= {"in_conversations": module.in_conversations, "interchangeable": module.interchangeable}
    return about | {"questions": questions, "tools": tools}


def describe_usable(
    entries: Iterable[Entry], starters: Callable[[Entry], Sequence[str]] = lambda _: ()
) -> list[dict[str, Any]]:
    """Describe the modules with a tool that the caller may use, and only such tools; modules without tools as well."""
    may_use = current_caller.get().may_use
    described = []
    for entry in entries:
        module = describe_module(entry, [] if entry.fault else starters(entry))
        declared = {tool.name for tool in entry.module.declared()} | {tool["name"] for tool in module["tools"]}
        if not declared or any(map(may_use, declared)):
            described.append(module | {"tools": [each for each in module["tools"] if may_use(each["name"])]})
    return described


def _describe_tool(tool: ToolCallback, kind: str) -> dict[str, Any]:
    return {
        "name": tool.definition.name,
        "kind": kind,
        "description": tool.definition.description,
        "input_schema": tool.definition.input_schema,
        "sandbox": tool.metadata.sandbox,
        "requires_approval": bool(tool.metadata.requires_approval),
        "approver": tool.metadata.approver,
        "read_only": tool.metadata.is_read_only,
    }


_EXAMPLE = (
    'event: tool_call_started\ndata: {"id":"run_1","name":"rollDice","arguments":{},"round":1}\n\n'
    'event: tool_call_progress\ndata: {"id":"run_1","name":"rollDice","done":1,"of":2,"round":1}\n\n'
    'event: tool_call_finished\ndata: {"id":"run_1","name":"rollDice","outcome":"ok"}\n\n'
    'event: done\ndata: {"id":"run_1","name":"rollDice","outcome":"ok"}\n\n'
)


def _record(active: ActiveRequest, response: ChatResponse) -> dict[str, Any]:
    return response.executions[0].to_dict() | {"request_id": active.request_id}


class _RunDocument(BufferedFormat):
    """The call and its result."""

    media_type = "application/json"
    documentation: ClassVar = {"schema": {"$ref": "#/components/schemas/ToolRun"}}

    def render(self, active: ActiveRequest, response: ChatResponse) -> bytes:
        return to_json(_record(active, response), inf_nan_mode="strings")


class _RunWriter(EventWriter):
    """Writes the events of the call only; no model writes about its result."""

    def event(self, event: ChatEvent) -> bytes:
        return super().event(event) if isinstance(event, ToolCallEvent) else b""

    def done(self, response: ChatResponse) -> bytes:
        return self._write("done", _record(self.active, response))


class _RunEvents(ServerSentEvents):
    documentation: ClassVar = {"schema": EVENT_SCHEMA, "example": _EXAMPLE}
    writer = _RunWriter


RUN_FORMS: tuple[AnswerFormat, ...] = (_RunDocument(), _RunEvents())
"""The formats of a call and its result."""
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The call and its result; a tool's failure is an `outcome`",
        "model": ToolRun,
        "content": {_RunDocument.media_type: {}, _RunEvents.media_type: _RunEvents.documentation},
        "headers": REPLAYED,
    },
    202: {"description": "The call waits for somebody else's approval", "model": ApprovalDocument},
    **problems(InvalidRequest, CrossSite, NotFound, 406, IdempotencyConflict, SessionBusy, 415, ValidationFailed),
    **problems(QuotaExceeded, ToolFailed, DeadlineExceeded),
    **problems(NotConfigured, ToolServerUnavailable, Overloaded, Draining, StoreUnavailable),
}
_BODY = {"content": {"application/json": {"schema": {"type": "object"}}}, "description": "The tool's arguments"}
_NAME = Parameter("name", {"type": "string"}, "The tool's name, as `GET /tools` lists it")
_SESSION = Parameter("sessionId", SESSION_ID, "The session under which the tool stores data, if it does")
_URL = Parameters(_SESSION)


async def run_tool(request: Request) -> Response:
    """Run one tool once, like a model's call, but without a model. The body is the tool's arguments.

    A tool that needs approval requires an `Idempotency-Key`: the request counts as approval, and the tool runs once. If
    somebody else has to approve the call, it waits: 202, and `Location` names the approval.
    """
    refuse_cross_site(request)
    name, key = request.path_params["name"], idempotency_key(request)
    session = _URL.in_url(request).get("sessionId", "") if request.scope["query_string"] else ""
    service = service_state(request)
    tool = service.tools.tool(name)
    if tool.metadata.requires_approval and not key:
        raise InvalidRequest(f"Idempotency-Key: is missing; {name} requires approval, and with the key it runs once")
    arguments = await json_object(request)
    context = {CONVERSATION_ID: conversation_of(session)} if session else {}
    prompt = manual_request(service.manual_client, tool, arguments, context)
    if session:
        # The tool may change what the session stores, as a turn of the session does.
        prompt = prompt.advisors(SessionLockAdvisor(service.memory))
    form = negotiate(request, RUN_FORMS)
    if not key:
        return await answer_prompt(request, prompt, form)
    asked = to_json([name, session, arguments]).decode()
    owner = scoped_key(stored_tenant())
    idempotent = IdempotentRequest(owner, f"tools\n{key}", asked, context.get(CONVERSATION_ID, ""))
    call = await DirectCall.of(prompt)
    if not call.may_run():
        document = await call.wait(service.approvals, f"{idempotent.name} {idempotent.question}")
        return json_response(document, 202, {"Location": f"/approvals/{document['id']}"})
    if call.role:
        await call.record(service.approvals, idempotent.name, door_of(request.scope))
    return await answer_once(request, prompt, service.idempotency, idempotent, form)


def add_tool_route(router: APIRouter) -> None:
    """Add the route that runs a tool."""
    headers = [each.documented("header") for each in (IDEMPOTENCY_KEY, TENANT)]
    router.add_api_route(
        "/tools/{name}",
        run_tool,
        methods=["POST"],
        tags=["Run a tool"],
        response_class=Response,
        responses=_RESPONSES,
        summary="Run a tool without a model",
        route_class_override=DirectRoute,
        openapi_extra={
            "requestBody": _BODY,
            "parameters": [_NAME.documented("path"), _SESSION.documented(), *headers],
        },
    )
