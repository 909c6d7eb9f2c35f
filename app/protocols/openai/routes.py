"""The routes of OpenAI's wire: the list of models, and chat completions."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from app.api.body_limits import body_of
from app.api.dependencies import refuse_cross_site
from app.api.fast_router import QuestionRoute, ReadRoute
from app.api.responses import answer_prompt
from app.api.responses.formats import EVENT_SCHEMA
from app.api.service import Service, ServiceState, service_state
from app.api.sessions import SESSION_HEADER, conversation_by_header, conversation_or_new, last_turn
from app.protocols.openai.answers import OPEN_WEBUI, Chunks, Completion, Wish
from app.protocols.openai.errors import ModelNotFound
from app.protocols.openai.partial_turns import restored
from app.protocols.openai.requests import ChatCompletionRequest, NamedChoice, caller_tools, conversation, read_request
from app.tools.registry import ToolRegistry
from toolchat.chat.advisors.base import Advisor
from toolchat.chat.client import PromptSpec
from toolchat.chat.request import ChatRequest
from toolchat.errors import NotConfigured, NotFound
from toolchat.models.base import ChatOptions
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.caller import current_caller
from toolchat.tool_calling.context import CONVERSATION_ID, ToolContext

__all__ = [
    "ALL",
    "COMPLETION_RESPONSES",
    "MODEL_RESPONSES",
    "PLAIN",
    "REQUEST_BODY",
    "add_routes",
    "model_documents",
    "model_not_found",
    "offered_by",
]


ALL = "toolchat"
"""Every tool of the service."""
PLAIN = "toolchat-plain"
"""No tool: for the titles and tags that chat pages ask for."""
_FOLDER = "toolchat-"
_BEGUN = int(time.time())


def model_documents(tools: ToolRegistry) -> list[dict[str, Any]]:
    """Every model; those of folders that have no tool just now, or none that the caller may use, are left out."""
    folders = [each["name"] for each in tools.describe() if each["registered"]]
    names = [ALL, PLAIN, *(f"{_FOLDER}{name}" for name in folders if _has_usable(tools.for_folder(name)[0]))]
    return [{"id": name, "object": "model", "created": _BEGUN, "owned_by": "toolchat"} for name in names]


def offered_by(tools: ToolRegistry, model: str) -> tuple[Sequence[object], Sequence[Advisor]]:
    """The tools of a model, and the advisors that go with them.

    Raises:
        ModelNotFound: there is none of this name; or its folder is not registered, and the detail says why.
    """
    if model == ALL:
        return tools.for_conversation(None)
    if model == PLAIN:
        return (), ()
    try:
        offered = tools.for_folder(model.removeprefix(_FOLDER)) if model.startswith(_FOLDER) else ((), ())
    except NotFound:
        raise model_not_found(model) from None
    except NotConfigured as error:
        raise model_not_found(model, error.detail) from error
    if not _has_usable(offered[0]):
        raise model_not_found(model)
    return offered


def _has_usable(tools: Sequence[object]) -> bool:
    may_use = current_caller.get().may_use
    return any(isinstance(tool, ToolCallback) and may_use(tool.definition.name) for tool in tools)


def model_not_found(model: str, why: str = "") -> ModelNotFound:
    """Say that there is no such model, and where those that there are stand."""
    return ModelNotFound(f"the model {model[:64]!r} does not exist{why and f' ({why})'}; GET /v1/models lists them")


_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {name: {"type": ["string", "null"]} for name in ("message", "type", "param", "code")},
        }
    },
}
_REFUSED = {"description": "An error in OpenAI's form", "content": {"application/json": {"schema": _ERROR}}}
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

REQUEST_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": _REQUEST}}},
    "parameters": [
        SESSION_HEADER,
        {
            "name": "X-Toolchat-Progress",
            "in": "header",
            "required": False,
            "description": "`open-webui`: a stream tells what tools do, in events of Open WebUI",
            "schema": {"type": "string", "example": "open-webui"},
        },
    ],
}
MODEL_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "As OpenAI answers", "content": {"application/json": {"schema": {"type": "object"}}}},
    "default": _REFUSED,
}
COMPLETION_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A completion, or with `stream` its chunks",
        "content": {
            "application/json": {"schema": {"type": "object"}},
            "text/event-stream": {"schema": EVENT_SCHEMA},
        },
    },
    "default": _REFUSED,
}


TAG = "OpenAI"
_OPTIONS = ChatCompletionRequest.model_fields.keys() - {"model", "messages", "stream", "stream_options", "tools"}

router = APIRouter(tags=[TAG], route_class=ReadRoute)


@router.get("/v1/models", response_class=Response, responses=MODEL_RESPONSES, summary="Models, in OpenAI's form")
async def models(service: Service) -> Response:
    """List the service as models: with all tools, with none, and with those of one folder."""
    return _json({"object": "list", "data": model_documents(service.tools)})


@router.get("/v1/models/{model}", response_class=Response, responses=MODEL_RESPONSES, summary="One of the models")
async def one_model(service: Service, model: str) -> Response:
    """Show one model, if there is one of this name."""
    for document in model_documents(service.tools):
        if document["id"] == model:
            return _json(document)
    raise model_not_found(model)


async def chat_completions(request: Request) -> Response:
    """Go on with a conversation as OpenAI's chat completions do, with the service's tools run inside.

    The tools of the service run here and are never handed out as calls; the tools that the request offers are called
    by the model, too, and their calls go back with the finish reason `tool_calls`. With the header `X-Session-ID` the
    service remembers the conversation, and takes the last question of the request and what follows; without it the
    messages of the request are the conversation.
    """
    refuse_cross_site(request)
    service, sent = service_state(request), read_request(await body_of(request))
    session = conversation_by_header(request)
    prompt = await _prompt(service, sent, session)
    wish = Wish(
        sent.model,
        frozenset(each.function.name for each in sent.tools or ()),
        in_session=bool(session),
        page=lambda: f"{request.base_url}playground/",
        include_usage=bool(sent.stream_options and sent.stream_options.include_usage),
        tells_progress=OPEN_WEBUI in (request.headers.get("x-toolchat-progress"), service.settings.openai_api_progress),
    )
    return await answer_prompt(request, prompt, Chunks(wish) if sent.stream else Completion(wish))


def add_routes(added: APIRouter) -> None:
    """Add every route of the protocol."""
    added.include_router(router)
    added.add_api_route(
        "/v1/chat/completions",
        chat_completions,
        methods=["POST"],
        tags=[TAG],
        summary="Chat completions, in OpenAI's form",
        response_class=Response,
        responses=COMPLETION_RESPONSES,
        route_class_override=QuestionRoute,
        openapi_extra=REQUEST_BODY,
    )


async def _prompt(service: ServiceState, sent: ChatCompletionRequest, session: str) -> PromptSpec:
    messages = conversation(sent.messages, service.chat.system_text)
    if sent.tools:
        messages = await restored(service.store, messages)
    tools, advisors = offered_by(service.tools, sent.model)
    theirs = caller_tools(sent.tools) if sent.tools else ()
    if sent.tool_choice == "none":
        tools, advisors, theirs = (), (), ()
    names = {each.definition.name for each in theirs}
    # Who offers a tool of the same name as ours means his own.
    ours = [each for each in tools if not (isinstance(each, ToolCallback) and each.definition.name in names)]
    prompt = service.chat.prompt().tools(*ours, *theirs)
    # What keeps something for a conversation comes with advisors; where the client names none it is for this request.
    context = ToolContext({CONVERSATION_ID: session or conversation_or_new("")} if session or advisors else {})
    if session:
        messages = last_turn(messages)
        advisors = (service.memory_advisor, *advisors)
    request = ChatRequest(messages, prompt.request.tools, context, _options(service, sent))
    return PromptSpec(service.chat, request, tuple(advisors))


def _options(service: ServiceState, sent: ChatCompletionRequest) -> ChatOptions:
    choice = sent.tool_choice.function.name if isinstance(sent.tool_choice, NamedChoice) else sent.tool_choice
    if sent.model_fields_set.isdisjoint(_OPTIONS):
        return service.chat.default_options
    given: dict[str, Any] = {
        "temperature": sent.temperature,
        "top_p": sent.top_p,
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
    told = {name: value for name, value in given.items() if value is not None}
    return replace(service.chat.default_options, **told)


def _json(document: dict[str, Any]) -> Response:
    return Response(to_json(document), media_type="application/json")
