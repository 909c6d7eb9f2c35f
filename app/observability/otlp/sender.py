"""The thread that sends spans, so that nobody waits for the collector."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from app.observability import metrics

__all__ = ["Sender"]

_log = logging.getLogger(__name__)
_WARNING_EVERY = 60.0


class Sender:
    """Sends what has come every few seconds, or when much has; what finds no room is lost, and the log says so.

    Args:
        send: sends spans, and says why they did not arrive, if so; it may take as long as it likes.
        delay: seconds.
        batch: spans that are sent together, about.
        most: spans that may wait.
    """

    def __init__(self, send: Callable[[Sequence[bytes]], str], *, delay: float, batch: int, most: int) -> None:
        self._send, self._delay, self._batch, self._most = send, delay, batch, most
        self._waiting: deque[tuple[bytes, int]] = deque()
        self._count = self._lost = 0
        self._lock = threading.Lock()
        self._awake = threading.Event()
        self._reason = ""
        self._is_closing = self._is_given_up = False
        self._warned_at = -_WARNING_EVERY
        self._thread = threading.Thread(target=self._run, name="toolchat-traces", daemon=True)
        self._thread.start()

    def put(self, written: bytes, count: int) -> None:
        """Have so many spans sent."""
        with self._lock:
            if self._count + count > self._most:
                self._lose(count, self._reason or "too many waited")
                return
            self._waiting.append((written, count))
            self._count += count
        if self._count >= self._batch:
            self._awake.set()

    def close(self) -> None:
        """Send what is left, and take it that nothing more will come; does not wait for that."""
        self._is_closing = True
        self._awake.set()

    def give_up(self) -> int:
        """Send no more, and say no more; how many spans have not arrived that nobody has been told of."""
        with self._lock:
            left = self._count + self._lost
            self._lose(self._count, "")
            self._waiting.clear()
            self._is_given_up = True
        return left

    @property
    def is_done(self) -> bool:
        """Whether all has been sent, after it was closed."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._is_closing:
            self._awake.wait(self._delay)
            self._awake.clear()
            self._send_all()
        self._send_all()

    def _send_all(self) -> None:
        while self._waiting:
            together: list[bytes] = []
            count = 0
            with self._lock:
                while self._waiting and count < self._batch:
                    written, more = self._waiting.popleft()
                    together.append(written)
                    count += more
            reason = self._send(together)
            with self._lock:
                self._count -= count
                if reason:
                    self._lose(count, reason)
            self._tell()  # here, since where every try takes its time something always waits
        self._tell()

    def _lose(self, count: int, reason: str) -> None:
        """Count lost spans, with the lock held; those that were given up have been counted."""
        if not self._is_given_up:
            self._lost += count
            self._reason = reason
            metrics.SPANS_LOST.inc(count)

    def _tell(self) -> None:
        if self._is_given_up:
            return
        if self._lost and time.monotonic() - self._warned_at >= _WARNING_EVERY:
            self._warned_at = time.monotonic()
            _log.warning("traces could not be sent", extra={"spans_lost": self._lost, "reason": self._reason})
            self._lost, self._reason = 0, ""
