"""The streams of messages from and to a server, by its process or by HTTP, with limits for servers that misbehave."""

import asyncio
import errno
import logging
import math
import os
import re
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx2
from anyio import CancelScope, EndOfStream, move_on_after
from anyio.abc import ObjectReceiveStream, ObjectStream
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter
from mcp_types.methods import validate_server_result
from pydantic import ValidationError
from yarl import URL

from toolchat.http.environment import Proxies, tls_context
from toolchat.service.mcp_client.file import ServerEntry
from toolchat.service.mcp_client.foreign_tools import sanitize_text
from toolchat.service.observability import tracing

_log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
TOO_LONG = f"it is longer than {MAX_MESSAGE_BYTES // 2**20} MiB"
MAX_LOGGED_LINES, MAX_LOGGED_CHARS = 200, 500
"""Lines of one process's standard error that are logged, and characters of each."""
MAX_SHOWN_CHARS = 100
"""Characters of an unreadable line that are shown in the reason why a server is unavailable."""
CONNECT_SECONDS = 10.0
EXIT_SECONDS = 2.0
"""Seconds for a process to exit, after the end of its input and after each signal."""
SESSION_END_TIMEOUT = 1.0
"""Seconds to wait for the server's reply to the DELETE that ends a session."""
_NO_SESSION = re.compile("(?i)session not found|no valid session id|(invalid or expired|missing) session id")
_NO_SESSION_CODES = (-32000, -32001, -32600)
"""How the SDKs say that a session is not known: TypeScript's examples, its transport, and Python's
(https://github.com/modelcontextprotocol/python-sdk/issues/1821). Some servers say so with the id of the request."""


@dataclass(slots=True)
class Exchange:
    """What HTTP says about the last request of a call, or of a connection; the SDK does not report it."""

    status: int | None = None
    """The status that refused it."""
    is_session_lost: bool = False
    """Whether it was refused by one of the statuses for a session that the server does not know."""
    is_broken: bool = False
    """Whether the connection broke within the response."""


EXCHANGE: ContextVar[Exchange] = ContextVar("EXCHANGE")
"""Filled in by the requests that are sent from this context."""


@dataclass(slots=True)
class Diagnostics:
    """Observations that may explain why a connection cannot be used."""

    on_end: Callable[[], None]
    """Is called when no more messages can arrive."""
    has_ended: bool = False
    unreadable_line: str = ""
    """The first line of a process since its last message that is none."""
    is_too_long: bool = False
    """Whether the connection was ended because of a line longer than any message may be."""
    malformed: set[str] = field(default_factory=set)
    """The names of tools that are left out of the listing, as the SDK would reject all of it."""


@asynccontextmanager
async def open_transport(
    server: str, entry: ServerEntry, proxies: Proxies, forwarded: Mapping[str, str], diagnostics: Diagnostics
) -> AsyncGenerator[Any, None]:
    """Connect to a server and yield the pair of streams that the SDK's client reads and writes."""
    streams = _http_streams(entry, proxies, forwarded) if entry.url else _stdio_streams(server, entry, diagnostics)
    async with streams as (read, write):
        yield CheckedStream(read, server, diagnostics), write


class CheckedStream(ObjectReceiveStream[Any]):
    """The messages from a server without malformed tools, one of which would make the SDK reject their whole list."""

    def __init__(self, stream: Any, server: str, diagnostics: Diagnostics) -> None:
        self._stream = stream
        self._server = server
        self._diagnostics = diagnostics

    @property
    def last_context(self) -> Any:
        """The context variables of the last message's sender, which the SDK restores."""
        return getattr(self._stream, "last_context", None)

    async def aclose(self) -> None:
        """Is called by the SDK before it tells the callers that wait that the connection has ended."""
        self._diagnostics.has_ended = True
        self._diagnostics.on_end()
        await self._stream.aclose()

    async def receive(self) -> Any:
        received = await self._stream.receive()
        if isinstance(received, SessionMessage) and isinstance(received.message, JSONRPCResponse):
            self._repair(received.message.result)
        return received

    def _repair(self, result: dict[str, Any]) -> None:
        if result.get("isError", False) is None:
            del result["isError"]
        tools = result.get("tools")
        if isinstance(tools, list):
            result["tools"] = [each for each in tools if self._is_well_formed({**result, "tools": [each]})]

    def _is_well_formed(self, listing: dict[str, Any]) -> bool:
        """Validate a list of one tool by the schema of its revision; only the newest revision has ``resultType``."""
        revision = "2026-07-28" if "resultType" in listing else "2025-11-25"
        try:
            validate_server_result("tools/list", revision, listing)
        except ValidationError as error:
            if any(fault["loc"][:1] == ("tools",) for fault in error.errors(include_input=False)):
                self._warn_once(listing["tools"][0])
                return False
        return True

    def _warn_once(self, tool: Any) -> None:
        name = sanitize_text(str(tool.get("name")) if isinstance(tool, dict) else "", 64)
        if name not in self._diagnostics.malformed:
            self._diagnostics.malformed.add(name)
            _log.warning("the tool %s of the MCP server %s cannot be used: it is malformed", name, self._server)


@asynccontextmanager
async def _stdio_streams(server: str, entry: ServerEntry, diagnostics: Diagnostics) -> AsyncGenerator[Any, None]:
    """Start a process; it inherits ``PATH`` and a few other safe variables, never those of the service."""
    if entry.cwd is not None and not os.path.isdir(entry.cwd):  # noqa: ASYNC240, PTH112 - the loop's error does not say
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), entry.cwd)
    environment = {**get_default_environment(), **entry.env}
    command = shutil.which(str(entry.command), path=environment.get("PATH")) or str(entry.command)
    process = await asyncio.create_subprocess_exec(
        command,
        *entry.args,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=environment,
        cwd=entry.cwd,
        limit=MAX_MESSAGE_BYTES,
        start_new_session=True,  # its children are ended with it
    )
    logs = asyncio.create_task(_log_lines(server, process.stderr))
    stream = ProcessStream(process, diagnostics)
    try:
        yield stream, stream
    finally:
        with CancelScope(shield=True):
            await stream.send_eof()
            rest = asyncio.create_task(_discard(process.stdout))  # a full pipe would keep it from exiting
            await _end_process(process)
            # A grandchild that survives can hold the pipes open for ever.
            _, unfinished = await asyncio.wait({rest, logs}, timeout=EXIT_SECONDS)
            for task in unfinished:
                task.cancel()


class ProcessStream(ObjectStream[SessionMessage]):
    """The messages of a process, one in a line."""

    def __init__(self, process: Process, diagnostics: Diagnostics) -> None:
        self._input: Any = process.stdin  # asyncio's types say that each pipe may be missing
        self._output: Any = process.stdout
        self._diagnostics = diagnostics

    async def send(self, item: SessionMessage) -> None:
        self._input.write(f"{item.message.model_dump_json(by_alias=True, exclude_unset=True)}\n".encode())
        with suppress(ConnectionError):  # the end of its output tells that the process is gone
            await self._input.drain()

    async def receive(self) -> SessionMessage:
        while line := await self._read_line():
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValidationError:  # such as a greeting
                self._diagnostics.unreadable_line = self._diagnostics.unreadable_line or sanitize_text(
                    line, MAX_SHOWN_CHARS
                )
            else:
                self._diagnostics.unreadable_line = ""
                return SessionMessage(message)
        raise EndOfStream

    async def _read_line(self) -> str:
        try:
            return str(await self._output.readline(), "utf-8", "replace")
        except ValueError:  # how asyncio says that a line is too long
            self._diagnostics.is_too_long = True
            return ""

    async def send_eof(self) -> None:
        self._input.close()

    async def aclose(self) -> None:
        """Nothing: the process is ended when both directions are closed."""


async def _log_lines(server: str, stderr: Any) -> None:
    """Log the standard error; lines beyond the limit are still read, since a full pipe would block the process."""
    for number in count():
        try:
            line = await stderr.readline()
        except ValueError:  # too long
            continue
        if not line:
            return
        text = sanitize_text(line.decode("utf-8", "replace"), MAX_LOGGED_CHARS) if number < MAX_LOGGED_LINES else ""
        if text:
            _log.info("MCP server wrote to stderr", extra={"server": server, "text": text})


async def _discard(output: Any) -> None:
    while await output.read(MAX_MESSAGE_BYTES):
        pass


async def _end_process(process: Process) -> None:
    """End a process whose input is closed, and its children, at last by force."""
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM), None):
        # Not asyncio's: in a task that is being cancelled, that of CPython before 3.11.4 ends in a cancellation.
        with move_on_after(EXIT_SECONDS):
            await process.wait()  # after the last signal as well, or it would stay in the table of processes
            return
        if number is not None:
            with suppress(ProcessLookupError):
                process.kill() if sys.platform == "win32" else os.killpg(process.pid, number)


@asynccontextmanager
async def _http_streams(
    entry: ServerEntry, proxies: Proxies, forwarded: Mapping[str, str]
) -> AsyncGenerator[Any, None]:
    verify, found = tls_context(), proxies.find(URL(str(entry.url)))
    proxy = None
    if found:
        own_tls = verify if found.url.scheme == "https" else None
        credentials = found.request_headers or found.connect_headers
        proxy = httpx2.Proxy(str(found.url), headers=credentials, ssl_context=own_tls)
    hooks: dict[str, list[Callable[..., Any]]] = {"request": [_prepare_request], "response": [_check_response]}
    replaced = {name.lower() for name in forwarded}
    own = {name: value for name, value in entry.headers.items() if name.lower() not in replaced}
    headers = {**own, **forwarded, "accept-encoding": "identity"}
    # No read timeout: every call has a limit of its own, and so has the length of its response.
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
    async with (
        httpx2.AsyncClient(
            verify=verify, proxy=proxy, headers=headers, timeout=timeout, trust_env=False, event_hooks=hooks
        ) as client,
        streamable_http_client(str(entry.url), http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams


async def _prepare_request(request: httpx2.Request) -> None:
    if tracing.observer is not None and request.method == "POST":
        tracing.observer.inject(request.headers)  # the SDK adds it to the body's _meta only
    if request.method == "DELETE":
        request.extensions["timeout"] = httpx2.Timeout(SESSION_END_TIMEOUT).as_dict()


async def _check_response(response: httpx2.Response) -> None:
    """Bound the length of a response, and note what its status says."""
    if response.has_redirect_location:
        # The SDK would quote the address in its error, which models and users read.
        fields = {"from": _origin(response.request.url), "to": _origin(response.headers.pop("location"))}
        _log.warning("an MCP server's redirect is not followed", extra=fields)
    exchange, status = EXCHANGE.get(), response.status_code
    if response.request.method == "POST":  # an older server answers the GET for its notifications with 405
        exchange.is_session_lost = status in (400, 404) and "mcp-session-id" in response.request.headers
        is_refused = status in (401, 403, 404, 405) or status >= 500 or response.is_redirect
        exchange.status = status if is_refused else None
    is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    # A compressed body was not requested and can expand a thousandfold: none of it is read. The SDK limits each event.
    is_packed = response.headers.get("content-encoding", "identity") != "identity"
    limit = 0 if is_packed else math.inf if is_stream else MAX_MESSAGE_BYTES
    response.stream = _BoundedStream(response.stream, limit, exchange)
    if response.request.method == "POST" and exchange.is_session_lost:
        exchange.is_session_lost = not await _is_answered(response)


async def _is_answered(response: httpx2.Response) -> bool:
    """Whether a body with a refusing status is the answer to its request, which must not be sent again."""
    if not response.headers.get("content-type", "").lower().startswith("application/json"):
        return False
    try:
        answer = jsonrpc_message_adapter.validate_json(await response.aread(), by_name=False)
        asked = jsonrpc_message_adapter.validate_json(response.request.content, by_name=False)
    except (httpx2.StreamError, ValidationError):
        return False
    if not (isinstance(answer, JSONRPCError) and isinstance(asked, JSONRPCRequest) and answer.id == asked.id):
        return False
    return not (answer.error.code in _NO_SESSION_CODES and _NO_SESSION.search(answer.error.message))


def _origin(address: httpx2.URL | str) -> str:
    """Scheme, host and port: the rest of an address may hold a key."""
    try:
        return str(URL(str(address)).origin())
    except ValueError:
        return "another path"  # of the same server


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, limit: float, exchange: Exchange) -> None:
        self._stream = stream
        self._left = limit
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._stream:
                self._left -= len(piece)
                if self._left < 0:
                    # The SDK answers an error of this type to the one request, and the connection lives on.
                    raise httpx2.StreamError(TOO_LONG)
                yield piece
        except httpx2.TransportError:
            self._exchange.is_broken = True
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()
