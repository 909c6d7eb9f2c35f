"""Structured logs: one JSON object per line, without prompts, keys or exception messages."""

import hashlib
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue
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
    return hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:12]


class JsonFormatter(logging.Formatter):
    """Formats a record as JSON, an exception without its message, which may contain user text or a key."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": f"{_shown_second(int(record.created))}.{int(record.created % 1 * 1000):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if current := request_id.get():
            line["request_id"] = current
        line |= current_ids()
        line |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info and record.exc_info[1]:
            line["exception"] = _describe_exception(record.exc_info[1])
        return to_json(line, fallback=str, inf_nan_mode="strings").decode()


class LogHandler(QueueHandler):
    """Formats a line in the context of its request; a thread writes it, for a paused pager or full disk may block."""

    queue: SimpleQueue[Any]

    def __init__(self, stream: TextIO, most: int = 5_000) -> None:
        super().__init__(SimpleQueue())
        self.setFormatter(JsonFormatter())
        self._most, self.is_terminal = most, stream.isatty()
        self.writer = _Writer(self.queue, stream.fileno())
        self.writer.start()

    def prepare(self, record: logging.LogRecord) -> str:
        return self.format(record)

    def enqueue(self, line: Any) -> None:
        if self.queue.qsize() < self._most:
            self.queue.put(line)
        else:
            self.writer.lost += 1

    def flush(self) -> None:
        """Wait until all queued lines are written, for at most a second."""
        written = threading.Event()
        self.queue.put(written)
        written.wait(1)


class _Writer(QueueListener):
    """Writes the lines of a queue, as many at once as have come."""

    queue: SimpleQueue[Any]

    def __init__(self, queue: SimpleQueue[Any], descriptor: int) -> None:
        super().__init__(queue)
        self._descriptor = descriptor
        self.lost = self._reported = 0

    def dequeue(self, block: bool) -> Any:  # noqa: ARG002 - always true
        batch = [self.queue.get()]
        time.sleep(_TOGETHER)
        while len(batch) < _BATCH and self.queue.qsize():
            batch.append(self.queue.get())
        return batch

    def handle(self, batch: Any) -> None:
        lines = [each for each in batch if isinstance(each, str)]
        try:
            self._write(lines)
            if more := self.lost - self._reported:
                self._write([JsonFormatter().format(_record("WARNING", "log lines were lost", lost=more))])
                self._reported += more
        except OSError:
            self.lost += len(lines)
        for each in batch:
            if isinstance(each, threading.Event):
                each.set()

    def _write(self, lines: Sequence[str]) -> None:
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:  # the pipe may be in non-blocking mode, which its other end shares
                time.sleep(_TOGETHER)


def lost_lines() -> int:
    """Number of log lines lost since the start."""
    return sum(each.writer.lost for each in logging.root.handlers if isinstance(each, LogHandler))


def write_text(text: str) -> None:
    """Write text in order with the lines of the log: plain for a terminal, else as one JSON object per line."""
    for each in logging.root.handlers:
        if isinstance(each, LogHandler):
            for line in text.splitlines():
                each.enqueue(line if each.is_terminal else each.format(_record("INFO", line.strip())))


def _record(level: str, message: str, **fields: Any) -> logging.LogRecord:
    return logging.makeLogRecord({"levelname": level, "name": __name__, "msg": message, **fields})


@lru_cache(maxsize=1)
def _shown_second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def configure_logging(level: str, overrides: Mapping[str, str] | None = None) -> None:
    """Send the records of all loggers to standard error as JSON lines.

    Libraries are limited to WARNING, because some log URLs or bodies at lower levels. A fork of the process calls it
    again, for it has no thread that writes.
    """
    logging.basicConfig(level="WARNING", handlers=[LogHandler(sys.stderr)], force=True)
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
