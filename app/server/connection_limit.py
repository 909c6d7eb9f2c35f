"""How many connections there may be: each is an open file, and the system lets a process have so many."""

import logging
import time

from app.observability import catalogue as series
from app.observability.notes import tell

__all__ = ["ConnectionLimit", "allow_open_files"]

_WANTED = 65_536
_LEAST_RESERVE = 96
_LONGEST_BACKLOG = 2048
_LOGGED_EVERY = 60.0

_log = logging.getLogger(__name__)


class ConnectionLimit:
    """Says which connection is one too many: a question takes two files, its client's and its upstream's.

    Without it the system would refuse upstreams, the store and whatever else is opened, and tell clients nothing.
    """

    def __init__(self) -> None:
        limit = _limit()
        reserve = max(_LEAST_RESERVE, limit // 8)  # for all else: the log, the store, and those that are refused
        self.most = max(1, (limit - reserve) // 2)
        self.backlog = min(_LONGEST_BACKLOG, reserve // 3)
        """Connections that may wait to be accepted; the loop takes them all before it can refuse any."""
        self.at_once = self.most + reserve // 6
        """Beyond so many, those that are refused are not waited for."""
        self._logged_at = -_LOGGED_EVERY

    def refuses(self, connections: int) -> bool:
        """Whether so many are too many; the log is told once a minute."""
        if connections <= self.most:
            return False
        tell(series.CLIENTS_REFUSED.add)
        if time.monotonic() - self._logged_at >= _LOGGED_EVERY:
            self._logged_at = time.monotonic()
            _log.warning("too many connections for the open files that the system allows", extra={"most": self.most})
        return True


def allow_open_files() -> None:
    """Allow as many open files as the system lets us: a question takes two, and shells often allow only 1,024."""
    try:
        import resource
    except ImportError:  # there is no such limit on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _limit() -> int:
    try:
        import resource
    except ImportError:
        return _WANTED
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _WANTED if soft == resource.RLIM_INFINITY else soft
