"""A call whose progress is told while it runs, as server-sent events."""

from typing import Any, ClassVar

from fastapi import Request, Response
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from app.api.problems import problem
from app.api.responses.active_request import ActiveRequest
from app.api.responses.answers import StreamedAnswer
from app.api.responses.formats import StreamFormat, StreamWriter
from app.api.service import ServiceState
from app.protocols.mcp_server.exchange import Exchange
from app.protocols.mcp_server.jsonrpc import Id, RpcError
from app.protocols.mcp_server.replies import failure
from app.protocols.mcp_server.results import TOOL_RESULT, Call
from toolchat.chat.request import ChatEvent
from toolchat.errors import ToolchatError
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.events import ToolCallFinished, ToolCallProgress, ToolCallStarted

__all__ = ["ProgressNotifier", "streamed_call"]


class ProgressNotifier:
    """Writes the notifications of one request.

    A tool that was called tells how far it is; of a question it is told which tools run. A host may rely on it that
    the number grows each time: what does not grow is not told.

    Args:
        token: the client's own.
        of_one_tool: whether the request called a tool, and not ``ask``.
    """

    def __init__(self, token: Id, *, of_one_tool: bool) -> None:
        self._token = token
        self._of_one_tool = of_one_tool
        self._reached: float = -1

    def notification(self, event: ChatEvent) -> bytes:
        """The notification of an event; empty where there is none."""
        told = self._of_tool(event) if self._of_one_tool else self._of_question(event)
        if not told or told["progress"] <= self._reached:
            return b""
        self._reached = told["progress"]
        params = {"progressToken": self._token, **{key: each for key, each in told.items() if each is not None}}
        return to_json({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    def _of_tool(self, event: ChatEvent) -> dict[str, Any]:
        if not isinstance(event, ToolCallProgress):
            return {}
        return {"progress": event.done, "total": event.of, "message": event.text}

    def _of_question(self, event: ChatEvent) -> dict[str, Any]:
        """Nobody knows how many steps a question takes: they are counted."""
        match event:
            case ToolCallStarted():
                message = f"{event.call.name} runs"
            case ToolCallProgress():
                message = str(event)
            case ToolCallFinished():
                message = f"{event.call.name} has ended" + (f": {event.error_kind}" if event.error_kind else "")
            case _:
                return {}
        return {"progress": max(self._reached, 0) + 1, "message": message}


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


class _AskedByHost(ActiveRequest):
    """A call that is being made, with what its events are written by."""

    def __init__(self, request: Request, service: ServiceState, exchange: Exchange, call: Call, token: Id) -> None:
        super().__init__(request, service, call.prompt, call.taken)
        self.exchange = exchange
        self.form = call.form
        self.progress = ProgressNotifier(token, of_one_tool=call.form is TOOL_RESULT)
        if call.form is TOOL_RESULT:
            del self.headers["X-Chat-Model"]  # no model had a part in it


class _Writer(StreamWriter):
    def __init__(self, asked: ActiveRequest) -> None:
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

    def refused(self, asked: ActiveRequest, error: ToolchatError) -> Response:
        return failure(error, asked.request_id, _host(asked).exchange)


_EVENTS = _Events()


def _host(asked: ActiveRequest) -> _AskedByHost:
    if not isinstance(asked, _AskedByHost):
        raise TypeError("these events are written for hosts alone")
    return asked


def _event(message: bytes) -> bytes:
    return b"event: message\ndata: %b\n\n" % message if message else b""
