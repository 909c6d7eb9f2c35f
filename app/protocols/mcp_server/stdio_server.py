"""The protocol over one stream of lines, as a desktop host speaks it with a process that it has started."""

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
from app.protocols.mcp_server.exchange import Exchange, exchange_of
from app.protocols.mcp_server.jsonrpc import INVALID_REQUEST, Id, Message, RpcError, read_message
from app.protocols.mcp_server.methods import perform
from app.protocols.mcp_server.results import TOOL_RESULT, Call, made
from app.protocols.mcp_server.streaming import ProgressNotifier
from toolchat.chat.request import ChatEvent, Emit
from toolchat.errors import ToolchatError
from toolchat.tool_calling.events import silent

__all__ = ["StdioServer"]

_log = logging.getLogger("app.request")

Write = Callable[[bytes], None]
"""Writes one message, and what ends the line."""


class StdioServer:
    """Answers requests side by side, each as soon as it is ready.

    Args:
        service: the running service.
        write: writes one message.
    """

    def __init__(self, service: ServiceState, write: Write) -> None:
        self._service = service
        self._write = write
        self._running: dict[Id, asyncio.Task[None]] = {}

    async def serve(self, lines: AsyncIterable[bytes]) -> None:
        """Answer every line, and what still runs when there are no more."""
        async for line in lines:
            if line.strip():
                self._take(line)
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _take(self, line: bytes) -> None:
        try:
            message = read_message(line)
            if message.id in self._running:
                raise RpcError(INVALID_REQUEST, "a request of this id still runs")
        except RpcError as error:
            self._write(error.response(error.id))
            return
        if message.id is None:
            self._hear(message)
            return
        self._running[message.id] = asyncio.create_task(self._answer(message, message.id))

    def _hear(self, notification: Message) -> None:
        if notification.method == "notifications/cancelled":
            identifier = notification.params.get("requestId")
            task = self._running.get(identifier) if isinstance(identifier, str | int) else None
            if task is not None:
                task.cancel()

    async def _answer(self, message: Message, pair: Id) -> None:
        identifier = os.urandom(8).hex()
        current_request_id.set(identifier)
        try:
            answer = await self._answered(message, identifier)
        except RpcError as error:
            answer = error.response(pair)
        except Exception as error:  # noqa: BLE001 - the last net: the host waits for an answer
            told = error if isinstance(error, ToolchatError) else as_toolchat_error(error)
            if told is not error:
                _log.error("unhandled exception", exc_info=error)
            answer = RpcError.of(told, problem(told, identifier)).response(pair)
        finally:
            self._running.pop(pair, None)
        self._write(answer)

    async def _answered(self, message: Message, identifier: str) -> bytes:
        exchange = exchange_of(message, None)
        done = await perform(self._service, exchange, {"tenantId": "zh"})
        if isinstance(done, bytes):
            return exchange.response(done)
        # What is asked is asked by a request elsewhere; all that is needed of one is where its summary is left.
        request = Request({"type": "http", "state": {"request_id": identifier}})
        asked = ActiveRequest(request, self._service, done.prompt, done.taken)
        result = await made(asked, done.form, self._telling(exchange, done))
        log_event(_log, logging.INFO, "request finished", {"method": message.method, **request.state.summary})
        return exchange.response(result)

    def _telling(self, exchange: Exchange, call: Call) -> Emit:
        token = exchange.progress_token
        if token is None:
            return silent
        progress = ProgressNotifier(token, of_one_tool=call.form is TOOL_RESULT)

        async def tell(event: ChatEvent) -> None:
            if notification := progress.notification(event):
                self._write(notification)

        return tell
