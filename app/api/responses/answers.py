"""Answering a question in the form that the client accepts."""

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from functools import lru_cache
from typing import Any

from fastapi import Request, Response
from starlette.types import Receive, Scope, Send

from app.api.approvals import PendingTurn
from app.api.dependencies import reject_prefetch
from app.api.problems import as_toolchat_error
from app.api.responses.active_request import ActiveRequest
from app.api.responses.formats import AnswerFormat, BufferedFormat, StreamFormat
from app.api.service import ServiceState, service_state
from toolchat.chat.client import PromptSpec
from toolchat.chat.request import ChatEvent
from toolchat.errors import Draining, NotAcceptable, ToolchatError

__all__ = ["StreamedAnswer", "acceptable", "answer", "answer_prompt", "negotiate"]


def acceptable(request: Request, only: AnswerFormat | None = None) -> AnswerFormat:
    """Choose the form that a request accepts.

    Args:
        request: the HTTP request; its application has the forms in the order in which ``*/*`` prefers them.
        only: the form of a route that gives one form.

    Raises:
        NotAcceptable: the header rules every form out.
    """
    if only is not None and not only.negotiated:
        return only
    forms: tuple[AnswerFormat, ...] = (only,) if only else request.app.state.answer_formats
    accept = [value.decode("latin-1") for name, value in request.scope["headers"] if name == b"accept"]
    return negotiate(",".join(accept), forms)


@lru_cache(maxsize=256)
def negotiate(accept: str, forms: tuple[AnswerFormat, ...]) -> AnswerFormat:
    """Choose by quality, then by how exactly a form is named, then by the order of the header.

    Raises:
        NotAcceptable: the header rules every form out.
    """
    if not accept.strip():
        return forms[0]
    ranges = [_media_range(part) for part in accept[:4096].split(",")]
    rank, best = max(((_rank(form, ranges), form) for form in forms), key=lambda ranked: ranked[0])
    if rank[0] <= 0:
        raise NotAcceptable(_refusal(forms))
    return best


def _refusal(forms: Sequence[AnswerFormat]) -> str:
    if len(forms) == 1:
        return f"the only form here is {forms[0].media_type}"
    return f"Accept allows none of {', '.join(form.media_type for form in forms)}"


def _media_range(part: str) -> tuple[str, float]:
    name, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    try:
        return name, min(max(float(quality), 0.0), 1.0)
    except ValueError:
        return name, 0.0


def _rank(form: AnswerFormat, ranges: list[tuple[str, float]]) -> tuple[float, int, int]:
    main_type = form.media_type.split("/", 1)[0]
    for exactness, wanted in ((2, form.media_type), (1, f"{main_type}/*"), (0, "*/*")):
        for position, (name, quality) in enumerate(ranges):
            if name == wanted:
                # Among forms that only a wildcard names, their own order decides: max keeps the first.
                return quality, exactness, -position
    return 0.0, 0, 0


_log = logging.getLogger(__name__)


class StreamedAnswer(Response):
    """Sends an answer while the model writes it.

    The status line goes out with the first piece, so that a question which fails before that gets a true HTTP
    status. After it, an error is the last piece. A silent stream is kept open, since proxies cut connections that
    stay silent for 60 s.
    """

    def __init__(self, asked: ActiveRequest, form: StreamFormat) -> None:
        self._writer = form.writer(asked)  # first: what it takes from the headers must not go out
        super().__init__(
            headers=asked.headers | {"X-Accel-Buffering": "no"}, media_type=form.media_type + form.parameters
        )
        del self.headers["content-length"]
        self._asked = asked
        self._form = form
        self._begun = False
        self._writing = False
        self._last_sent = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        self._send = send
        refusal = None
        async with self._asked.service.admission.slot() as self._asked.reservation:
            self.headers.update(self._asked.reservation.headers)
            keep_alive = asyncio.create_task(self._keep_alive())
            try:
                refusal = await self._answer()
            finally:
                keep_alive.cancel()
        if refusal is not None:
            await refusal(scope, receive, send)
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _answer(self) -> Response | None:
        """Send the answer, or the error as its last piece; give the response to an error that comes before it."""
        try:
            response = await self._form.finished(self._asked, await self._asked.stream(self._tell))
            await self._write(self._writer.done(response))
        except ToolchatError as error:
            return await self._fail(error)
        except asyncio.CancelledError:
            if not self._begun or self._asked.client_is_gone:
                raise
            await self._fail(Draining("the service was stopped before the answer was ready"))
        except Exception as error:
            if not self._begun:
                raise
            told = as_toolchat_error(error)
            if type(told) is ToolchatError:
                _log.error("unhandled exception", exc_info=error)
            await self._fail(told)
        return None

    async def _tell(self, event: ChatEvent) -> None:
        if piece := self._writer.event(event):
            await self._write(piece)

    async def _fail(self, error: ToolchatError) -> Response | None:
        if not self._begun:
            return self._form.refused(self._asked, error)
        self._asked.record_error(error)
        await self._write(self._writer.on_error(error))
        return None

    async def _write(self, piece: bytes) -> None:
        if not self._begun:
            self._begun = True
            self._asked.name_model()
            self.headers.update(self._asked.headers)  # what the first piece has brought is told, too
            await self._send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        self._writing = True
        try:
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            self._writing = False
            self._last_sent = time.monotonic()

    async def _keep_alive(self) -> None:
        longest = self._asked.service.settings.stream_keep_alive
        while True:
            silent = time.monotonic() - self._last_sent
            if silent >= longest:
                silent = 0
                if not self._writing:  # what waits for a client to read it is no silence
                    await self._write(self._writer.keep_alive())
            await asyncio.sleep(longest - silent)


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
    reject_prefetch(request)  # questions without a session leave nothing behind, and cost money all the same
    service = service_state(request)
    return _answer(request, service, service.chat.prompt(query).tools(*tools))


def answer_prompt(
    request: Request, prompt: PromptSpec, only: AnswerFormat | None = None, *, taken: PendingTurn | None = None
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
    taken: PendingTurn | None = None,
) -> Response:
    form = acceptable(request, only)
    if response := form.short_circuit(request):
        return response
    request.scope["state"]["form"] = form.media_type
    asked = ActiveRequest(request, service, prompt, taken)
    if isinstance(form, StreamFormat):
        return StreamedAnswer(asked, form)
    if isinstance(form, BufferedFormat):
        return await _whole(asked, form)
    raise TypeError(f"{type(form).__name__} is neither a BufferedFormat nor a StreamFormat")


async def _whole(asked: ActiveRequest, form: BufferedFormat) -> Response:
    try:
        async with asked.service.admission.slot() as asked.reservation:
            asked.headers |= asked.reservation.headers
            response = await form.finished(asked, await asked.complete())
    except ToolchatError as error:
        return form.refused(asked, error)
    asked.headers["X-Finish-Reason"] = response.finish_reason
    body = form.render(asked, response)
    return Response(body, media_type=form.media_type + form.parameters, headers=asked.headers)
