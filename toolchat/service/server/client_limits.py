"""Limits on clients: how many connections are open, derived from the limit on file descriptors, and for how long."""

import asyncio
import logging
import socket
import time
from dataclasses import dataclass, field

from toolchat.service.observability import metrics

_WANTED_FILES = 65_536
_LEAST_RESERVE = 96
_LOGGED_EVERY = 60.0
_UNSENT_BYTES = 16 * 1024

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ClientLimits:
    """The limits of all connections of a server.

    A chat request needs two descriptors, for the client and the upstream. Without a limit they would run out for
    upstreams and the state store, and clients would get no response.
    """

    timeout: float
    """Seconds to receive the headers, and that a client may read nothing of its response."""
    is_draining: bool = False
    """Whether each response is the last one of its connection, because the server stops."""
    max_connections: int = field(init=False)
    max_lingering: int = field(init=False)
    """Above this number, a refused connection is closed at once instead of after the client has read why."""
    backlog: int = field(init=False)
    """Length of the accept queue; the loop accepts the whole queue before it can refuse a connection."""
    logged_at: float = -_LOGGED_EVERY

    def __post_init__(self) -> None:
        files = _raise_file_limit()
        reserve = max(_LEAST_RESERVE, files // 8)  # for the log, the store and connections being refused
        self.max_connections = max(1, (files - reserve) // 2)
        self.max_lingering = self.max_connections + reserve // 6
        self.backlog = min(2048, reserve // 3)

    def refuses(self, connections: int) -> bool:
        """Return whether a number of connections is too high; log that at most once a minute."""
        if connections <= self.max_connections:
            return False
        metrics.CLIENTS_REFUSED.inc()
        if time.monotonic() - self.logged_at >= _LOGGED_EVERY:
            self.logged_at = time.monotonic()
            _log.warning("too many connections for the open files", extra={"most": self.max_connections})
        return True

    def limit_reading(self, transport: asyncio.Transport) -> None:
        """Let the kernel disconnect a client that reads nothing, and buffer little for it (Linux).

        A full buffer pauses the response, and so the model that generates it; the kernel's default is megabytes.
        """
        connection = transport.get_extra_info("socket")
        for name, value in ("TCP_USER_TIMEOUT", round(self.timeout * 1000)), ("TCP_NOTSENT_LOWAT", _UNSENT_BYTES):
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _raise_file_limit() -> int:
    """Raise the limit on open files as far as the system allows, since many shells set it to 1,024; return it."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return _WANTED_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, _WANTED_FILES)
    if resource.RLIM_INFINITY != soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
