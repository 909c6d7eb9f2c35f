"""The routes of the AI SDK: ``POST /ai-sdk/chat``, and the one to resume its streams."""

from fastapi import APIRouter, Request, Response

from toolchat.service.api.guard import ProtocolAdapter
from toolchat.service.api.responses.event_stream import EVENT_SCHEMA
from toolchat.service.api.service import service_state
from toolchat.service.api.sessions import SESSION_HEADER, conversation_by_header
from toolchat.service.protocols.ai_sdk.answers import MessageStream, error_response
from toolchat.service.protocols.ai_sdk.requests import UIChatRequest, conversation, decisions
from toolchat.service.protocols.decisions import resume_turn
from toolchat.service.protocols.documentation import Documentation, add_question
from toolchat.service.protocols.pages import answer_page
from toolchat.service.protocols.wire import MAX_BODY_BYTES, json_body, read_request

_EXAMPLE = {
    "id": "c-1",
    "messages": [{"role": "user", "parts": [{"type": "text", "text": "What time is it in London?"}]}],
}
_MESSAGE = {
    "type": "object",
    "required": ["role", "parts"],
    "properties": {
        "role": {"type": "string", "enum": ["system", "user", "assistant"]},
        "parts": {"type": "array", "items": {"type": "object"}},
    },
}
_REQUEST = {
    "type": "object",
    "required": ["messages"],
    "properties": {
        "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
        "system": {"type": ["string", "null"]},
        "tools": {"type": ["object", "null"], "additionalProperties": {"type": "object"}},
    },
    "example": _EXAMPLE,
}
_TEXT = {"text/plain": {"schema": {"type": "string"}}}
_PARTS = {"description": "The AI SDK's UI message stream", "content": {"text/event-stream": {"schema": EVENT_SCHEMA}}}
_ERROR = {"description": "The error message", "content": _TEXT}
_DOCUMENTATION = Documentation("AI SDK", {200: _PARTS, "default": _ERROR})


async def chat(request: Request) -> Response:
    """Continue a conversation of `useChat`; the service runs its tools itself.

    The messages of the request are the conversation. With the header `X-Session-ID` the service remembers it, and reads
    only the last user message. The page runs the `tools` of the request. Calls that require approval are requested in
    the stream; the request with the user's decisions resumes the answer.
    """
    sent, conversation_id = read_request(UIChatRequest, await json_body(request)), conversation_by_header(request)
    own, decided = sent.functions_of_page(), decisions(sent.continued_message())
    stream = MessageStream(decided.approvals if decided else (), own, in_session=bool(conversation_id))
    if decided:
        return await resume_turn(request, decided, own, stream)
    instructions = "\n\n".join(filter(None, (service_state(request).chat.system_text, sent.system)))
    return await answer_page(request, conversation(sent.messages, instructions), own, conversation_id, stream)


async def resume() -> Response:
    """Answer `useChat({resume: true})`: nothing runs, because an answer ends with the connection of its page."""
    return Response(status_code=204)


def add_routes(added: APIRouter) -> None:
    """Add the routes."""
    added.add_api_route("/ai-sdk/chat/{chat}/stream", resume, status_code=204, include_in_schema=False)
    summary = "Chat, in the format of the AI SDK's useChat"
    add_question(added, "/ai-sdk/chat", chat, summary, _REQUEST, SESSION_HEADER, documentation=_DOCUMENTATION)


AI_SDK = ProtocolAdapter("/ai-sdk/", add_routes, error_response, MAX_BODY_BYTES)
