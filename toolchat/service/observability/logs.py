"""Structured logs: one JSON object per line, without prompts, keys or exception messages."""

import hashlib
import logging
import os
import sys
import time
import traceback
from collections.abc import Mapping
from contextvars import ContextVar
from functools import lru_cache
from logging.handlers import QueueHandler, QueueListener
from queue import Queue
from typing import Any, TextIO

from pydantic_core import to_json

from toolchat.service.observability.tracing import current_ids

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the current request; propagated to tools and their threads."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


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


class _Writer(logging.Handler):
    """Writes the lines of a queue. No ``StreamHandler``: at exit, ``logging`` would wait for the lock of its writes."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor, self.lost = descriptor, 0

    def handle(self, line: Any) -> bool:
        try:
            os.write(self._descriptor, f"{line}\n".encode("utf-8", "backslashreplace"))
        except OSError:
            self.lost += 1
        return True


class LogHandler(QueueHandler):
    """Formats a line in the context of its request; a thread writes it, for a paused pager or full disk may block."""

    def __init__(self, stream: TextIO, most: int = 5_000) -> None:
        self._lines = Queue[str](most)
        super().__init__(self._lines)
        self.setFormatter(JsonFormatter())
        self.is_terminal, self.writer, self._reported = stream.isatty(), _Writer(stream.fileno()), 0
        QueueListener(self._lines, self.writer).start()

    def prepare(self, record: logging.LogRecord) -> str:
        return self.format(record)

    def emit(self, record: logging.LogRecord) -> None:
        if (more := self.writer.lost - self._reported) and self._lines.empty():
            self._reported += more
            super().emit(_record("WARNING", "log lines were lost", lost=more))
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002
        """Count a line for which the queue has no room, where the standard library would write a traceback."""
        self.writer.lost += 1

    def flush(self) -> None:
        """Wait until all queued lines are written, for at most a second."""
        with self._lines.all_tasks_done:
            self._lines.all_tasks_done.wait_for(lambda: not self._lines.unfinished_tasks, 1)


def lost_lines() -> int:
    """Number of log lines lost since the start."""
    return sum(each.writer.lost for each in logging.root.handlers if isinstance(each, LogHandler))


def write_text(text: str) -> None:
    """Write text in order with the lines of the log: plain for a terminal, else as one JSON object per line."""
    for each in logging.root.handlers:
        if isinstance(each, LogHandler):
            for line in text.splitlines():
                each.queue.put_nowait(line if each.is_terminal else each.format(_record("INFO", line.strip())))


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
