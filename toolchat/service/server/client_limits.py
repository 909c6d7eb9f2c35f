"""Limits for clients: on open connections, derived from the limit on file descriptors, and for slow clients."""

import asyncio
import logging
import socket
import time
from collections.abc import Collection
from typing import Any, Protocol

from toolchat.errors import ConfigurationError
from toolchat.service.observability import metrics

_WANTED = 65_536
_LEAST = 128
_LEAST_RESERVE = 96
_LONGEST_BACKLOG = 2048
_LOGGED_EVERY = 60.0

_log = logging.getLogger(__name__)


def check_open_files() -> None:
    """Check that a few clients can be answered, refused and logged."""
    if (limit := _raise_file_limit()) < _LEAST:
        raise ConfigurationError(f"the system allows {limit} open files, at least {_LEAST} are needed: ulimit -n 1024")


class ConnectionLimit:
    """Decides which connections are refused: a chat request needs two descriptors, for the client and the upstream.

    Without this limit, descriptors would run out for upstreams and the state store, and clients would get no response.
    """

    def __init__(self) -> None:
        limit = _raise_file_limit()
        reserve = max(_LEAST_RESERVE, limit // 8)  # for the log, the store and connections being refused
        self.max_connections = max(1, (limit - reserve) // 2)
        self.backlog = min(_LONGEST_BACKLOG, reserve // 3)
        """Length of the accept queue; the loop accepts the whole queue before it can refuse a connection."""
        self.max_lingering = self.max_connections + reserve // 6
        """Above this number, a refused connection is closed at once instead of after the client has read why."""
        self._logged_at = -_LOGGED_EVERY

    def refuses(self, connections: int) -> bool:
        """Return whether a number of connections is too high; log that at most once a minute."""
        if connections <= self.max_connections:
            return False
        metrics.CLIENTS_REFUSED.inc()
        if time.monotonic() - self._logged_at >= _LOGGED_EVERY:
            self._logged_at = time.monotonic()
            _log.warning(
                "too many connections for the open files that the system allows", extra={"most": self.max_connections}
            )
        return True


def _raise_file_limit() -> int:
    """Raise the limit on open files as far as the system allows, since many shells set it to 1,024; return it."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return _WANTED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _WANTED
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted)


_BUFFER_BYTES = 16 * 1024
_LONGEST_INTERVAL = 1.0


class _Watched(Protocol):
    def end_if_slow(self, now: float) -> None:
        """Close the connection if a time limit has passed."""
        ...


class SlowClientWatch:
    """Checks the time limits of all connections of a server periodically, by one timer.

    A limit takes effect up to two intervals late: progress is seen at the next check, and so is the end of the limit.

    Args:
        read_timeout: seconds from connecting, or from the first byte of a request, to the end of its headers.
        write_timeout: seconds in which the client must read some of its pending data.
    """

    def __init__(self, read_timeout: float, write_timeout: float) -> None:
        self.read_timeout = read_timeout
        self.write_timeout = write_timeout
        self._interval = min(_LONGEST_INTERVAL, read_timeout / 4, write_timeout / 4)
        self._is_running = False

    def start(self, connections: Collection[_Watched] | Collection[Any]) -> None:
        """Check these connections until there are none."""
        if not self._is_running:
            self._is_running = True
            asyncio.get_running_loop().call_later(self._interval, self._check, connections)

    def _check(self, connections: Collection[_Watched]) -> None:
        now = asyncio.get_running_loop().time()
        for each in tuple(connections):
            each.end_if_slow(now)
        self._is_running = False
        if connections:
            self.start(connections)


def limit_send_buffer(transport: asyncio.Transport) -> None:
    """Limit the data that the kernel buffers for a client; its default is megabytes.

    A full buffer pauses the response, and so the model that generates it, soon after the client stops reading.
    """
    transport.set_write_buffer_limits(_BUFFER_BYTES)
    connection = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)  # Linux and macOS
    if option is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, option, _BUFFER_BYTES)
