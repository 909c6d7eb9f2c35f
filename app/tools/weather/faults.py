"""WeatherAPI's error codes, and what each means to the model and to the operator.

Source: https://www.weatherapi.com/docs/error-codes/; a status without a code of the table is its own failure.
"""

import logging
from dataclasses import dataclass, field
from typing import Any, Literal

from app.tool_calling.errors import ToolExecutionError

__all__ = ["Fault", "error_code", "fault_of"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Fault:
    """One reaction."""

    kind: str
    message: str
    hint: str | None = None
    operator: str | None = None
    """What the operator reads in the log: the cause, without key, place or body."""
    remedy: Literal["none", "again", "fewer-days"] = "none"
    """What may be tried once before giving up."""
    extra: dict[str, Any] = field(default_factory=dict)

    def report(self, status: int, code: int | None) -> ToolExecutionError:
        """Tell the operator, where it is theirs to mend, and put it into words for the model."""
        if self.operator:
            _log.warning("WeatherAPI: %s", self.operator, extra={"status": status, "error_code": code})
        return ToolExecutionError(self.message, kind=self.kind, hint=self.hint)
