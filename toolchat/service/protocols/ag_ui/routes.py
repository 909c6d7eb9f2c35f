"""The route of AG-UI, ``POST /ag-ui``."""

from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from toolchat.errors import InvalidRequest, NotFound, ToolchatError
from toolchat.service.api import problems
from toolchat.service.api.guard import ProtocolAdapter
from toolchat.service.api.responses.event_stream import EVENT_SCHEMA
from toolchat.service.api.schemas import STREAM_RESPONSES
from toolchat.service.api.service import service_state
from toolchat.service.api.sessions import SESSION_HEADER, conversation_by_header
from toolchat.service.protocols.ag_ui.answers import RunWriter
from toolchat.service.protocols.ag_ui.requests import RunInput
from toolchat.service.protocols.decisions import resume_turn
from toolchat.service.protocols.documentation import Documentation, add_question
from toolchat.service.protocols.pages import PageStream, answer_page
from toolchat.service.protocols.wire import MAX_BODY_BYTES, BadRequest, json_body, read_request

_BODY: dict[str, Any] = {
    "type": "object",
    "required": ["threadId", "runId", "messages"],
    "properties": {"messages": {"type": "array", "items": {"type": "object"}}},
    "example": {"threadId": "t-1", "runId": "r-1", "messages": [{"id": "m-1", "role": "user", "content": "Hi"}]},
}
_EVENTS = {"description": "AG-UI's events", "content": {PageStream.media_type: {"schema": EVENT_SCHEMA}}}
_RESPONSES = STREAM_RESPONSES | problems.problems(InvalidRequest, NotFound) | {200: _EVENTS}


async def run(request: Request) -> Response:
    """Continue the conversation of a page that speaks AG-UI; the service runs its tools itself.

    The messages of the request are the conversation; with the header `X-Session-ID` the service remembers it instead.
    Calls of the page's `tools` end the run, and the page sends their results as messages. Calls that require approval
    are interrupts; the request with `resume` resumes the answer.
    """
    sent, conversation_id = read_request(RunInput, await json_body(request)), conversation_by_header(request)
    decided, shown = sent.resumed() or (None, {})
    own = sent.functions_of_page()
    stream = PageStream(own, in_session=bool(conversation_id))
    stream.writer = partial(RunWriter, stream.context, {"threadId": sent.thread_id, "runId": sent.run_id}, shown)
    if decided:
        return await resume_turn(request, decided, own, stream)
    messages = sent.conversation(service_state(request).chat.system_text)
    return await answer_page(request, messages, own, conversation_id, stream)


def error_response(error: ToolchatError, request_id: str) -> Response:
    """A problem document; the kind of error that is OpenAI's own becomes the service's."""
    known = InvalidRequest(error.detail) if isinstance(error, BadRequest) else error
    return problems.error_response(known, request_id)


def add_routes(added: APIRouter) -> None:
    """Add the route."""
    summary, documentation = "Chat, in the format of AG-UI", Documentation("AG-UI", _RESPONSES)
    add_question(added, "/ag-ui", run, summary, _BODY, SESSION_HEADER, documentation=documentation)


AG_UI = ProtocolAdapter("/ag-ui", add_routes, error_response, MAX_BODY_BYTES)
