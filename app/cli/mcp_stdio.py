"""The command ``mcp``: an MCP server over standard input and output, for hosts on the same machine."""

import asyncio
import gc
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import redirect_stdout, suppress
from typing import BinaryIO

from app.composition.configuration import read_configuration
from app.composition.lifespan import open_service
from app.observability.logs import configure_logging
from app.protocols.mcp_server.stdio_server import StdioServer

__all__ = ["serve_stdio"]

_LONGEST_LINE = 1024 * 1024
_LINES_AHEAD = 16


def serve_stdio() -> int:
    """Serve until standard input ends and every running request is answered.

    Raises:
        ConfigurationError: the configuration is invalid.
    """
    configuration = read_configuration()
    configure_logging(configuration.settings.log_level)
    messages = sys.stdout.buffer

    def write(message: bytes) -> None:
        messages.write(message + b"\n")
        messages.flush()

    async def serve() -> None:
        async with open_service(configuration) as (state, _):
            # Everything created so far lives until the end: collections need not look at it.
            gc.freeze()
            gc.enable()
            await StdioServer(state, write).serve(_read_lines(sys.stdin.buffer))

    # Standard output carries protocol messages only: what a tool prints must not reach the host.
    with redirect_stdout(sys.stderr):
        asyncio.run(serve())
    return 0


async def _read_lines(source: BinaryIO) -> AsyncGenerator[bytes, None]:
    """Yield every line of a stream, read by a thread: event loops cannot read files, and no console on Windows."""
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
