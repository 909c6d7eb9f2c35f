"""The routes of Anthropic's API: ``POST /v1/messages``, and the count of its tokens."""

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from toolchat.chat.client import PromptSpec
from toolchat.errors import InvalidRequest, NotFound
from toolchat.messages import estimate_size, estimate_tokens
from toolchat.service.api.guard import ProtocolAdapter
from toolchat.service.api.responses.answers import answer_prompt
from toolchat.service.api.responses.formats import json_response
from toolchat.service.api.service import ServiceState, service_state
from toolchat.service.api.sessions import SESSION_HEADER, conversation_by_header
from toolchat.service.protocols.anthropic.answers import MessageDocument, MessageEvents
from toolchat.service.protocols.anthropic.errors import NO_THREADS, error_response
from toolchat.service.protocols.anthropic.requests import MessagesRequest
from toolchat.service.protocols.documentation import add_question, documentation_of
from toolchat.service.protocols.models import ALL_TOOLS, model_prompt
from toolchat.service.protocols.wire import MAX_BODY_BYTES, json_body, read_request
from toolchat.service.request_state import state_of

_BLOCKS = {"type": ["string", "array"], "items": {"type": "object"}}
_MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {"role": {"type": "string", "enum": ["user", "assistant", "system"]}, "content": _BLOCKS},
}
_REQUEST = {
    "type": "object",
    "required": ["model", "messages"],
    "properties": {
        "model": {"type": "string"},
        "max_tokens": {"type": ["integer", "null"]},
        "system": _BLOCKS,
        "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
        "stream": {"type": ["boolean", "null"]},
        "tools": {"type": ["array", "null"], "items": {"type": "object"}},
    },
    "example": {
        "model": "toolchat",
        "max_tokens": 1024,
        "messages": [{"role": "user", "content": "What time is it in London?"}],
    },
}
_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "error": {"type": "object", "properties": {name: {"type": "string"} for name in ("type", "message")}},
        "request_id": {"type": "string"},
    },
}
_DOCUMENTATION = documentation_of("Anthropic", _ERROR)


async def messages(request: Request) -> Response:
    """Continue a conversation as Anthropic's Messages do; the service runs its own tools.

    Their calls appear as `mcp_tool_use` and `mcp_tool_result` blocks of the server `toolchat`, which clients show and
    do not run. The model can also call the tools of the request; those calls are returned with the stop reason
    `tool_use`. Names of models that begin with `claude` stand for `toolchat`. With the header `X-Session-ID` the
    service remembers the conversation, as for chat completions.
    """
    service, sent = await _read(request)
    prompt = await _prompt(request, service, sent)
    state_of(request.scope).in_chat_page = True
    return await answer_prompt(request, prompt, MessageEvents(sent) if sent.stream else MessageDocument(sent))


async def count_tokens(request: Request) -> Response:
    """Estimate the input tokens of a request, those of the service's instructions and tools included."""
    given = (await _prompt(request, *await _read(request))).request
    tools = to_json([[each.name, each.description, each.input_schema] for each in given.tool_set.definitions])
    return json_response({"input_tokens": estimate_size(given.messages) + estimate_tokens(tools.decode())})


async def batches() -> Response:
    """Name what to use instead of batches."""
    raise NotFound("/v1/messages/batches is not supported: send each request to POST /v1/messages")


async def doubled_base() -> Response:
    """Name the right base URL; at a 404 Claude Code would blame the model."""
    raise InvalidRequest("set the client to the base URL without /v1, which it adds itself")


async def _read(request: Request) -> tuple[ServiceState, MessagesRequest]:
    sent = read_request(MessagesRequest, await json_body(request))
    if sent.thread is not None:
        raise InvalidRequest(NO_THREADS)
    return service_state(request), sent


async def _prompt(request: Request, service: ServiceState, sent: MessagesRequest) -> PromptSpec:
    # Agents name models of Anthropic's, some of them in places that no setting reaches.
    named = sent.model_copy(update={"model": ALL_TOOLS}) if sent.model.startswith("claude") else sent
    conversation = sent.conversation(service.chat.system_text)
    return await model_prompt(service, named, conversation, conversation_by_header(request))


def add_routes(added: APIRouter) -> None:
    """Add every route of the protocol."""
    for path in ("/v1/messages/batches", "/v1/messages/batches/{rest:path}"):
        added.add_api_route(path, batches, methods=["GET", "POST", "DELETE"], include_in_schema=False)
    added.add_api_route("/v1/v1/messages", doubled_base, methods=["POST"], include_in_schema=False)
    path, summary = "/v1/messages", "Messages, in Anthropic's format"
    add_question(added, path, messages, summary, _REQUEST, SESSION_HEADER, documentation=_DOCUMENTATION)
    path, summary = "/v1/messages/count_tokens", "Estimate the tokens of messages"
    add_question(added, path, count_tokens, summary, _REQUEST, documentation=_DOCUMENTATION)


ANTHROPIC = ProtocolAdapter("/v1/messages/", add_routes, error_response, MAX_BODY_BYTES, short=("/messages",))
