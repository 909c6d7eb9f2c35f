"""Answering a question in the form that the client accepts."""

from collections.abc import Coroutine, Sequence
from typing import Any

from fastapi import Request, Response

from app.api.answering.asked import Asked
from app.api.answering.format import AnswerFormat, StreamFormat, WholeFormat
from app.api.answering.negotiation import acceptable
from app.api.answering.streamed import StreamedAnswer
from app.api.approvals import WaitingTurn
from app.api.cross_site import refuse_unasked_get
from app.api.service import ServiceState, service_state
from app.chat.client import PromptSpec
from app.errors import ToolchatError

__all__ = ["answer", "answer_prompt"]


def answer(request: Request, query: str, tools: Sequence[object] = ()) -> Coroutine[Any, Any, Response]:
    """Ask the model and answer in the form that the client accepts.

    Args:
        request: the HTTP request.
        query: the question.
        tools: what ``PromptSpec.tools`` takes.

    Raises:
        CrossSite: a browser asks on behalf of another site, or looks ahead.
        ToolchatError: as :func:`answer_prompt`.
    """
    refuse_unasked_get(request)  # questions without a session leave nothing behind, and cost money all the same
    service = service_state(request)
    return _answer(request, service, service.chat.prompt(query).tools(*tools))


def answer_prompt(
    request: Request, prompt: PromptSpec, only: AnswerFormat | None = None, *, taken: WaitingTurn | None = None
) -> Coroutine[Any, Any, Response]:
    """Answer a question that has been put together already.

    Args:
        request: the HTTP request.
        prompt: the question.
        only: the form of a route that gives one form.
        taken: the turn that goes on with it, where it goes on with one.

    Raises:
        ToolchatError: the question could not be answered; an error in the middle of a stream becomes its last piece.
    """
    return _answer(request, service_state(request), prompt, only, taken)


async def _answer(
    request: Request,
    service: ServiceState,
    prompt: PromptSpec,
    only: AnswerFormat | None = None,
    taken: WaitingTurn | None = None,
) -> Response:
    form = acceptable(request, only)
    if response := form.without_asking(request):
        return response
    request.scope["state"]["form"] = form.media_type
    asked = Asked(request, service, prompt, taken)
    if isinstance(form, StreamFormat):
        return StreamedAnswer(asked, form)
    if isinstance(form, WholeFormat):
        return await _whole(asked, form)
    raise TypeError(f"{type(form).__name__} is neither a WholeFormat nor a StreamFormat")


async def _whole(asked: Asked, form: WholeFormat) -> Response:
    try:
        async with asked.service.admission.place() as asked.spending:
            asked.headers |= asked.spending.headers
            response = await form.finished(asked, await asked.whole())
    except ToolchatError as error:
        return form.refused(asked, error)
    asked.headers["X-Finish-Reason"] = response.finish_reason
    body = form.written(asked, response)
    return Response(body, media_type=form.media_type + form.parameters, headers=asked.headers)
