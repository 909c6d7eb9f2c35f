"""Structured logs: one JSON object per line, without prompts, keys or exception messages."""

import hashlib
import logging
import os
import select
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from queue import Empty, SimpleQueue
from typing import Any, TextIO

from pydantic_core import to_json

from toolchat.service.observability.tracing import current_ids

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the current request; propagated to tools and their threads."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
_TOGETHER = 0.02
"""Seconds to wait for further lines before a write: waking the thread for every line would cost too much."""
_BATCH = 500


def hashed(identifier: str) -> str:
    """Hash an id for the logs: the plain id of a session or approval would grant access to it."""
    return hashlib.sha256(identifier.encode()).hexdigest()[:12]


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object, with the fields of ``extra``.

    Exceptions are logged as types and code locations, without their message, which may contain user text or a key.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line."""
        fields = {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info and record.exc_info[1]:
            fields["exception"] = _describe_exception(record.exc_info[1])
        return _line(record.created, record.levelname, record.name, record.getMessage(), fields).decode()


class DirectHandler(logging.Handler):
    """Writes lines to standard error in a thread; :func:`log_event` bypasses the logging package.

    Writing directly would block the event loop, and so the whole service, on a paused pager, a hanging collector or a
    full disk. Lines that do not fit into the queue are lost; their number is logged later.
    """

    def __init__(self, stream: TextIO, most: int = 5_000, *, thread: bool = True) -> None:
        """Start the thread; without one, a line is written at once, or lost if that would block."""
        super().__init__()
        self._descriptor, self.is_terminal = stream.fileno(), stream.isatty()
        self._most = most
        self._waiting: SimpleQueue[bytes | threading.Event] = SimpleQueue()
        self._refused = self._failed = self._told = 0
        self._at_once = not thread
        if thread:
            threading.Thread(target=self._run, name="toolchat-log", daemon=True).start()

    @property
    def lost(self) -> int:
        """Number of lines lost because the queue was full or writing failed."""
        return self._refused + self._failed

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; see :meth:`logging.Handler.emit`."""
        try:
            self.write_line(self.format(record).encode("utf-8", "backslashreplace"))
        except Exception:  # noqa: BLE001 - as every handler does
            self.handleError(record)

    def write_line(self, line: bytes) -> None:
        """Queue a line."""
        if self._at_once:
            self._write_now(line)
        elif self._waiting.qsize() < self._most:
            self._waiting.put(line + b"\n")
        else:
            self._refused += 1

    def _write_now(self, line: bytes) -> None:
        if select.select([], [self._descriptor], [], 0)[1]:
            self._write([line + b"\n"])
        else:
            self._refused += 1

    def flush(self) -> None:
        """Wait until all queued lines are written, for at most a second."""
        if self._at_once:
            return
        written = threading.Event()
        self._waiting.put(written)
        written.wait(1)

    def _run(self) -> None:
        while True:
            batch = [self._waiting.get()]
            time.sleep(_TOGETHER)
            with suppress(Empty):
                while len(batch) < _BATCH:
                    batch.append(self._waiting.get_nowait())
            self._write([each for each in batch if isinstance(each, bytes)])
            for each in batch:
                if isinstance(each, threading.Event):
                    each.set()

    def _write(self, lines: Sequence[bytes]) -> None:
        try:
            _write_whole(self._descriptor, b"".join(lines))
            if more := self.lost - self._told:
                line = _line(time.time(), "WARNING", __name__, "log lines were lost", {"lost": more})
                _write_whole(self._descriptor, line + b"\n")
                self._told += more
        except OSError:
            self._failed += len(lines)


def _write_whole(descriptor: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:  # the pipe may be in non-blocking mode, which its other end shares
            time.sleep(_TOGETHER)


def lost_lines() -> int:
    """Number of log lines lost since the start."""
    return sum(each.lost for each in logging.root.handlers if isinstance(each, DirectHandler))


def write_text(text: str) -> None:
    """Write text in order with the lines of the log: plain for a terminal, else as one JSON object per line."""
    for each in logging.root.handlers:
        if isinstance(each, DirectHandler):
            for line in text.splitlines():
                plain = line.encode("utf-8", "backslashreplace")
                each.write_line(plain if each.is_terminal else _line(time.time(), "INFO", __name__, line.strip(), {}))


def log_event(logger: logging.Logger, level: int, message: str, fields: Mapping[str, Any]) -> None:
    """Log an event of every request, cheaply.

    Writes the same line as ``logger.log`` at a fifth of the cost, because no record with caller, thread and process is
    created. With another handler it falls back to ``logger.log``.
    """
    if not logger.isEnabledFor(level):
        return
    handlers = logging.root.handlers
    if len(handlers) == 1 and isinstance(handlers[0], DirectHandler) and logger.propagate:
        line = _line(time.time(), logging.getLevelName(level), logger.name, message, fields)
        handlers[0].write_line(line)
    else:
        logger.log(level, "%s", message, extra=dict(fields))


def _line(created: float, level: str, logger: str, message: str, fields: Mapping[str, Any]) -> bytes:
    second, fraction = divmod(created, 1)
    line: dict[str, Any] = {
        "time": f"{_shown_second(int(second))}.{int(fraction * 1000):03d}Z",
        "level": level,
        "logger": logger,
        "message": message,
    }
    if current := request_id.get():
        line["request_id"] = current
    line |= current_ids()
    line.update(fields)
    return to_json(line, fallback=str, inf_nan_mode="strings")


@lru_cache(maxsize=1)
def _shown_second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def configure_logging(level: str, overrides: Mapping[str, str] | None = None, *, thread: bool = True) -> None:
    """Send the records of all loggers to standard error as JSON lines.

    Libraries are limited to WARNING, because some log URLs or bodies at lower levels. A process that forks later must
    not use a thread: a lock that the thread holds would stay locked in the child.
    """
    handler = DirectHandler(sys.stderr, thread=thread)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level="WARNING", handlers=[handler], force=True)
    for package in ("app", "toolchat"):
        logging.getLogger(package).setLevel(level)
    for name, its_level in (overrides or {}).items():
        logging.getLogger(name).setLevel(its_level)
    logging.captureWarnings(capture=True)  # Python writes them to standard error as text


def _describe_exception(error: BaseException) -> list[str]:
    chain: list[str] = []
    current: BaseException | None = error
    while current is not None and len(chain) < 5:
        frames = traceback.extract_tb(current.__traceback__)[-8:]
        places = " > ".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}" for frame in frames)
        chain.append(f"{type(current).__name__} at {places}")
        current = current.__cause__
    return chain
