"""The MCP server over lines of standard input and output, as desktop hosts start it."""

import asyncio
import logging
import os
from collections.abc import AsyncIterable, Callable

from fastapi import Request

from app.api.problems import as_toolchat_error, problem
from app.api.responses.active_request import ActiveRequest
from app.api.service import ServiceState
from app.observability.logs import log_event
from app.observability.logs import request_id as current_request_id
from app.protocols.mcp_server.jsonrpc import (
    INVALID_REQUEST,
    Exchange,
    Id,
    Message,
    RpcError,
    open_exchange,
    read_message,
)
from app.protocols.mcp_server.methods import perform
from app.protocols.mcp_server.streaming import ProgressNotifier
from app.protocols.mcp_server.tools import TOOL_RESULT, Call, execute_call
from toolchat.chat.request import ChatEvent, Emit
from toolchat.errors import ToolchatError
from toolchat.tool_calling.events import discard_event

__all__ = ["StdioServer"]

_log = logging.getLogger("app.request")

Write = Callable[[bytes], None]
"""Writes one message and ends the line."""


class StdioServer:
    """Answers requests concurrently, in the order in which their results are ready.

    Args:
        service: the running service.
        write: writes one message.
    """

    def __init__(self, service: ServiceState, write: Write) -> None:
        self._service = service
        self._write = write
        self._running: dict[Id, asyncio.Task[None]] = {}

    async def serve(self, lines: AsyncIterable[bytes]) -> None:
        """Answer every line; after the last one, wait for the requests that still run."""
        async for line in lines:
            if line.strip():
                self._on_line(line)
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _on_line(self, line: bytes) -> None:
        try:
            message = read_message(line)
            if message.id in self._running:
                raise RpcError(INVALID_REQUEST, "a request with this id is still running")
        except RpcError as error:
            self._write(error.response(error.id))
            return
        if message.id is None:
            self._on_notification(message)
            return
        self._running[message.id] = asyncio.create_task(self._answer(message, message.id))

    def _on_notification(self, notification: Message) -> None:
        if notification.method == "notifications/cancelled":
            identifier = notification.params.get("requestId")
            task = self._running.get(identifier) if isinstance(identifier, str | int) else None
            if task is not None:
                task.cancel()

    async def _answer(self, message: Message, identifier: Id) -> None:
        """Write the response to a request; a cancelled request gets none, as the protocol requires."""
        request_id = os.urandom(8).hex()
        current_request_id.set(request_id)
        try:
            response = await self._response(message, request_id)
        except RpcError as error:
            response = error.response(identifier)
        except Exception as error:  # noqa: BLE001 - the host waits for a response whatever happens
            known = error if isinstance(error, ToolchatError) else as_toolchat_error(error)
            if known is not error:
                _log.error("unhandled exception", exc_info=error)
            response = RpcError.from_error(known, problem(known, request_id)).response(identifier)
        finally:
            self._running.pop(identifier, None)
        self._write(response)

    async def _response(self, message: Message, request_id: str) -> bytes:
        exchange = open_exchange(message, None)
        call = await perform(self._service, exchange, {"tenantId": "zh"})
        if isinstance(call, bytes):
            return exchange.response(call)
        # An active request belongs to an HTTP request. This one stands in for it and collects the log summary.
        request = Request({"type": "http", "state": {"request_id": request_id}})
        active = ActiveRequest(request, self._service, call.prompt, call.taken)
        result = await execute_call(active, call.form, self._progress_emitter(exchange, call))
        log_event(_log, logging.INFO, "request finished", {"method": message.method, **request.state.summary})
        return exchange.response(result)

    def _progress_emitter(self, exchange: Exchange, call: Call) -> Emit:
        token = exchange.progress_token
        if token is None:
            return discard_event
        progress = ProgressNotifier(token, of_one_tool=call.form is TOOL_RESULT)

        async def emit(event: ChatEvent) -> None:
            if notification := progress.notification(event):
                self._write(notification)

        return emit
