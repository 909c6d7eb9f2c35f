"""The routes of OpenAI's API: ``GET /v1/models`` and ``POST /v1/chat/completions``."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from app.api.body_limits import body_of
from app.api.dependencies import refuse_cross_site
from app.api.fast_router import QuestionRoute, ReadRoute
from app.api.parameters import require_json
from app.api.responses import answer_prompt
from app.api.responses.active_request import IN_CHAT_PAGE
from app.api.responses.event_stream import EVENT_SCHEMA
from app.api.service import Service, ServiceState, service_state
from app.api.sessions import SESSION_HEADER, conversation_by_header, conversation_prompt
from app.api.tool_registry import ToolRegistry
from app.observability.message_content import LINK_FRAGMENT, without_tokens
from app.protocols.openai.answers import OPEN_WEBUI, Chunks, Completion, ResponseContext
from app.protocols.openai.errors import BadRequest, ModelNotFound
from app.protocols.openai.partial_turns import restore_turns
from app.protocols.openai.requests import ChatCompletionRequest, NamedChoice, client_tools, conversation, read_request
from toolchat.chat.advisors.base import Advisor
from toolchat.chat.client import PromptSpec
from toolchat.errors import NotConfigured, NotFound
from toolchat.models.base import ChatOptions
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.caller import current_caller

__all__ = ["add_routes"]

ALL_TOOLS = "toolchat"
"""The model with every tool of the service."""
NO_TOOLS = "toolchat-plain"
"""The model without tools, for the titles and tags that chat pages request."""
_MODULE_PREFIX = "toolchat-"
_STARTED = int(time.time())
_TAG = "OpenAI"
# A request without any of these fields uses the service's default options.
_OPTIONS = ChatCompletionRequest.model_fields.keys() - {"model", "messages", "stream", "stream_options", "tools"}

_UNSUPPORTED = {
    "responses": "set the client to chat completions, POST /v1/chat/completions",
    "completions": "set the client to chat completions, POST /v1/chat/completions",
    "embeddings": "set the client to another server for embeddings",
}
"""OpenAI's other APIs that clients try first, and what to do instead."""

_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {name: {"type": ["string", "null"]} for name in ("message", "type", "param", "code")},
        }
    },
}
_ERROR_RESPONSE = {"description": "An error in OpenAI's format", "content": {"application/json": {"schema": _ERROR}}}
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

_REQUEST_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": _REQUEST}}},
    "parameters": [
        SESSION_HEADER,
        {
            "name": "X-Toolchat-Progress",
            "in": "header",
            "required": False,
            "description": "`open-webui`: a stream reports tool calls in status events of Open WebUI",
            "schema": {"type": "string", "example": "open-webui"},
        },
    ],
}
_MODEL_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A document in OpenAI's format",
        "content": {"application/json": {"schema": {"type": "object"}}},
    },
    "default": _ERROR_RESPONSE,
}
_COMPLETION_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A completion, or with `stream` its chunks",
        "content": {
            "application/json": {"schema": {"type": "object"}},
            "text/event-stream": {"schema": EVENT_SCHEMA},
        },
    },
    "default": _ERROR_RESPONSE,
}

router = APIRouter(tags=[_TAG], route_class=ReadRoute)


@router.get("/v1/models", response_class=Response, responses=_MODEL_RESPONSES, summary="Models, in OpenAI's format")
async def models(service: Service) -> Response:
    """List the service as models: with all tools, with none, and with those of one tool module."""
    return _json({"object": "list", "data": _models(service.tools)})


@router.get("/v1/models/{model}", response_class=Response, responses=_MODEL_RESPONSES, summary="One of the models")
async def one_model(service: Service, model: str) -> Response:
    """Show one model."""
    for document in _models(service.tools):
        if document["id"] == model:
            return _json(document)
    raise _model_not_found(model)


async def chat_completions(request: Request) -> Response:
    """Continue a conversation as OpenAI's chat completions do; the service runs its own tools.

    Calls of the service's tools never reach the client. The model can also call the tools of the request, and those
    calls are returned with the finish reason `tool_calls`. With the header `X-Session-ID` the service remembers the
    conversation and reads only the last user message and what follows it; without the header the messages of the
    request are the conversation.
    """
    refuse_cross_site(request)
    require_json(request)
    service, sent = service_state(request), read_request(_without_tokens(await body_of(request)))
    conversation_id = conversation_by_header(request)
    prompt = await _prompt(service, sent, conversation_id)
    request.scope["state"][IN_CHAT_PAGE] = True
    context = ResponseContext(
        sent.model,
        frozenset(each.function.name for each in sent.tools or ()),
        in_session=bool(conversation_id),
        include_usage=bool(sent.stream_options and sent.stream_options.include_usage),
        reports_progress=OPEN_WEBUI
        in (request.headers.get("x-toolchat-progress"), service.settings.openai_api_progress),
    )
    return await answer_prompt(request, prompt, Chunks(context) if sent.stream else Completion(context))


async def unsupported(request: Request) -> Response:
    """Name what to use instead of another API of OpenAI's."""
    api = request.url.path.split("/v1/")[1].split("/")[0]
    raise NotFound(f"/v1/{api} is not supported: {_UNSUPPORTED[api]}")


def _without_tokens(body: bytes) -> bytes:
    """Remove the tokens of approval links from a history: the model could open the link, and decide by itself."""
    if LINK_FRAGMENT.encode() not in body:
        return body
    return without_tokens(body.decode("latin-1")).encode("latin-1")


def add_routes(added: APIRouter) -> None:
    """Add every route of the protocol."""
    added.include_router(router)
    for api in _UNSUPPORTED:
        for path in (f"/v1/{api}", f"/v1/{api}/{{rest:path}}"):
            added.add_api_route(path, unsupported, methods=["GET", "POST", "DELETE"], include_in_schema=False)
    added.add_api_route(
        "/v1/chat/completions",
        chat_completions,
        methods=["POST"],
        tags=[_TAG],
        summary="Chat completions, in OpenAI's format",
        response_class=Response,
        responses=_COMPLETION_RESPONSES,
        route_class_override=QuestionRoute,
        openapi_extra=_REQUEST_BODY,
    )


async def _prompt(service: ServiceState, sent: ChatCompletionRequest, conversation_id: str) -> PromptSpec:
    messages = await restore_turns(service.store, conversation(sent.messages, service.chat.system_text))
    tools, advisors = _offered(service.tools, sent.model)
    theirs = client_tools(sent.tools) if sent.tools else ()
    if sent.tool_choice == "none":
        tools, advisors, theirs = (), (), ()
    # A client's tool replaces the service's tool of the same name.
    names = {each.definition.name for each in theirs}
    ours = [each for each in tools if not (isinstance(each, ToolCallback) and each.definition.name in names)]
    if isinstance(sent.tool_choice, NamedChoice) and sent.tool_choice.function.name not in names | _usable(ours):
        raise BadRequest(f"tool_choice: no tool has the name {sent.tool_choice.function.name[:64]}", "tool_choice")
    prompt = conversation_prompt(service, messages, conversation_id, tools=(*ours, *theirs), advisors=advisors)
    return prompt.options(_options(service, sent))


def _options(service: ServiceState, sent: ChatCompletionRequest) -> ChatOptions:
    if sent.model_fields_set.isdisjoint(_OPTIONS):
        return service.chat.default_options
    choice = sent.tool_choice.function.name if isinstance(sent.tool_choice, NamedChoice) else sent.tool_choice
    options: dict[str, Any] = {
        "temperature": sent.temperature,
        "top_p": sent.top_p,
        # OpenAI renamed max_tokens; many clients send the old name.
        "max_tokens": sent.max_completion_tokens or sent.max_tokens,
        "stop": [sent.stop] if isinstance(sent.stop, str) else sent.stop,
        "seed": sent.seed,
        "frequency_penalty": sent.frequency_penalty,
        "presence_penalty": sent.presence_penalty,
        "reasoning_effort": sent.reasoning_effort,
        "response_format": sent.response_format,
        "parallel_tool_calls": sent.parallel_tool_calls,
        "tool_choice": None if choice in ("none", "auto") else choice,
    }
    return replace(service.chat.default_options, **{name: each for name, each in options.items() if each is not None})


def _models(tools: ToolRegistry) -> list[dict[str, Any]]:
    """All models, without the tool modules that are unavailable or have no tool that the caller may use."""
    entries = tools.entries.items()
    usable = [f"{_MODULE_PREFIX}{name}" for name, each in entries if not each.fault and _usable(each.in_conversation())]
    return [
        {"id": name, "object": "model", "created": _STARTED, "owned_by": "toolchat"}
        for name in (ALL_TOOLS, NO_TOOLS, *usable)
    ]


def _offered(tools: ToolRegistry, model: str) -> tuple[Sequence[object], Sequence[Advisor]]:
    """The tools of a model, and the advisors that belong to them.

    Raises:
        ModelNotFound: there is no such model, or its tool module is unavailable; the detail says why.
    """
    if model == ALL_TOOLS:
        return tools.for_conversation(None)
    if model == NO_TOOLS:
        return (), ()
    try:
        offered = tools.for_folder(model.removeprefix(_MODULE_PREFIX)) if model.startswith(_MODULE_PREFIX) else ((), ())
    except NotFound:
        raise _model_not_found(model) from None
    except NotConfigured as error:
        raise _model_not_found(model, error.detail) from error
    if not _usable(offered[0]):
        raise _model_not_found(model)
    return offered


def _usable(tools: Sequence[object]) -> set[str]:
    """The names of the tools that the caller may use."""
    return set(
        filter(current_caller.get().may_use, [each.definition.name for each in tools if isinstance(each, ToolCallback)])
    )


def _model_not_found(model: str, reason: str = "") -> ModelNotFound:
    return ModelNotFound(
        f"the model {model[:64]!r} does not exist{reason and f' ({reason})'}; GET /v1/models lists them"
    )


def _json(document: dict[str, Any]) -> Response:
    return Response(to_json(document), media_type="application/json")
