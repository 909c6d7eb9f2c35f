"""A key file that is read again when it changes."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from app.access.keys import KeyBook, read_key_file
from app.errors import ConfigurationError

__all__ = ["KeyFile"]

_log = logging.getLogger(__name__)
_LOOK_EVERY = 1.0
"""Seconds between two looks at the file; a look costs microseconds, and works on every file system."""


class KeyFile:
    """Keeps the keys of a file up to date, without missing a request.

    Args:
        path: the file.
        take: is given the keys whenever they were read; not called for a file that cannot be read, so that the keys
            from before go on being valid.
    """

    def __init__(self, path: Path, take: Callable[[KeyBook], None]) -> None:
        self._path = path
        self._take = take
        self._seen = self._state()
        self._look = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def read_again(self) -> None:
        """Read the file soon, whether or not it seems to have changed."""
        self._seen = None
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._look.set)

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None, None]:
        """Look at the file again and again as long as the block runs."""
        self._loop = asyncio.get_running_loop()
        await self._read_if_changed()  # as it may have since; a worker that replaces another knows the first keys
        watch = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watch.cancel()
            await asyncio.wait([watch])

    async def _watch(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY):
                    await self._look.wait()
            self._look.clear()
            await self._read_if_changed()

    async def _read_if_changed(self) -> None:
        state = self._state()
        if state != self._seen:
            self._seen = state
            await self._read()

    async def _read(self) -> None:
        try:
            # In a thread: thousands of entries take a while.
            keys = await asyncio.to_thread(read_key_file, self._path)
        except ConfigurationError as error:
            _log.error("the key file cannot be used; the keys from before stay", extra={"reason": str(error)[:500]})
            return
        self._take(keys)
        _log.info("the key file was read again", extra={"keys": len(keys)})

    def _state(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
