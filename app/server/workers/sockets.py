"""The sockets of several workers, made before there are any."""

import socket
from typing import Any

__all__ = ["beside", "exchange", "shared"]

_BACKLOG = 2048
"""Connections that may wait while a worker starts; one that has started says itself how many."""


def shared(listener: socket.socket) -> socket.socket:
    """Allow others of this service to listen beside a socket.

    Only now, not when it was bound: a port on which another service listens is refused as ever.
    """
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return listener


def beside(address: Any, family: socket.AddressFamily) -> socket.socket:
    """Listen on the address of sockets that are shared; the system spreads connections over all.

    Raises:
        OSError: none of them is open any more, and somebody else has taken the address.
    """
    return socket.create_server(address, family=family, backlog=_BACKLOG, reuse_port=True)


def exchange() -> socket.socket:
    """Listen where other workers ask one for its figures.

    It has a name that the system makes up and no file, which a read-only file system could not have.
    """
    made = socket.socket(socket.AF_UNIX)
    made.bind("")
    made.listen()
    return made
