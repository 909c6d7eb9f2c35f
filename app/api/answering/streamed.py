"""The HTTP response that sends an answer while it is made, in whatever form streams."""

import asyncio
import logging
import time

from fastapi import Response
from starlette.types import Receive, Scope, Send

from app.api.answering.asked import Asked
from app.api.answering.format import StreamFormat
from app.api.problems import as_toolchat_error
from app.chat.request import ChatEvent
from app.errors import Draining, ToolchatError

__all__ = ["StreamedAnswer"]

_log = logging.getLogger(__name__)


class StreamedAnswer(Response):
    """Sends an answer while the model writes it.

    The status line goes out with the first piece, so that a question which fails before that gets a true HTTP
    status. After it, an error is the last piece. A silent stream is kept open, since proxies cut connections that
    stay silent for 60 s.
    """

    def __init__(self, asked: Asked, form: StreamFormat) -> None:
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
        async with self._asked.service.admission.place() as self._asked.spending:
            self.headers.update(self._asked.spending.headers)
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
            response = await self._form.finished(self._asked, await self._asked.streamed(self._tell))
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
        self._asked.note_failure(error)
        await self._write(self._writer.failed(error))
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
