"""Reports to systemd when the service is ready and when it stops, for a unit with ``Type=notify``."""

import logging
import os
import socket
from collections.abc import Callable

_log = logging.getLogger(__name__)


def systemd_notifier() -> Callable[[str], None]:
    """Return a function that sends a state such as ``READY=1``; it does nothing without systemd.

    The variable is removed: gunicorn would otherwise report that it is ready before a worker serves.
    """
    address = os.environ.pop("NOTIFY_SOCKET", "")

    def notify(state: str) -> None:
        if not address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
        except OSError as error:
            _log.warning("systemd could not be notified", extra={"state": state, "reason": str(error)})

    return notify
