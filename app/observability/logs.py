"""Structured logs: one JSON object per line, without prompts, keys or the texts of exceptions."""

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

from app.observability.spans import current_span

__all__ = ["configure_logging", "hashed", "log_event", "lost_lines", "request_id", "write_text"]

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being answered; carried into tools and their threads."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
_TOGETHER = 0.02
"""Seconds in which further lines may join one that is to be written: a thread that woke for each would cost much."""
_BATCH = 500


def hashed(identifier: str) -> str:
    """What the logs call something that whoever knows its id can use: a session, a waiting approval."""
    return hashlib.sha256(identifier.encode()).hexdigest()[:12]


class JsonFormatter(logging.Formatter):
    """One JSON object per record; fields of ``extra`` beside the standard ones.

    An exception is logged as its types and the places that it passed: its text may hold what a user wrote or a
    key, and is left out.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Put a record into one line."""
        fields = {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info and record.exc_info[1]:
            fields["exception"] = _described(record.exc_info[1])
        return _line(record.created, record.levelname, record.name, record.getMessage(), fields).decode()


class DirectHandler(logging.Handler):
    """Has a thread of its own write lines to standard error; those of :func:`log_event` go past the logging package.

    Nobody waits for whoever reads them: a pager that is not scrolled, a collector that hangs or a full disk would stop
    the whole service. What finds no room is lost, and said so once lines flow again.
    """

    def __init__(self, stream: TextIO, most: int = 5_000, *, thread: bool = True) -> None:
        """Begin.

        Args:
            stream: where lines go; it is not closed.
            most: lines that may wait.
            thread: without one, a line is written at once where there is room for it.
        """
        super().__init__()
        self._descriptor = stream.fileno()
        self._most = most
        self._waiting: SimpleQueue[bytes | threading.Event] = SimpleQueue()
        self._refused = self._failed = self._told = 0
        self._at_once = not thread
        if thread:
            threading.Thread(target=self._write_for_ever, name="toolchat-log", daemon=True).start()

    @property
    def lost(self) -> int:
        """Lines that were not written: for want of room, or because writing failed."""
        return self._refused + self._failed

    def emit(self, record: logging.LogRecord) -> None:
        """See the logging package."""
        try:
            self.write_line(self.format(record).encode("utf-8", "backslashreplace"))
        except Exception:  # noqa: BLE001 - as every handler does
            self.handleError(record)

    def write_line(self, line: bytes) -> None:
        """Have a line written."""
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
        """Wait until all lines so far are written, for a second at most."""
        if self._at_once:
            return
        written = threading.Event()
        self._waiting.put(written)
        written.wait(1)

    def _write_for_ever(self) -> None:
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
        except BlockingIOError:  # whoever started the process may have set its end of the pipe so
            time.sleep(_TOGETHER)


def lost_lines() -> int:
    """Lines of the log that could not be written since the start."""
    return sum(each.lost for each in logging.root.handlers if isinstance(each, DirectHandler))


def write_text(text: str) -> None:
    """Write to standard error what people read, in its place among the lines of the log."""
    for each in logging.root.handlers:
        if isinstance(each, DirectHandler):
            each.write_line(text.encode("utf-8", "backslashreplace"))


def log_event(logger: logging.Logger, level: int, message: str, fields: Mapping[str, Any]) -> None:
    """Log what happens with every request.

    The line is the same as ``logger.log`` would write, at a fifth of the cost: a record with its caller's place, the
    thread's and the process's name is made for nothing here. With other handlers than ours the record is made.
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
    if (span := current_span.get()) is not None:
        line["trace_id"], line["span_id"] = span.trace.hex, span.id.hex()
    line.update(fields)
    return to_json(line, fallback=str, inf_nan_mode="strings")


@lru_cache(maxsize=1)
def _shown_second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def configure_logging(level: str, overrides: Mapping[str, str] | None = None, *, thread: bool = True) -> None:
    """Send every logger's records to standard error as JSON lines.

    The libraries beneath are held to warnings, since some log URLs or bodies below that. A process that will fork has
    no thread for it: locks that a thread holds stay locked in the fork.
    """
    handler = DirectHandler(sys.stderr, thread=thread)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level="WARNING", handlers=[handler], force=True)
    for package in ("app", "toolchat"):
        logging.getLogger(package).setLevel(level)
    for name, its_level in (overrides or {}).items():
        logging.getLogger(name).setLevel(its_level)


def _described(error: BaseException) -> list[str]:
    described: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(described) < 5:
        frames = traceback.extract_tb(seen.__traceback__)[-8:]
        places = " > ".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}" for frame in frames)
        described.append(f"{type(seen).__name__} at {places}")
        seen = seen.__cause__
    return described
