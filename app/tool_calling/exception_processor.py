"""What becomes of an exception that a tool raised."""

import logging
from dataclasses import dataclass

from app.errors import ToolchatError, ToolFailed
from app.tool_calling.errors import ToolArgumentsError, ToolExecutionError

__all__ = ["ToolExecutionExceptionProcessor"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolExecutionExceptionProcessor:
    """Turns an exception into what the model is told, or ends the question with it.

    A tool's own :class:`ToolExecutionError` is told word for word, an upstream's failure by its client-safe detail.
    Of any other exception only the log has the details; the model is told that the tool failed.
    """

    always_throw: bool = False
    """Spring AI's ``throw-exception-on-error``: a failing tool ends the question."""
    rethrow: tuple[type[BaseException], ...] = ()
    """Exceptions that pass through as they are, for the caller to handle."""

    def process(self, error: BaseException, tool: str) -> ToolExecutionError:
        """Decide about one exception.

        Returns:
            What the model is told.

        Raises:
            ToolFailed: with ``always_throw``, unless the model itself is at fault by its arguments.
            BaseException: the exception itself, when it is one to rethrow.
        """
        if isinstance(error, self.rethrow):
            raise error
        told = _told(error, tool)
        if self.always_throw and not isinstance(error, ToolArgumentsError):
            raise ToolFailed(f"{tool}: {told.message}") from error
        return told


def _told(error: BaseException, tool: str) -> ToolExecutionError:
    if isinstance(error, ToolExecutionError):
        return error
    if isinstance(error, ToolchatError):
        return ToolExecutionError(error.detail, kind=error.code)
    _log.error("tool failed", extra={"tool": tool, "error": type(error).__name__}, exc_info=error)
    return ToolExecutionError("the tool failed", kind="failed")
