"""Ports of 127.0.0.1 that nobody else gets, whatever runs beside the test."""

import socket
from collections.abc import Generator
from contextlib import contextmanager


def reserved() -> socket.socket:
    """Bind a socket that never listens.

    As long as it is open the system gives its port to nobody who asks for any, refuses connections, and lets a server
    have it that asks for exactly this one with SO_REUSEADDR, as Redis and nginx do.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return holder


@contextmanager
def silent_port() -> Generator[int, None, None]:
    """A port on which nobody listens."""
    with reserved() as holder:
        yield holder.getsockname()[1]
