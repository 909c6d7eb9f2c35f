"""Structured logs: one JSON object per line, without prompts, keys or the texts of exceptions."""

import json
import logging
import sys
import time
import traceback
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

__all__ = ["configure_logging", "request_id"]

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being answered; carried into tools and their threads."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


class JsonFormatter(logging.Formatter):
    """One JSON object per record; fields of ``extra`` beside the standard ones.

    An exception is logged as its types and the places that it passed: its text may hold what a user wrote or a
    key, and is left out.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Put a record into one line."""
        line: dict[str, Any] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if current := request_id.get():
            line["request_id"] = current
        line.update({key: value for key, value in vars(record).items() if key not in _STANDARD})
        if record.exc_info and record.exc_info[1]:
            line["exception"] = _described(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False, default=str)


def configure_logging(level: str, overrides: Mapping[str, str] | None = None) -> None:
    """Send every logger's records to standard error as JSON lines.

    The libraries beneath are held to warnings, since some log URLs or bodies below that.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level="WARNING", handlers=[handler], force=True)
    logging.getLogger("app").setLevel(level)
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
