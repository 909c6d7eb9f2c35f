"""What the names of upstreams stand for."""

import asyncio
import socket
from typing import Any

__all__ = ["Addresses"]

_KEPT_SECONDS = 300
_MAX_NAMES = 256

_Found = list[tuple[Any, ...]]


class Addresses:
    """Looks names up, once for all who ask at the same time, and remembers what it found."""

    def __init__(self) -> None:
        self._lookups: dict[tuple[str, int], tuple[float, asyncio.Future[_Found]]] = {}

    async def of(self, host: str, port: int) -> _Found:
        """The addresses of a host, as ``getaddrinfo`` gives them.

        Raises:
            OSError: the name is unknown, or cannot be looked up.
        """
        loop, key = asyncio.get_running_loop(), (host, port)
        expires, lookup = self._lookups.get(key, (0.0, None))
        if lookup is None or loop.time() >= expires:
            if len(self._lookups) >= _MAX_NAMES:
                self._lookups.clear()
            lookup = asyncio.ensure_future(loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            self._lookups[key] = loop.time() + _KEPT_SECONDS, lookup
        return await asyncio.shield(lookup)

    def forget(self, host: str, port: int) -> None:
        """Look a name up anew the next time: what it stood for does not answer."""
        self._lookups.pop((host, port), None)
