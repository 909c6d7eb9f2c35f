"""A call whose progress is told while it runs, as server-sent events."""

from typing import ClassVar

from fastapi import Request, Response
from starlette.types import Receive, Scope, Send

from app.api.answering.asked import Asked
from app.api.answering.format import StreamFormat, StreamWriter
from app.api.answering.streamed import StreamedAnswer
from app.api.mcp.exchange import Exchange
from app.api.mcp.progress import ProgressTold
from app.api.mcp.replies import failure
from app.api.mcp.results import TOOL_RESULT, Call
from app.api.mcp.rpc import Id, RpcError
from app.api.problems import problem
from app.api.service import ServiceState
from app.chat.request import ChatEvent
from app.chat_models.base import ChatResponse
from app.errors import ToolchatError

__all__ = ["streamed_call"]


def streamed_call(request: Request, service: ServiceState, exchange: Exchange, call: Call, token: Id) -> Response:
    """Make a call, and tell its progress under the client's token until it is answered."""
    return _StreamedCall(_AskedByHost(request, service, exchange, call, token), _EVENTS)


class _StreamedCall(StreamedAnswer):
    """The response; a call for which there is no place is refused in the protocol's own words, too."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except ToolchatError as error:
            self._asked.note_failure(error)
            await self._form.refused(self._asked, error)(scope, receive, send)


class _AskedByHost(Asked):
    """A call that is being made, with what its events are written by."""

    def __init__(self, request: Request, service: ServiceState, exchange: Exchange, call: Call, token: Id) -> None:
        super().__init__(request, service, call.prompt, call.taken)
        self.exchange = exchange
        self.form = call.form
        self.progress = ProgressTold(token, of_one_tool=call.form is TOOL_RESULT)
        if call.form is TOOL_RESULT:
            del self.headers["X-Chat-Model"]  # no model had a part in it


class _Writer(StreamWriter):
    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._host = _host(asked)

    def event(self, event: ChatEvent) -> bytes:
        return _event(self._host.progress.notification(event))

    def done(self, response: ChatResponse) -> bytes:
        return _event(self._host.exchange.response(self._host.form.written(self._host, response)))

    def failed(self, error: ToolchatError) -> bytes:
        return _event(self._host.exchange.error(RpcError.of(error, problem(error, self._host.request_id))))


class _Events(StreamFormat):
    media_type = "text/event-stream"
    documentation: ClassVar = {"schema": {"type": "string"}}
    writer = _Writer

    def refused(self, asked: Asked, error: ToolchatError) -> Response:
        return failure(error, asked.request_id, _host(asked).exchange)


_EVENTS = _Events()


def _host(asked: Asked) -> _AskedByHost:
    if not isinstance(asked, _AskedByHost):
        raise TypeError("these events are written for hosts alone")
    return asked


def _event(message: bytes) -> bytes:
    return b"event: message\ndata: %b\n\n" % message if message else b""
