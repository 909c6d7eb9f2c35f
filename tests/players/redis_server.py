"""A real Redis server on a free port of 127.0.0.1, which can be frozen, killed and started again.

async with RedisServer() as server:
    ...  # point REDIS_URL at server.url
    server.freeze()
"""

import asyncio
import signal
from types import TracebackType
from typing import Self

from redis.asyncio import Redis

from tests.ports import reserved
from tests.programs import REDIS, require
from tests.waiting import until


class RedisServer:
    """Keeps nothing on disk, and has the same port every time it is started.

    A test is skipped where no such server is installed.

    Args:
        password: what clients have to give.
        options: further options of the program, such as ``["--maxmemory", "2mb"]``.
    """

    def __init__(self, password: str = "", *, options: list[str] | None = None) -> None:
        self._program = require(*REDIS)
        self._reserved = reserved()  # also while the server is down
        self.port: int = self._reserved.getsockname()[1]
        self.url = f"redis://:{password}@127.0.0.1:{self.port}/0" if password else f"redis://127.0.0.1:{self.port}/0"
        self._options = [*(["--requirepass", password] if password else []), *(options or [])]
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.kill()
        self._reserved.close()

    async def start(self) -> None:
        """Start the server and wait until it answers."""
        command = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", *self._options]
        self._process = await asyncio.create_subprocess_exec(
            self._program, *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        await until(self._listens)

    def freeze(self) -> None:
        """Stop the process where it is: connections stay open, and nothing is answered."""
        self._running.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process go on."""
        self._running.send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        """End the process at once, if it runs, with all that it knows."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        self._process = None

    async def run(self, *words: str) -> object:
        """Run one command as an administrator would; its answer, with bytes for strings."""
        return await self.run_as("", *words)

    async def run_as(self, password: str, *words: str) -> object:
        """Likewise, where the password is not the one in the URL."""
        async with Redis.from_url(self.url, password=password or None) as client:
            answer: object = await client.execute_command(*words)  # type: ignore[no-untyped-call]
            return answer

    async def connections(self) -> int:
        """How many clients there are, without the one that asks."""
        clients = await self.run("CLIENT", "LIST")
        assert isinstance(clients, bytes)
        return len(clients.splitlines()) - 1

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "the server does not run"
        return self._process

    async def _listens(self) -> bool:
        assert self._running.returncode is None, "redis-server ended at once"
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        await writer.wait_closed()
        return True
