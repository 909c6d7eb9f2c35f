"""Responses in the background: questions in the background, with the ids, documents and events of Responses."""

from typing import Any

from fastapi import Request, Response
from pydantic_core import from_json

from toolchat.service.access.principals import current_request_caller
from toolchat.service.api.background.records import BackgroundQuestion
from toolchat.service.api.background.routes import accept, background, stream
from toolchat.service.protocols.openai.documentation import json_response
from toolchat.service.protocols.openai.errors import BadRequest
from toolchat.service.protocols.openai.responses.answers import Answer
from toolchat.service.protocols.openai.responses.requests import ResponsesRequest


async def accept_response(request: Request, sent: ResponsesRequest, body: bytes, answer: Answer) -> Response:
    """Accept a response that is answered in the background; with ``stream`` its events follow at once."""
    if sent.store is False:
        raise BadRequest("store: a response in the background is stored", "store")
    answer.status = "queued"
    document = from_json(answer.document())
    again = {**from_json(body), "background": False, "stream": True}
    question = await accept(request, "/v1/responses", again, identifier=answer.context.identifier, shown=document)
    if sent.stream:
        return stream_response(request, question)
    return json_response(document)


async def find_question(request: Request, identifier: str) -> BackgroundQuestion | None:
    """The question of a response in the background, while its record is stored."""
    return await background(request).records.find(identifier.removeprefix("resp_"), current_request_caller().principal)


async def cancel_question(request: Request, question: BackgroundQuestion) -> BackgroundQuestion:
    """Stop a question; one that has ended stays as it is."""
    return question if question.is_finished else await background(request).cancel(question)


def document_of(question: BackgroundQuestion) -> dict[str, Any]:
    """The response of a question that is not completed."""
    result = question.result or {}
    if "response" in result:  # the data of ``response.failed``
        failed: dict[str, Any] = result["response"]
        return failed
    error = result.get("error") or ({"message": result["detail"]} if "detail" in result else None)
    shown = {"code": "server_error", "message": error["message"]} if error else None
    document: dict[str, Any] = question.shown
    return document | {"status": "in_progress" if question.state == "running" else question.state, "error": shown}


def stream_response(request: Request, question: BackgroundQuestion, starting_after: int = -1) -> Response:
    """The events of a response; those of its last try, if its process died."""
    return stream(request, question, (max(question.tries, 1), starting_after), is_plain=True)
