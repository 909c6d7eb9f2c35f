"""Progress notifications, and calls that send them as server-sent events before the result."""

from functools import partial
from typing import Any, ClassVar

from fastapi import Request, Response
from pydantic_core import to_json

from app.api.problems import problem
from app.api.responses.active_request import ActiveRequest
from app.api.responses.event_stream import StreamedAnswer, StreamFormat, StreamWriter
from app.api.service import ServiceState
from app.protocols.mcp_server.jsonrpc import Exchange, Id, RpcError
from app.protocols.mcp_server.tools import TOOL_RESULT, Call
from toolchat.chat.request import ChatEvent
from toolchat.errors import ToolchatError
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.events import ToolCallFinished, ToolCallProgress, ToolCallStarted

__all__ = ["ProgressNotifier", "streamed_call"]


class ProgressNotifier:
    """Creates the progress notifications of one request.

    A called tool reports its own progress; for ``ask`` the notifications name the tools that run. The protocol requires
    that ``progress`` grows with every notification, so events that do not advance it are dropped.

    Args:
        token: the client's progress token.
        of_one_tool: whether the request calls a tool other than ``ask``.
    """

    def __init__(self, token: Id, *, of_one_tool: bool) -> None:
        self._token = token
        self._of_one_tool = of_one_tool
        self._reached: float = -1

    def notification(self, event: ChatEvent) -> bytes:
        """The notification for an event; empty if there is none."""
        progress = self._of_tool(event) if self._of_one_tool else self._of_question(event)
        if not progress or progress["progress"] <= self._reached:
            return b""
        self._reached = progress["progress"]
        params = {"progressToken": self._token, **{key: each for key, each in progress.items() if each is not None}}
        return to_json({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    def _of_tool(self, event: ChatEvent) -> dict[str, Any]:
        if not isinstance(event, ToolCallProgress):
            return {}
        return {"progress": event.done, "total": event.of, "message": event.text}

    def _of_question(self, event: ChatEvent) -> dict[str, Any]:
        """Count the events, because the total number of calls is unknown."""
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
    """Run a call and stream its progress under the client's token, then its result."""
    active = ActiveRequest(request, service, call.prompt, call.taken)
    return StreamedAnswer(active, _EventStream(exchange, call, token))


class _EventStream(StreamFormat):
    media_type = "text/event-stream"
    documentation: ClassVar = {"schema": {"type": "string"}}

    def __init__(self, exchange: Exchange, call: Call, token: Id) -> None:
        self.writer = partial(_EventWriter, exchange, call, token)


class _EventWriter(StreamWriter):
    """Writes progress notifications, then the response."""

    def __init__(self, exchange: Exchange, call: Call, token: Id, active: ActiveRequest) -> None:
        super().__init__(active)
        self._exchange = exchange
        self._form = call.form
        self._progress = ProgressNotifier(token, of_one_tool=call.form is TOOL_RESULT)

    def event(self, event: ChatEvent) -> bytes:
        """See :meth:`StreamWriter.event`."""
        return _sse(self._progress.notification(event))

    def done(self, response: ChatResponse) -> bytes:
        """See :meth:`StreamWriter.done`."""
        return _sse(self._exchange.response(self._form.render(self.active, response)))

    def on_error(self, error: ToolchatError) -> bytes:
        """See :meth:`StreamWriter.on_error`."""
        return _sse(self._exchange.error(RpcError.from_error(error, problem(error, self.active.request_id))))


def _sse(message: bytes) -> bytes:
    return b"event: message\ndata: %b\n\n" % message if message else b""
