"""A server that runs as a process of ours: its lines are bounded, its words logged, and its end is seen to.

Like the SDK's own transport, but for three things that a foreign process needs: a line without end does not fill the
memory, what it writes to standard error goes to our log, and whoever holds the connection is told when it dies.
"""

import asyncio
import errno
import logging
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from subprocess import PIPE
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from app.mcp_client.file import ServerEntry
from app.mcp_client.foreign_tools import shown_text

__all__ = ["MAX_MESSAGE_BYTES", "stdio_transport"]

_log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
_MOST_UNREADABLE = 1000
"""Lines that are no messages, such as greetings, before a process is given up."""
_MOST_LOGGED, _LONGEST_LOGGED = 200, 500
"""Lines of one process that are logged, and characters of each."""
_LONGEST_SHOWN = 100
"""Characters of a line that is no message, where it is told why a server cannot be used."""
_GRACE = 1.0
"""Seconds that a process has to end by itself, then once more after it was asked to."""
_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)


@asynccontextmanager
async def stdio_transport(
    name: str, entry: ServerEntry, ended: Callable[[], None], unread: list[str]
) -> AsyncGenerator[Any, None]:
    """Start the process and give the two streams that the SDK speaks by; end it, with all its children, at the exit.

    It is given the variables of the file and those that are safe to inherit, such as ``PATH``: never the service's.

    Args:
        name: the server's name, for the log.
        entry: what is started.
        ended: is called when the process has ended.
        unread: is given the first line of a process that writes no messages, as long as it has written none.

    Raises:
        OSError: it cannot be started.
    """
    if entry.cwd is not None and not os.path.isdir(entry.cwd):  # noqa: ASYNC240, PTH112 - the loop's error does not say
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), entry.cwd)
    command = [entry.command or "", *entry.args]
    variables = {**get_default_environment(), **entry.env}
    process = await anyio.open_process(command, env=variables, cwd=entry.cwd, stderr=PIPE, start_new_session=True)
    to_us, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, from_us = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks, read, write:
        tasks.start_soon(_receive, process, to_us, ended, unread)
        tasks.start_soon(_send, process, from_us)
        tasks.start_soon(_log_words, process, name)
        try:
            yield read, write
        finally:
            with anyio.CancelScope(shield=True):
                await _whatever_comes(_end(process))
            tasks.cancel_scope.cancel()


async def _receive(
    process: Process,
    messages: MemoryObjectSendStream[SessionMessage | Exception],
    ended: Callable[[], None],
    unread: list[str],
) -> None:
    unreadable, has_spoken = 0, False
    try:
        async with messages:
            async for line in _lines(process.stdout):
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    unreadable += 1
                    if not (has_spoken or unread):
                        unread.append(shown_text(line.decode("utf-8", "replace"), _LONGEST_SHOWN))
                    if unreadable > _MOST_UNREADABLE:
                        break
                    continue
                has_spoken = True
                unread.clear()
                await messages.send(SessionMessage(message))
    except _GONE:
        pass
    finally:
        ended()


async def _lines(stream: ByteReceiveStream | None) -> AsyncIterator[bytes]:
    """The lines of a stream, until one is longer than a message may be."""
    begun: list[bytes] = []
    size = 0
    while stream is not None and size <= MAX_MESSAGE_BYTES:
        try:
            *whole, rest = (await stream.receive()).split(b"\n")
        except anyio.EndOfStream:
            return
        for line in whole:
            yield b"".join((*begun, line))
            begun, size = [], 0
        begun.append(rest)
        size += len(rest)


async def _send(process: Process, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with messages:
        with suppress(*_GONE):
            async for each in messages:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                if process.stdin is not None:
                    await process.stdin.send(f"{text}\n".encode("utf-8", "replace"))


async def _log_words(process: Process, name: str) -> None:
    left = _MOST_LOGGED
    with suppress(*_GONE):
        async for line in _lines(process.stderr):
            left -= 1
            if left >= 0 and (text := shown_text(line.decode("utf-8", "replace"), _LONGEST_LOGGED)):
                _log.info("an MCP server says", extra={"server": name, "text": text})
        while process.stderr is not None:  # a line that was too long: what comes after it goes nowhere
            await process.stderr.receive()


async def _end(process: Process) -> None:
    if process.stdin is not None:
        with suppress(*_GONE):
            await process.stdin.aclose()
    if not await _has_ended(process):
        _signal(process, signal.SIGTERM)
        await _has_ended(process)
    _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))  # children, too, that have outlived it
    await _has_ended(process)
    with anyio.move_on_after(_GRACE):
        await process.aclose()


async def _whatever_comes(ending: Coroutine[Any, Any, None]) -> None:
    """See to the end even if the task is cancelled meanwhile, against which anyio's shield does not help."""
    task, cancelled = asyncio.ensure_future(ending), None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    task.result()


async def _has_ended(process: Process) -> bool:
    """Whether it ends in time; ``process.wait`` would also wait for every child that has its pipes."""
    with anyio.move_on_after(_GRACE):
        while process.returncode is None:  # noqa: ASYNC110 - nobody tells
            await anyio.sleep(0.01)
    return process.returncode is not None


def _signal(process: Process, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        elif process.returncode is None:
            process.send_signal(number)  # type: ignore[arg-type] # Windows knows no groups
