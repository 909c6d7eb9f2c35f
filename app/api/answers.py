"""One answer in its three forms: text, JSON with the whole trace, server-sent events."""

from collections.abc import Sequence

from fastapi import Request, Response
from pydantic_core import to_json

from app.api.asked import Asked
from app.api.event_stream import EventStream
from app.api.negotiation import AnswerForm, negotiate
from app.api.state import service_state
from app.chat.client import PromptSpec

__all__ = ["answer", "answer_prompt", "stopped_reconnecting"]


async def answer(request: Request, query: str, tools: Sequence[object] = ()) -> Response:
    """Ask the model and answer in the form that the client accepts.

    Args:
        request: the HTTP request.
        query: the question.
        tools: what ``PromptSpec.tools`` takes.

    Raises:
        ToolchatError: as :func:`answer_prompt`.
    """
    return await answer_prompt(request, service_state(request).chat.prompt(query).tools(*tools))


def stopped_reconnecting(request: Request, form: AnswerForm) -> Response | None:
    """The answer to a browser that reconnects by itself: 204 stops it (WHATWG HTML, section 9.2)."""
    if form is not AnswerForm.EVENTS or "last-event-id" not in request.headers:
        return None
    return Response(status_code=204, headers={"Cache-Control": "no-store"})


async def answer_prompt(request: Request, prompt: PromptSpec, only: AnswerForm | None = None) -> Response:
    """Answer a question that has been put together already.

    Args:
        request: the HTTP request.
        prompt: the question.
        only: the form of a route that gives one form.

    Raises:
        ToolchatError: the question could not be answered; an error in the middle of a stream becomes its last event.
    """
    state = service_state(request)
    form = negotiate(",".join(request.headers.getlist("accept")), only)
    asked = Asked(request, state, prompt)
    if form is AnswerForm.EVENTS:
        return stopped_reconnecting(request, form) or EventStream(asked)
    with state.admission.slot():
        response = await asked.whole()
    asked.headers["X-Finish-Reason"] = response.finish_reason
    if form is AnswerForm.JSON:
        return Response(
            to_json(asked.document(response), inf_nan_mode="strings"),
            media_type="application/json",
            headers=asked.headers,
        )
    return Response(response.message.text.encode(), media_type="text/plain; charset=utf-8", headers=asked.headers)
