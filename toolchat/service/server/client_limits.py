"""Limits on clients: how many connections are open, derived from the limit on file descriptors, and for how long."""

import asyncio
import logging
import socket
import time

from toolchat.service.observability import metrics
from toolchat.service.process import raise_file_limit

_LOGGED_EVERY = 60.0

_log = logging.getLogger(__name__)


class ClientLimits:
    """The limits of all connections of a server.

    A chat request needs two descriptors, for the client and the upstream. Without a limit they would run out for
    upstreams and the state store, and clients would get no response.
    """

    is_draining = False
    """Whether each response is the last one of its connection, because the server stops."""

    def __init__(self, timeout: float) -> None:
        """``timeout``: seconds to receive the headers, and that a client may read nothing of its response."""
        self.timeout = timeout
        files = raise_file_limit()
        reserve = max(96, files // 8)  # for the log, the store and connections being refused
        self.max_connections = max(1, (files - reserve) // 2)
        self.max_lingering = self.max_connections + reserve // 6
        """Above this number, a refused connection is closed at once instead of after the client has read why."""
        self.backlog = min(2048, reserve // 3)
        """Length of the accept queue; the loop accepts the whole queue before it can refuse a connection."""
        self._logged_at = -_LOGGED_EVERY

    def refuses(self, connections: int) -> bool:
        """Return whether a number of connections is too high; log that at most once a minute."""
        if connections <= self.max_connections:
            return False
        metrics.CLIENTS_REFUSED.inc()
        if time.monotonic() - self._logged_at >= _LOGGED_EVERY:
            self._logged_at = time.monotonic()
            _log.warning("too many connections for the open files", extra={"most": self.max_connections})
        return True

    def limit_reading(self, transport: asyncio.Transport) -> None:
        """Let the kernel disconnect a client that reads nothing, and buffer little for it (Linux).

        A full buffer pauses the response, and so the model that generates it; the kernel's default is megabytes.
        """
        connection = transport.get_extra_info("socket")
        for name, value in ("TCP_USER_TIMEOUT", round(self.timeout * 1000)), ("TCP_NOTSENT_LOWAT", 16 * 1024):
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
