"""Limit on open connections, derived from the limit on file descriptors of the process."""

import logging
import time

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
