"""The route of AG-UI, ``POST /ag-ui``."""

from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from toolchat.errors import InvalidRequest, NotFound, ToolchatError
from toolchat.service.api import problems
from toolchat.service.api.approvals import PendingTurn
from toolchat.service.api.body_limits import body_of
from toolchat.service.api.dependencies import refuse_cross_site
from toolchat.service.api.fast_router import QuestionRoute
from toolchat.service.api.guard import ProtocolAdapter
from toolchat.service.api.parameters import require_json
from toolchat.service.api.responses.answers import answer_prompt
from toolchat.service.api.responses.event_stream import EVENT_SCHEMA
from toolchat.service.api.schemas import STREAM_RESPONSES
from toolchat.service.api.service import ServiceState, service_state
from toolchat.service.api.sessions import SESSION_HEADER, conversation_by_header
from toolchat.service.protocols.ag_ui.answers import RunWriter
from toolchat.service.protocols.ag_ui.requests import Resumed, RunInput
from toolchat.service.protocols.pages import MAX_BODY_BYTES, PageStream, page_prompt
from toolchat.service.protocols.wire import BadRequest, read_request

_BODY: dict[str, Any] = {
    "type": "object",
    "required": ["threadId", "runId", "messages"],
    "properties": {"messages": {"type": "array", "items": {"type": "object"}}},
    "example": {"threadId": "t-1", "runId": "r-1", "messages": [{"id": "m-1", "role": "user", "content": "Hi"}]},
}
_REQUEST = {"required": True, "content": {"application/json": {"schema": _BODY}}}
_EVENTS = {"description": "AG-UI's events", "content": {PageStream.media_type: {"schema": EVENT_SCHEMA}}}


async def run(request: Request) -> Response:
    """Continue the conversation of a page that speaks AG-UI; the service runs its tools itself.

    The messages of the request are the conversation; with the header `X-Session-ID` the service remembers it instead.
    Calls of the page's `tools` end the run, and the page sends their results as messages. Calls that require approval
    are interrupts; the request with `resume` resumes the answer.
    """
    refuse_cross_site(request)
    require_json(request)
    service, sent = service_state(request), read_request(RunInput, await body_of(request))
    conversation_id, resumed = conversation_by_header(request), sent.resumed()
    tools = [] if resumed else sent.functions_of_page()
    stream = PageStream(tools, in_session=bool(conversation_id))
    ids = {"threadId": sent.thread_id, "runId": sent.run_id}
    stream.writer = partial(RunWriter, stream.context, ids, resumed.shown if resumed else {})
    if resumed:
        pending = await _pending(service, resumed)
        return await answer_prompt(request, pending.prompt(service.chat, resumed.approvals), stream, taken=pending)
    prompt = await page_prompt(service, sent.conversation(service.chat.system_text), tools, conversation_id)
    return await answer_prompt(request, prompt, stream)


async def _pending(service: ServiceState, resumed: Resumed) -> PendingTurn:
    pending = await service.approvals.find(resumed.turn_id, resumed.approvals)
    # A paused turn can be resumed once, so all of its calls are decided together.
    if missing := ", ".join(call["id"] for call in pending.calls if call["id"] not in resumed.approvals):
        raise InvalidRequest(f"resume: decide about every interrupt of the run ({missing})")
    return pending


def error_response(error: ToolchatError, request_id: str) -> Response:
    """A problem document; the kind of error that is OpenAI's own becomes the service's."""
    known = InvalidRequest(error.detail) if isinstance(error, BadRequest) else error
    return problems.error_response(known, request_id)


def add_routes(added: APIRouter) -> None:
    """Add the route."""
    added.add_api_route(
        "/ag-ui",
        run,
        methods=["POST"],
        tags=["AG-UI"],
        summary="Chat, in the format of AG-UI",
        response_class=Response,
        responses=STREAM_RESPONSES | problems.problems(InvalidRequest, NotFound) | {200: _EVENTS},
        route_class_override=QuestionRoute,
        openapi_extra={"requestBody": _REQUEST, "parameters": [SESSION_HEADER]},
    )


AG_UI = ProtocolAdapter("/ag-ui", add_routes, error_response, MAX_BODY_BYTES)
