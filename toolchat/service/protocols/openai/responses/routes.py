"""The routes of OpenAI's Responses: ``POST /v1/responses``, and what is stored under its ids."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic_core import from_json

from toolchat.errors import ValidationFailed
from toolchat.service.access.principals import current_request_caller, session_ttl
from toolchat.service.api.background.records import BackgroundQuestion
from toolchat.service.api.background.routes import accept, background, stream
from toolchat.service.api.dependencies import require_same_site
from toolchat.service.api.responses.answers import answer_prompt
from toolchat.service.api.responses.formats import json_response
from toolchat.service.api.service import Service, ServiceState, service_state
from toolchat.service.api.sessions import conversation_of
from toolchat.service.protocols.decisions import resume_turn
from toolchat.service.protocols.documentation import add_question
from toolchat.service.protocols.models import model_prompt
from toolchat.service.protocols.openai.documentation import DOCUMENTATION, documents_router
from toolchat.service.protocols.openai.responses import conversations
from toolchat.service.protocols.openai.responses.answers import ResponseDocument, ResponseEvents, ResponsesAnswer
from toolchat.service.protocols.openai.responses.conversations import Page, shown
from toolchat.service.protocols.openai.responses.requests import (
    ResponsesRequest,
    conversation_of_items,
    decisions,
)
from toolchat.service.protocols.openai.responses.store import ResponseStore
from toolchat.service.protocols.wire import BadRequest, json_body, read_request
from toolchat.service.request_state import state_of

_REQUEST = {
    "type": "object",
    "required": ["model", "input"],
    "properties": {
        "model": {"type": "string"},
        "input": {"type": ["string", "array"]},
        "instructions": {"type": ["string", "null"]},
        "previous_response_id": {"type": ["string", "null"]},
        "store": {"type": ["boolean", "null"]},
        "stream": {"type": ["boolean", "null"]},
        "tools": {"type": ["array", "null"], "items": {"type": "object"}},
    },
    "example": {"model": "toolchat", "input": "What time is it in London?"},
}

router = documents_router()


async def create(request: Request) -> Response:
    """Answer as OpenAI's Responses do; the service runs its own tools.

    Their calls appear as `mcp_call` items of the server `toolchat`, which clients show and do not run. The model can
    also call the functions of the request; those calls are returned as `function_call` items. The response is stored,
    to be continued by `previous_response_id`, unless `store` is false. `conversation` names a session of the service.
    """
    service, body = service_state(request), await json_body(request)
    sent = read_request(ResponsesRequest, body)
    _require_one_history(sent)
    store = _responses(service)
    earlier, items, previous = await store.complete(sent)
    decided, form = decisions(items), ResponseEvents if sent.stream else ResponseDocument
    if decided is not None:
        asked = {call: f"mcpr_{decided.turn_id}/{call}" for call in decided.approvals}
        answer = form(sent, items, previous, store, asked)
        return await resume_turn(request, decided, sent.functions_of_client(), answer)
    # A client that lists the service's tools decides by items; all others read how to decide.
    state = state_of(request.scope)
    state.in_chat_page, background = sent.service_tools is None, state.background
    answer = form(sent, items, previous, store, {}, background.identifier if background else "")
    messages = conversation_of_items(earlier, items, service.chat.system_text, sent.instructions or "")
    allowed = sent.service_tools.allowed_tools if sent.service_tools else None
    prompt = await model_prompt(service, sent, messages, await _conversation_id(service, sent), allowed)
    if sent.background:
        return await _accept(request, sent, body, answer)
    return await answer_prompt(request, prompt, answer)


@router.get("/v1/responses/{identifier}", summary="Show a response")
async def show(
    request: Request, service: Service, identifier: str, *, stream: bool = False, starting_after: int = -1
) -> Response:
    """Show a stored response.

    A background response can be streamed from its beginning, or after the event number `starting_after`.
    """
    question = await _find_question(request, identifier)
    if stream:
        if question is None:
            await _responses(service).find(identifier)
            raise BadRequest("stream: only responses in the background can be streamed again", "stream")
        return _stream(request, question, starting_after)
    if question is not None and question.state != "completed":
        return json_response(await _document_of(request, question))
    return json_response((await _responses(service).find(identifier))["response"])


@router.delete("/v1/responses/{identifier}", summary="Delete a response")
async def delete(request: Request, service: Service, identifier: str) -> Response:
    """Delete a stored response, also one that still runs; those that continue it cannot be continued any more."""
    if (question := await _find_question(request, identifier)) is not None:
        runner = background(request)
        question = question if question.is_finished else await runner.cancel(question)
        await runner.records.delete(question)
    if question is None or question.state == "completed":
        await _responses(service).delete(identifier)
    return json_response({"id": identifier, "object": "response", "deleted": True})


@router.post(
    "/v1/responses/{identifier}/cancel",
    dependencies=[Depends(require_same_site)],
    summary="Cancel a response",
)
async def cancel(request: Request, service: Service, identifier: str) -> Response:
    """Cancel a response in the background, which takes up to a second; one that has ended is shown as it is.

    A client cancels any other response by closing the connection.
    """
    question = await _find_question(request, identifier)
    if question is not None and question.state != "completed":
        stopped = question if question.is_finished else await background(request).cancel(question)
        return json_response(await _document_of(request, stopped))
    record = await _responses(service).find(identifier)
    if record["response"]["background"]:
        return json_response(record["response"])
    raise BadRequest("only responses in the background can be cancelled; close the connection of a running one")


@router.get(
    "/v1/responses/{identifier}/input_items",
    summary="List the input of a response",
)
async def input_items(
    service: Service,
    identifier: str,
    page: Annotated[Page, Query()],
) -> Response:
    """List the input items of a response after the item `after`, `limit` at a time, by default the newest first."""
    record = await _responses(service).find(identifier)
    name = identifier.removeprefix("resp_")
    return page.response([shown(each, f"{name}_in{number}") for number, each in enumerate(record["input"])])


def add_routes(added: APIRouter) -> None:
    """Add the routes of Responses."""
    added.include_router(router)
    added.include_router(conversations.router)
    summary = "Responses, in OpenAI's format"
    add_question(added, "/v1/responses", create, summary, _REQUEST, documentation=DOCUMENTATION)


def _responses(service: ServiceState) -> ResponseStore:
    return ResponseStore(service.store, ttl=session_ttl(service.settings.session_ttl))


def _require_one_history(sent: ResponsesRequest) -> None:
    if sent.conversation and sent.previous_response_id:
        raise BadRequest("conversation: send either it or previous_response_id", "conversation")
    if sent.conversation and sent.store is False:
        raise BadRequest("store: a conversation is stored; leave one of the two out", "store")


async def _conversation_id(service: ServiceState, sent: ResponsesRequest) -> str:
    if not sent.conversation:
        return ""
    try:
        conversation = conversation_of(sent.conversation, "conversation")
    except ValidationFailed as error:
        raise BadRequest(error.detail, "conversation") from None
    if sent.conversation.startswith(conversations.PREFIX):  # other ids are the client's own
        await conversations.find(service, sent.conversation)
    return conversation


async def _accept(request: Request, sent: ResponsesRequest, body: bytes, answer: ResponsesAnswer) -> Response:
    """Accept a response that is answered in the background; with ``stream`` its events follow at once."""
    if sent.store is False:
        raise BadRequest("store: a response in the background is stored", "store")
    answer.status = "queued"
    document = from_json(answer.document())
    again = {**from_json(body), "background": False, "stream": True}
    question = await accept(request, "/v1/responses", again, identifier=answer.context.identifier, shown=document)
    if sent.stream:
        return _stream(request, question)
    return json_response(document)


async def _find_question(request: Request, identifier: str) -> BackgroundQuestion | None:
    """The question of a response in the background, while its record is stored."""
    return await background(request).records.find(identifier.removeprefix("resp_"), current_request_caller().principal)


async def _document_of(request: Request, question: BackgroundQuestion) -> dict[str, Any]:
    """The response of a question that is not completed."""
    result = await background(request).records.result(question) or {}
    if "response" in result:  # the data of ``response.failed``
        failed: dict[str, Any] = result["response"]
        return failed
    error = result.get("error") or ({"message": result["detail"]} if "detail" in result else None)
    shown = {"code": "server_error", "message": error["message"]} if error else None
    document: dict[str, Any] = question.shown
    return document | {"status": "in_progress" if question.state == "running" else question.state, "error": shown}


def _stream(request: Request, question: BackgroundQuestion, starting_after: int = -1) -> Response:
    """The events of a response; those of its last try, if its process died."""
    return stream(request, question, (max(question.tries, 1), starting_after), is_plain=True)
