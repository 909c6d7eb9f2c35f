"""What the servers of fault injection have in common."""

import asyncio
from types import TracebackType
from typing import Self

__all__ = ["Server"]


class Server:
    """Serves TCP on a free port of 127.0.0.1, unless told otherwise; a context manager that ends all connections."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._address = host, port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """Where it listens."""
        if self._server is None:
            raise RuntimeError("it does not listen")
        return int(self._server.sockets[0].getsockname()[1])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, which is over when this is.

        Raises:
            OSError, asyncio.IncompleteReadError, ExceptionGroup: it ended in another way; nobody minds.
        """
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, *self._address, backlog=4096)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            await self.serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError, ExceptionGroup):
            pass
        finally:
            writer.transport.abort()
