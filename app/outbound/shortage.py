"""Files that the system lets nobody open: a shortage of our own, and no fault of an upstream."""

import errno
import logging
import os
import socket
import time

from app.errors import Overloaded

__all__ = ["shortage"]

_log = logging.getLogger(__name__)

_SPENT = (errno.EMFILE, errno.ENFILE)
_LOGGED_EVERY = 60.0
_logged_at = -_LOGGED_EVERY


def shortage(error: BaseException) -> Overloaded | None:
    """What to tell where a connection could not be opened for want of files; the log is told once a minute."""
    if not (getattr(error, "errno", None) in _SPENT or (isinstance(error, socket.gaierror) and not _can_open())):
        return None
    global _logged_at
    if time.monotonic() - _logged_at >= _LOGGED_EVERY:
        _logged_at = time.monotonic()
        _log.warning("an upstream could not be asked: the system allows no more open files")
    return Overloaded("the service has no open file left for a connection to an upstream", retry_after=1)


def _can_open() -> bool:
    """Whether another file may be opened; looking up a name fails without that, and does not say so."""
    try:
        os.close(os.dup(0))
    except OSError as error:
        return error.errno not in _SPENT
    return True
