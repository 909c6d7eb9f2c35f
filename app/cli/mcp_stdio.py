"""The command ``mcp``: MCP over standard input and output, for hosts on this machine."""

import asyncio
import gc
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import BinaryIO

from app.composition.configuration import read_configuration
from app.composition.lifespan import open_service
from app.observability.logs import configure_logging
from app.protocols.mcp_server.stdio_server import StdioServer

__all__ = ["serve_stdio"]

_LONGEST_LINE = 1024 * 1024
_LINES_AHEAD = 16


def serve_stdio() -> int:
    """Answer the lines of standard input until it ends, and what runs then; the exit code.

    Raises:
        ConfigurationError: the service cannot start as it is set up.
    """
    configuration = read_configuration()
    configure_logging(configuration.settings.log_level)
    messages, sys.stdout = sys.stdout.buffer, sys.stderr  # a tool that prints must not speak to the host

    def write(message: bytes) -> None:
        messages.write(message + b"\n")
        messages.flush()

    async def serve() -> None:
        async with open_service(configuration) as (state, _):
            # What has been made so far stays until the end; there is nothing in it to look for.
            gc.freeze()
            gc.enable()
            await StdioServer(state, write).serve(_lines(sys.stdin.buffer))

    asyncio.run(serve())
    return 0


async def _lines(source: BinaryIO) -> AsyncGenerator[bytes, None]:
    """Every line, read by a thread: only so can a file, a terminal and a pipe be read alike on every system."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue(_LINES_AHEAD)

    def read() -> None:
        with suppress(RuntimeError):  # the loop has been closed
            while True:
                line = source.readline(_LONGEST_LINE)
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
                if not line:
                    return

    threading.Thread(target=read, daemon=True).start()
    while line := await lines.get():
        yield line
