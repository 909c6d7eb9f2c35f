"""One answer in its three forms: text, JSON with the whole trace, server-sent events."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from fastapi import Request, Response
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from app.api.negotiation import AnswerForm, negotiate
from app.api.problems import problem
from app.api.state import ServiceState, service_state
from app.chat.client import PromptSpec
from app.chat.request import ChatEvent
from app.chat_models.base import ChatResponse, TextDelta
from app.errors import DeadlineExceeded, ToolchatError
from app.tool_calling.events import ToolCallFinished, ToolCallStarted, parsed_arguments

__all__ = ["answer", "answer_document"]

_log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 15
"""Longest silence on an open stream; proxies cut connections that stay silent for 60 s."""


async def answer(request: Request, query: str, tools: Sequence[object] = ()) -> Response:
    """Ask the model and answer in the form that the client accepts.

    Args:
        request: the HTTP request.
        query: the question.
        tools: what ``PromptSpec.tools`` takes.

    Raises:
        ToolchatError: the question could not be answered; an error in the middle of a stream becomes its last event.
    """
    state = service_state(request)
    form = negotiate(request.headers.get("accept"))
    asked = _Asked(request, state, state.chat.prompt(query).tools(*tools))
    if form is AnswerForm.EVENTS:
        return _EventStream(asked)
    with state.admission.slot():
        response = await asked.whole()
    if form is AnswerForm.JSON:
        return Response(to_json(asked.document(response)), media_type="application/json", headers=asked.headers)
    return Response(response.message.text.encode(), media_type="text/plain; charset=utf-8", headers=asked.headers)


def answer_document(response: ChatResponse, provider: str) -> dict[str, Any]:
    """An answer with its whole trace, as a plain object."""
    return {
        "answer": response.message.text,
        "model": {"provider": provider, "name": response.model},
        "finish_reason": response.finish_reason,
        "rounds": response.rounds,
        "tool_calls": [each.as_record() for each in response.executions],
        "usage": _usage(response),
    }


class _Asked:
    """A question that is being answered for one request."""

    def __init__(self, request: Request, state: ServiceState, prompt: PromptSpec) -> None:
        self.state = state
        self.prompt = prompt
        self.request_id: str = request.state.request_id
        self._request = request
        self._started = time.perf_counter()
        self.headers = {"Cache-Control": "no-store", "Vary": "Accept", "X-Chat-Model": state.model_label}
        sandboxed = [tool.definition.name for tool in prompt.request.tools if tool.metadata.sandbox]
        if sandboxed:
            self.headers["X-Sandbox"] = ", ".join(name for name in sandboxed if name.isascii()) or "true"

    async def whole(self) -> ChatResponse:
        try:
            async with asyncio.timeout(self.state.settings.request_timeout):
                response = await self.prompt.call().response()
        except TimeoutError:
            raise self.too_late() from None
        self.note(response)
        return response

    def too_late(self) -> DeadlineExceeded:
        return DeadlineExceeded(f"the question was not answered within {self.state.settings.request_timeout:g} s")

    def note(self, response: ChatResponse) -> None:
        """Leave what the log line at the end of the request says about the answer."""
        calls = [
            {"name": each.call.name[:64], "outcome": each.error_kind or "ok", "ms": each.duration_ms}
            for each in response.executions
        ]
        self._request.state.summary = {"rounds": response.rounds, "tool_calls": calls}

    def failed(self, error: ToolchatError) -> Mapping[str, Any]:
        """Leave the error for the log line, and give its problem document."""
        self._request.state.outcome = error.code
        return problem(error, self.request_id)

    def document(self, response: ChatResponse) -> dict[str, Any]:
        document = answer_document(response, self.state.chat.model.provider)
        document["duration_ms"] = round((time.perf_counter() - self._started) * 1000, 3)
        document["request_id"] = self.request_id
        return document


class _EventStream(Response):
    """Sends events while the model writes.

    The status line goes out with the first event, so that a question which fails before that gets a true HTTP
    status. After it, an error is an ``error`` event with a problem document, and there is no ``done``.
    """

    media_type = "text/event-stream; charset=utf-8"

    def __init__(self, asked: _Asked) -> None:
        super().__init__(headers=asked.headers | {"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._asked = asked
        self._begun = False
        self._last_sent = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Answer one request."""
        self._send = send
        with self._asked.state.admission.slot():
            keep_alive = asyncio.create_task(self._keep_alive())
            try:
                await self._run()
            finally:
                keep_alive.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(self._asked.state.settings.request_timeout):
                async with aclosing(self._asked.prompt.stream().events()) as events:
                    await self._send_all(events)
        except TimeoutError:
            await self._fail(self._asked.too_late())
        except ToolchatError as error:
            await self._fail(error)
        except Exception as error:
            if not self._begun:
                raise
            _log.error("unhandled exception", exc_info=error)
            await self._fail(ToolchatError("An unexpected error; the log has it under this request id"))

    async def _send_all(self, events: AsyncGenerator[ChatEvent, None]) -> None:
        async for event in events:
            if isinstance(event, TextDelta):
                await self._emit("delta", {"text": event.text})
            elif isinstance(event, ToolCallStarted):
                await self._emit("tool_call_started", _started_record(event))
            elif isinstance(event, ToolCallFinished):
                await self._emit("tool_call_finished", event.as_record())
            elif isinstance(event, ChatResponse):
                self._asked.note(event)
                await self._emit("usage", _usage(event))
                await self._emit("done", self._asked.document(event))

    async def _fail(self, error: ToolchatError) -> None:
        if not self._begun:
            raise error
        await self._emit("error", self._asked.failed(error))

    async def _emit(self, event: str, data: Mapping[str, Any]) -> None:
        await self._write(b"event: %b\ndata: %b\n\n" % (event.encode(), to_json(data)))

    async def _write(self, piece: bytes) -> None:
        if not self._begun:
            self._begun = True
            await self._send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        self._last_sent = time.monotonic()
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def _keep_alive(self) -> None:
        while True:
            silent = time.monotonic() - self._last_sent
            if silent >= KEEP_ALIVE_SECONDS:
                await self._write(b": keep-alive\n\n")
                silent = 0
            await asyncio.sleep(KEEP_ALIVE_SECONDS - silent)


def _started_record(event: ToolCallStarted) -> dict[str, Any]:
    call = event.call
    return {"id": call.id, "name": call.name, "arguments": parsed_arguments(call), "round": event.round}


def _usage(response: ChatResponse) -> dict[str, int]:
    usage = response.usage
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }
