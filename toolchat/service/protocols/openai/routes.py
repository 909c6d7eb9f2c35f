"""The routes of OpenAI's API: ``GET /v1/models`` and ``POST /v1/chat/completions``; Responses have their own file."""

from fastapi import APIRouter, Request, Response

from toolchat.errors import NotFound
from toolchat.service.access.hosts import header
from toolchat.service.api.guard import ProtocolAdapter
from toolchat.service.api.responses.answers import answer_prompt
from toolchat.service.api.responses.formats import json_response
from toolchat.service.api.service import Service, service_state
from toolchat.service.api.sessions import SESSION_HEADER, conversation_by_header
from toolchat.service.protocols.answers import ResponseContext
from toolchat.service.protocols.documentation import add_question
from toolchat.service.protocols.models import ALL_TOOLS, ModelNotFound, model_documents, model_prompt
from toolchat.service.protocols.openai.answers import OPEN_WEBUI, Chunks, Completion
from toolchat.service.protocols.openai.documentation import DOCUMENTATION, documents_router
from toolchat.service.protocols.openai.errors import error_response
from toolchat.service.protocols.openai.requests import ChatCompletionRequest
from toolchat.service.protocols.openai.responses import routes as responses
from toolchat.service.protocols.wire import MAX_BODY_BYTES, json_body, read_request
from toolchat.service.request_state import state_of

_UNSUPPORTED = {
    "completions": "set the client to chat completions, POST /v1/chat/completions, or POST /v1/responses",
    "embeddings": "set the client to another server for embeddings",
    "responses/input_tokens": "count the tokens in the client",
    "responses/compact": "let the client summarize the conversation",
}
"""Other APIs that clients try, and what to do instead."""

_MESSAGE = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"type": "string", "enum": ["system", "developer", "user", "assistant", "tool"]},
        "content": {"type": ["string", "array", "null"]},
    },
}
_REQUEST = {
    "type": "object",
    "required": ["model", "messages"],
    "properties": {
        "model": {"type": "string"},
        "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
        "stream": {"type": ["boolean", "null"]},
        "tools": {"type": ["array", "null"], "items": {"type": "object"}},
    },
    "example": {"model": "toolchat", "messages": [{"role": "user", "content": "What time is it in London?"}]},
}

_PROGRESS_HEADER = {
    "name": "X-Toolchat-Progress",
    "in": "header",
    "required": False,
    "description": "`open-webui`: a stream reports tool calls in status events of Open WebUI",
    "schema": {"type": "string", "example": "open-webui"},
}
router = documents_router()


@router.get("/v1/models", summary="List the models, in OpenAI's and Anthropic's format")
async def models(service: Service) -> Response:
    """List the service as models: with all tools, with none, and with those of one tool module."""
    return json_response({"object": "list", "data": model_documents(service.tools), "has_more": False})


@router.get("/v1/models/{model:path}", summary="Show a model")
async def one_model(request: Request, service: Service, model: str) -> Response:
    """Show a model by its id."""
    if not model:
        return await models(service)
    if model.startswith("claude") and "anthropic-version" in request.headers:
        model = ALL_TOOLS  # as in Messages
    for document in model_documents(service.tools):
        if document["id"] == model.rstrip("/"):
            return json_response(document)
    raise ModelNotFound(model)


async def chat_completions(request: Request) -> Response:
    """Continue a conversation as OpenAI's chat completions do; the service runs its own tools.

    Calls of the service's tools never reach the client. The model can also call the tools of the request, and those
    calls are returned with the finish reason `tool_calls`. With the header `X-Session-ID` the service remembers the
    conversation and reads only the last user message and what follows it; without the header the messages of the
    request are the conversation.
    """
    service, sent = service_state(request), read_request(ChatCompletionRequest, await json_body(request))
    conversation_id = conversation_by_header(request)
    prompt = await model_prompt(service, sent, sent.conversation(service.chat.system_text), conversation_id)
    state_of(request.scope).in_chat_page = True
    context = ResponseContext(
        sent.model,
        frozenset([name for name, _, _ in sent.functions_of_client()]),
        in_session=bool(conversation_id),
        include_usage=bool(sent.stream_options and sent.stream_options.include_usage),
        reports_progress=bool(sent.stream)
        and OPEN_WEBUI in (header(request.scope, b"x-toolchat-progress"), service.settings.openai_api_progress),
    )
    return await answer_prompt(request, prompt, Chunks(context) if sent.stream else Completion(context))


async def unsupported(request: Request) -> Response:
    """Name what to use instead of another API."""
    path = request.url.path.split("/v1/")[1]
    api = next(each for each in _UNSUPPORTED if f"{path}/".startswith(f"{each}/"))
    raise NotFound(f"/v1/{api} is not supported: {_UNSUPPORTED[api]}")


def add_routes(added: APIRouter) -> None:
    """Add every route of the protocol."""
    added.include_router(router)
    responses.add_routes(added)
    for api in _UNSUPPORTED:
        for path in (f"/v1/{api}", f"/v1/{api}/{{rest:path}}"):
            added.add_api_route(path, unsupported, methods=["GET", "POST", "DELETE"], include_in_schema=False)
    path, parameters = "/v1/chat/completions", (SESSION_HEADER, _PROGRESS_HEADER)
    summary = "Chat completions, in OpenAI's format"
    add_question(added, path, chat_completions, summary, _REQUEST, *parameters, documentation=DOCUMENTATION)


_SHORT = ("/chat/completions", "/responses", "/conversations", "/models", *(f"/{api}" for api in _UNSUPPORTED))

OPENAI = ProtocolAdapter("/v1/", add_routes, error_response, MAX_BODY_BYTES, base="/v1", short=_SHORT)
