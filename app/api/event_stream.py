"""An answer as server-sent events, live while the model writes."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from fastapi import Response
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from app.api.asked import Asked, usage_record
from app.chat.request import ChatEvent, Notice
from app.chat_models.base import ChatResponse, TextDelta
from app.errors import Draining, ToolchatError
from app.tool_calling.events import ToolCallFinished, ToolCallStarted, parsed_arguments

__all__ = ["EventStream"]

_log = logging.getLogger(__name__)


class EventStream(Response):
    """Sends events while the model writes.

    The status line goes out with the first event, so that a question which fails before that gets a true HTTP
    status. After it, an error is an ``error`` event with a problem document, and there is no ``done``. A silent
    stream is kept open by comments, since proxies cut connections that stay silent for 60 s.
    """

    media_type = "text/event-stream; charset=utf-8"

    def __init__(self, asked: Asked) -> None:
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
        except asyncio.CancelledError:
            if not self._begun or self._asked.client_is_gone:
                raise
            await self._fail(Draining("the service was stopped before the answer was ready"))
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
            elif isinstance(event, Notice):
                await self._emit(event.name, event.data)
            elif isinstance(event, ChatResponse):
                finished = self._asked.finished(event)
                await self._emit("usage", usage_record(finished))
                await self._emit("done", self._asked.document(finished))

    async def _fail(self, error: ToolchatError) -> None:
        if not self._begun:
            raise error
        await self._emit("error", self._asked.failed(error))

    async def _emit(self, event: str, data: Mapping[str, Any]) -> None:
        await self._write(b"event: %b\ndata: %b\n\n" % (event.encode(), to_json(data, inf_nan_mode="strings")))

    async def _write(self, piece: bytes) -> None:
        if not self._begun:
            self._begun = True
            # A browser that lost the connection sends the id back, and is then told to stop.
            piece = b"id: %b\n%b" % (self._asked.request_id.encode(), piece)
            await self._send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        self._last_sent = time.monotonic()
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def _keep_alive(self) -> None:
        longest = self._asked.state.settings.stream_keep_alive
        while True:
            silent = time.monotonic() - self._last_sent
            if silent >= longest:
                await self._write(b": keep-alive\n\n")
                silent = 0
            await asyncio.sleep(longest - silent)


def _started_record(event: ToolCallStarted) -> dict[str, Any]:
    call = event.call
    return {"id": call.id, "name": call.name, "arguments": parsed_arguments(call), "round": event.round}
