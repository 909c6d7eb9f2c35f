"""The routes of the AI SDK: ``POST /ai-sdk/chat``, and the one to resume its streams."""

from typing import Any

from fastapi import APIRouter, Request, Response

from toolchat.chat.client import PromptSpec
from toolchat.service.api.body_limits import body_of
from toolchat.service.api.dependencies import refuse_cross_site
from toolchat.service.api.fast_router import QuestionRoute
from toolchat.service.api.guard import ProtocolAdapter
from toolchat.service.api.parameters import require_json
from toolchat.service.api.responses.answers import answer_prompt
from toolchat.service.api.responses.event_stream import EVENT_SCHEMA
from toolchat.service.api.service import ServiceState, service_state
from toolchat.service.api.sessions import SESSION_HEADER, conversation_by_header
from toolchat.service.protocols.ai_sdk.answers import MessageStream, error_response
from toolchat.service.protocols.ai_sdk.requests import ChatRequest, conversation, decisions, read_request
from toolchat.service.protocols.pages import MAX_BODY_BYTES, page_prompt

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
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["messages"],
                    "properties": {
                        "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
                        "system": {"type": ["string", "null"]},
                        "tools": {"type": ["object", "null"], "additionalProperties": {"type": "object"}},
                    },
                    "example": _EXAMPLE,
                }
            }
        },
    },
    "parameters": [SESSION_HEADER],
}
_TEXT = {"schema": {"type": "string"}}
_ERROR = {"description": "The error message", "content": {"text/plain": _TEXT}}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The AI SDK's UI message stream",
        "content": {MessageStream.media_type: {"schema": EVENT_SCHEMA}},
    },
    "default": _ERROR,
}


async def chat(request: Request) -> Response:
    """Continue a conversation of `useChat`; the service runs its tools itself.

    The messages of the request are the conversation. With the header `X-Session-ID` the service remembers it, and reads
    only the last user message. The page runs the `tools` of the request. Calls that require approval are requested in
    the stream; the request with the user's decisions resumes the answer.
    """
    refuse_cross_site(request)
    require_json(request)
    service, sent = service_state(request), read_request(await body_of(request))
    conversation_id = conversation_by_header(request)
    decided = decisions(sent.continued_message())
    if decided is None:
        stream = MessageStream(client_tools=sent.functions_of_page(), in_session=bool(conversation_id))
        return await answer_prompt(request, await _prompt(service, sent, conversation_id), stream)
    identifier, approvals = decided
    pending = await service.approvals.find(identifier, approvals)
    # The page knows these calls, so the stream sends only their results.
    resumed = frozenset(call.id for call in pending.turn.response.message.tool_calls)
    stream = MessageStream(resumed, in_session=bool(conversation_id))
    return await answer_prompt(request, pending.prompt(service.chat, approvals), stream, taken=pending)


async def resume() -> Response:
    """Answer `useChat({resume: true})`: nothing runs, because an answer ends with the connection of its page."""
    return Response(status_code=204)


def add_routes(added: APIRouter) -> None:
    """Add the routes."""
    added.add_api_route("/ai-sdk/chat/{chat}/stream", resume, status_code=204, include_in_schema=False)
    added.add_api_route(
        "/ai-sdk/chat",
        chat,
        methods=["POST"],
        tags=["AI SDK"],
        summary="Chat, in the format of the AI SDK's useChat",
        response_class=Response,
        responses=_RESPONSES,
        route_class_override=QuestionRoute,
        openapi_extra=_BODY,
    )


async def _prompt(service: ServiceState, sent: ChatRequest, conversation_id: str) -> PromptSpec:
    instructions = "\n\n".join(filter(None, (service.chat.system_text, sent.system)))
    messages = conversation(sent.messages, instructions)
    return await page_prompt(service, messages, sent.functions_of_page(), conversation_id)


AI_SDK = ProtocolAdapter("/ai-sdk/", add_routes, error_response, MAX_BODY_BYTES)
