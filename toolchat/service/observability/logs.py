"""Structured logs: one JSON object per line, without prompts, keys or exception messages."""

import hashlib
import logging
import os
import select
import sys
import time
import traceback
from collections import deque
from collections.abc import Mapping
from contextvars import ContextVar
from functools import lru_cache
from threading import Event, Thread
from typing import Any, TextIO

from pydantic_core import to_json

from toolchat.service.observability.tracing import current_ids

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the current request; propagated to tools and their threads."""

_GATHERING_SECONDS = 0.05
_WRITTEN_WHOLE = getattr(select, "PIPE_BUF", 512)
"""Bytes that no other process can write between; Windows does not say how many."""
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


class LogHandler(logging.Handler):
    """Formats a line in the context of its request; a thread writes it, for a paused pager or full disk may block."""

    # The thread lets lines gather: to wake it for each one would interrupt an answer as often.

    def __init__(self, stream: TextIO, most: int = 5_000) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.is_terminal, self._descriptor, self._most = stream.isatty(), stream.fileno(), most
        self._lines, self._has_lines = deque[bytes](), Event()
        self.lost = self._reported = 0
        Thread(target=self._write, daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        if (more := self.lost - self._reported) and len(self._lines) < self._most / 2:
            self._reported += more
            self.put(self.format(_record("WARNING", "log lines were lost", lost=more)))
        try:
            self.put(self.format(record))
        except Exception:  # noqa: BLE001 - a message that does not fit its arguments must not end a request
            self.lost += 1

    def put(self, line: str) -> None:
        """Have a line written; it is lost if too many wait."""
        if len(self._lines) >= self._most:
            self.lost += 1
        else:
            self._lines.append(f"{line}\n".encode("utf-8", "backslashreplace"))
            self._has_lines.set()

    def flush(self) -> None:
        """Wait until all lines are written, for at most a second."""
        until = time.monotonic() + 1
        while self._lines and time.monotonic() < until:
            time.sleep(0.01)

    def _write(self) -> None:
        while self._has_lines.wait():
            time.sleep(_GATHERING_SECONDS)
            self._has_lines.clear()
            while self._lines:
                self._write_some()

    def _write_some(self) -> None:
        """Write a line, and with it as many as no other process can write between."""
        written, count = self._lines[0], 1
        while count < len(self._lines) and len(written) + len(self._lines[count]) <= _WRITTEN_WHOLE:
            written, count = written + self._lines[count], count + 1
        try:
            os.write(self._descriptor, written)
        except OSError:
            self.lost += count
        for _ in range(count):
            self._lines.popleft()


def lost_lines() -> int:
    """Number of log lines lost since the start."""
    return sum(each.lost for each in logging.root.handlers if isinstance(each, LogHandler))


def write_text(text: str) -> None:
    """Write text in order with the lines of the log: plain for a terminal, else as one JSON object per line."""
    for each in logging.root.handlers:
        if isinstance(each, LogHandler):
            for line in text.splitlines():
                each.put(line if each.is_terminal else each.format(_record("INFO", line.strip())))


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


def _describe_exception(error: BaseException | None) -> list[str]:
    chain: list[str] = []
    while error is not None and len(chain) < 5:
        frames = traceback.extract_tb(error.__traceback__)[-8:]
        places = " > ".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}" for frame in frames)
        chain.append(f"{type(error).__name__} at {places}")
        error = error.__cause__
    return chain
