"""The route of the AI SDK's stream."""

from typing import Any

from fastapi import APIRouter, Request, Response

from app.api.body_limits import body_of
from app.api.dependencies import refuse_cross_site
from app.api.fast_router import QuestionRoute
from app.api.responses import answer_prompt
from app.api.responses.formats import EVENT_SCHEMA
from app.api.service import ServiceState, service_state
from app.api.sessions import SESSION_HEADER, conversation_by_header, conversation_or_new, last_turn
from app.protocols.ai_sdk.message_stream import MessageStream
from app.protocols.ai_sdk.requests import ChatRequest, conversation, decisions, read_request
from toolchat.chat.client import PromptSpec
from toolchat.tool_calling.context import CONVERSATION_ID

__all__ = ["add_routes"]

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
                    "properties": {"messages": {"type": "array", "minItems": 1, "items": _MESSAGE}},
                    "example": _EXAMPLE,
                }
            }
        },
    },
    "parameters": [SESSION_HEADER],
}
_TEXT = {"schema": {"type": "string"}}
_REFUSED = {"description": "What is wrong, in words", "content": {"text/plain": _TEXT}}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The AI SDK's UI message stream",
        "content": {MessageStream.media_type: {"schema": EVENT_SCHEMA}},
    },
    "default": _REFUSED,
}


async def chat(request: Request) -> Response:
    """Go on with a conversation of `useChat`, with every tool of the service run inside.

    The messages of the request are the conversation; with the header `X-Session-ID` the service remembers it, and
    takes the last question. Calls that need the user's consent are asked for in the stream, and go on with the request
    that has the decisions.
    """
    refuse_cross_site(request)
    service, sent = service_state(request), read_request(await body_of(request))
    session = conversation_by_header(request)
    decided = decisions(sent.continued())
    if decided is None:
        return await answer_prompt(request, _prompt(service, sent, session), MessageStream(in_session=bool(session)))
    identifier, approvals = decided
    waiting = await service.approvals.find(identifier, approvals)
    resumed = frozenset(call.id for call in waiting.turn.response.message.tool_calls)
    prompt = waiting.prompt(service.chat, approvals)
    return await answer_prompt(request, prompt, MessageStream(resumed, in_session=bool(session)), taken=waiting)


def add_routes(added: APIRouter) -> None:
    """Add the route of the protocol."""
    added.add_api_route(
        "/ai-sdk/chat",
        chat,
        methods=["POST"],
        tags=["AI SDK"],
        summary="Chat, as the AI SDK's useChat asks",
        response_class=Response,
        responses=_RESPONSES,
        route_class_override=QuestionRoute,
        openapi_extra=_BODY,
    )


def _prompt(service: ServiceState, sent: ChatRequest, session: str) -> PromptSpec:
    messages = conversation(sent.messages, service.chat.system_text)
    tools, advisors = service.tools.for_conversation(None)
    if session:
        messages, advisors = last_turn(messages), (service.memory_advisor, *advisors)
    # What keeps something for a conversation comes with advisors; where the client names none it is for this request.
    context = {CONVERSATION_ID: session or conversation_or_new("")} if session or advisors else {}
    return service.chat.prompt().tools(*tools).messages(messages).tool_context(context).advisors(*advisors)
