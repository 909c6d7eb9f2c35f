"""Sockets of worker processes, opened by the parent before it forks."""

import socket
from typing import Any

__all__ = ["allow_sharing", "open_metrics_socket", "open_shared_listener"]

_BACKLOG = 2048
"""Pending connections while a worker starts; the worker itself then sets its own limit."""


def allow_sharing(listener: socket.socket) -> socket.socket:
    """Allow further sockets of this process on the same address.

    This is set after the socket was bound, so that a port taken by another service is still refused.
    """
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return listener


def open_shared_listener(address: Any, family: socket.AddressFamily) -> socket.socket:
    """Open a further listener on a shared address; the kernel distributes connections among all of them.

    Raises:
        OSError: all others were closed, and another process has taken the address.
    """
    return socket.create_server(address, family=family, backlog=_BACKLOG, reuse_port=True)


def open_metrics_socket() -> socket.socket:
    """Open the Unix socket on which other workers request this worker's metrics.

    Its address is an abstract one that the kernel chooses, because a file is impossible on a read-only file system.
    """
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("")
    listener.listen()
    return listener
