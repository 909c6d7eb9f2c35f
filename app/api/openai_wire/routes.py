"""The routes of OpenAI's wire: the list of models, and chat completions."""

from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from app.api.answering import answer_prompt
from app.api.bodies import body_of
from app.api.cross_site import refuse_cross_site
from app.api.openai_wire.caller_tools import caller_tools
from app.api.openai_wire.chunks import Chunks
from app.api.openai_wire.completion import Completion
from app.api.openai_wire.conversation import conversation
from app.api.openai_wire.documented import COMPLETION_RESPONSES, MODEL_RESPONSES, REQUEST_BODY
from app.api.openai_wire.kept_calls import restored
from app.api.openai_wire.models import model_documents, model_not_found, offered_by
from app.api.openai_wire.progress import OPEN_WEBUI
from app.api.openai_wire.wire import ChatCompletionRequest, NamedChoice, read_request
from app.api.openai_wire.wish import Wish
from app.api.questions import QuestionRoute
from app.api.reading import ReadRoute
from app.api.service import Service, ServiceState, service_state
from app.api.sessions import conversation_by_header, conversation_or_new, last_turn
from app.chat.client import PromptSpec
from app.chat.request import ChatRequest
from app.chat_models.base import ChatOptions
from app.tool_calling.callback import ToolCallback
from app.tool_calling.context import CONVERSATION_ID, ToolContext

__all__ = ["add_routes"]

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
