"""The SDK's two client transports, a child process or streamable HTTP, with limits for servers that misbehave."""

import codecs
import errno
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Any, TextIO

import httpx2
from anyio import EndOfStream
from anyio.abc import ObjectReceiveStream
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse
from mcp_types.methods import validate_server_result
from pydantic import ValidationError
from yarl import URL

from toolchat.http.environment import Proxies, tls_context
from toolchat.service.mcp_client.file import ServerEntry
from toolchat.service.mcp_client.sanitizing import sanitize_text
from toolchat.service.observability import tracing

_log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
TOO_LONG = f"it is longer than {MAX_MESSAGE_BYTES // 2**20} MiB"
MAX_UNREADABLE_LINES = 1000
"""Lines that are not messages, such as greetings, before the connection is given up."""
MAX_LOGGED_LINES, MAX_LOGGED_CHARS = 200, 500
"""Lines of one process's standard error that are logged, and characters of each."""
MAX_SHOWN_CHARS = 100
"""Characters of an unreadable line that are shown in the reason why a server is unavailable."""
MAX_WARNINGS = 100
CONNECT_SECONDS = 10.0
_REFUSALS = (401, 403, 404, 405)
SESSION_END_TIMEOUT = 1.0
"""Seconds to wait for the server's reply to the DELETE that ends a session."""


@dataclass(slots=True)
class Diagnostics:
    """Observations that may explain why a server cannot be used."""

    status: int | None = None
    """The HTTP status of the last message, if it was refused; the SDK does not report it."""
    unreadable_line: str = ""
    """The first line of a process that has not sent any message."""
    is_too_long: bool = False
    """Whether the connection was ended because of a line longer than any message may be."""


@asynccontextmanager
async def open_transport(
    server: str,
    entry: ServerEntry,
    *,
    proxies: Proxies,
    forwarded: Mapping[str, str],
    diagnostics: Diagnostics,
    on_end: Callable[[], None],
) -> AsyncGenerator[Any, None]:
    """Connect to a server and yield the pair of streams that the SDK's client reads and writes.

    Args:
        server: the server's name, for the log.
        entry: its address or its command.
        proxies: the proxies of the service.
        forwarded: headers of the current caller, sent in addition to those of the entry.
        diagnostics: is filled in while the connection lasts.
        on_end: is called when no more messages can arrive.
    """
    streams = _http_streams(entry, proxies, forwarded, diagnostics) if entry.url else _stdio_streams(server, entry)
    async with streams as (read, write):
        yield CheckedStream(read, server, diagnostics, on_end), write


class CheckedStream(ObjectReceiveStream[SessionMessage]):
    """The stream of messages from a server, without unreadable lines and without malformed tools.

    The SDK rejects a whole list of tools because of one malformed tool, and would wait on after a process has exited.
    """

    def __init__(self, stream: Any, server: str, diagnostics: Diagnostics, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._server = server
        self._diagnostics = diagnostics
        self._on_end = on_end
        self._has_message = False
        self._unreadable = 0
        self._warned: set[str] = set()

    @property
    def last_context(self) -> Any:
        """The context variables of the last message's sender, which the SDK restores."""
        return getattr(self._stream, "last_context", None)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def receive(self) -> SessionMessage:
        try:
            while not isinstance(received := await self._stream.receive(), SessionMessage):
                self._note_unreadable(received)
        except EndOfStream:
            self._on_end()
            raise
        self._has_message, self._diagnostics.unreadable_line = True, ""
        if isinstance(received.message, JSONRPCResponse):
            self._drop_malformed_tools(received.message.result)
        return received

    def _note_unreadable(self, error: Exception) -> None:
        line = str(error.errors(include_url=False)[0]["input"]) if isinstance(error, ValidationError) else ""
        if not (self._has_message or self._diagnostics.unreadable_line):
            self._diagnostics.unreadable_line = sanitize_text(line, MAX_SHOWN_CHARS)
        self._unreadable += 1
        self._diagnostics.is_too_long = len(line) > MAX_MESSAGE_BYTES
        if self._unreadable > MAX_UNREADABLE_LINES or self._diagnostics.is_too_long:
            raise EndOfStream

    def _drop_malformed_tools(self, result: dict[str, Any]) -> None:
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
        if name not in self._warned and len(self._warned) < MAX_WARNINGS:
            self._warned.add(name)
            _log.warning("the tool %s of the MCP server %s cannot be used: it is malformed", name, self._server)


@asynccontextmanager
async def _stdio_streams(server: str, entry: ServerEntry) -> AsyncGenerator[Any, None]:
    """Start a process; it inherits ``PATH`` and a few other safe variables, never those of the service."""
    if entry.cwd is not None and not os.path.isdir(entry.cwd):  # noqa: ASYNC240, PTH112 - the loop's error does not say
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), entry.cwd)
    parameters = StdioServerParameters(
        command=entry.command or "",
        args=list(entry.args),
        env=dict(entry.env),
        cwd=entry.cwd,
        encoding=_BOUNDED_LINES,
        encoding_error_handler="replace",
    )
    with _logged_stderr(server) as errlog:
        async with stdio_client(parameters, errlog) as streams:
            yield streams


@contextmanager
def _logged_stderr(server: str) -> Iterator[TextIO]:
    """A pipe for the standard error of a process.

    A thread reads it, because the SDK needs a real file. It is a daemon, because a grandchild that survives can hold
    the pipe open for ever.
    """
    read_end, write_end = os.pipe()
    Thread(target=_log_lines, args=(server, read_end), name=f"stderr of {server}", daemon=True).start()
    with os.fdopen(write_end, "w") as errlog:
        yield errlog


def _log_lines(server: str, read_end: int) -> None:
    with os.fdopen(read_end, "rb") as stderr:
        lines = iter(partial(stderr.readline, MAX_MESSAGE_BYTES), b"")
        # Lines beyond the limit are still read: a full pipe would block the process.
        for number, line in enumerate(lines):
            text = sanitize_text(line.decode("utf-8", "replace"), MAX_LOGGED_CHARS) if number < MAX_LOGGED_LINES else ""
            if text:
                _log.info("MCP server wrote to stderr", extra={"server": server, "text": text})


class _BoundedLineDecoder(codecs.IncrementalDecoder):
    """Decodes UTF-8 and breaks a line that is longer than any message may be.

    The SDK collects a line until it ends, in memory and by copying what it has for every piece. The encoding is the
    only part of its transport that sees the bytes, so a process that never ends its line is stopped here.
    """

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors)
        self._line_length = 0

    def decode(self, data: Any, final: bool = False) -> str:
        text = self._utf8.decode(data, final)
        tail = len(text) - (text.rfind("\n") + 1)
        self._line_length = tail if tail < len(text) else self._line_length + tail
        if self._line_length <= MAX_MESSAGE_BYTES:
            return text
        self._line_length = 0
        return f"{text}\n"


_BOUNDED_LINES = "utf_8_bounded_lines"
_CODEC = codecs.CodecInfo(
    codecs.utf_8_encode, codecs.utf_8_decode, incrementaldecoder=_BoundedLineDecoder, name=_BOUNDED_LINES
)
codecs.register(lambda name: _CODEC if name == _BOUNDED_LINES else None)


@asynccontextmanager
async def _http_streams(
    entry: ServerEntry, proxies: Proxies, forwarded: Mapping[str, str], diagnostics: Diagnostics
) -> AsyncGenerator[Any, None]:
    verify, found = tls_context(), proxies.find(URL(str(entry.url)))
    proxy = None
    if found:
        own_tls = verify if found.url.scheme == "https" else None
        credentials = found.request_headers or found.connect_headers
        proxy = httpx2.Proxy(str(found.url), headers=credentials, ssl_context=own_tls)
    hooks: dict[str, list[Callable[..., Any]]] = {
        "request": [_prepare_request],
        "response": [partial(_check_response, diagnostics)],
    }
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


async def _check_response(diagnostics: Diagnostics, response: httpx2.Response) -> None:
    """Bound the length of a response, and remember the last status that refused a request."""
    if response.has_redirect_location:
        # The SDK would quote the address in its error, which models and users read.
        fields = {"from": _origin(response.request.url), "to": _origin(response.headers.pop("location"))}
        _log.warning("an MCP server's redirect is not followed", extra=fields)
    if response.request.method == "POST":  # an older server answers the GET for its notifications with 405
        refused = response.status_code in _REFUSALS or response.status_code >= 500 or response.is_redirect
        diagnostics.status = response.status_code if refused else None
    is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    if not is_stream or response.headers.get("content-encoding", "identity") != "identity":
        # A compressed body was not requested and can expand a thousandfold: none of it is read.
        limit = MAX_MESSAGE_BYTES if "content-encoding" not in response.headers else 0
        response.stream = _BoundedStream(response.stream, limit)


def _origin(address: httpx2.URL | str) -> str:
    """Scheme, host and port: the rest of an address may hold a key."""
    try:
        return str(URL(str(address)).origin())
    except ValueError:
        return "another path"  # of the same server


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, limit: int) -> None:
        self._stream = stream
        self._left = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._left -= len(piece)
            if self._left < 0:
                # The SDK answers an error of this type to the one request, and the connection lives on.
                raise httpx2.StreamError(TOO_LONG)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
