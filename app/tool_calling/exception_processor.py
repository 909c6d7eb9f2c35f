"""What becomes of an exception that a tool raised."""

import logging
from dataclasses import dataclass

from app.errors import ToolchatError, ToolFailed
from app.tool_calling.errors import ToolArgumentsError, ToolExecutionError
from app.tool_calling.json_text import ToolResultError

__all__ = ["ToolExecutionExceptionProcessor"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolExecutionExceptionProcessor:
    """Turns an exception into what the model is told, or ends the question with it.

    A tool's own :class:`ToolExecutionError` is told word for word, an upstream's failure by its client-safe detail.
    Of any other exception only the log has the details; the model is told that the tool failed. So it is, with the kind
    ``tool-result``, where a tool returned what JSON cannot carry; the log then names the type.
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
    if isinstance(error, ToolchatError):
        error = ToolExecutionError(error.detail, kind=error.code)
    if isinstance(error, ToolExecutionError):
        return error if error.message.strip() else _speaking(error, tool)
    fields = {"tool": tool, "error": type(error).__name__}
    if isinstance(error, ToolResultError):
        fields["result_type"] = error.type_name
    _log.error("tool failed", extra=fields, exc_info=error)
    return ToolExecutionError("the tool failed", kind="tool-result" if "result_type" in fields else "failed")


def _speaking(error: ToolExecutionError, tool: str) -> ToolExecutionError:
    return ToolExecutionError(f"the tool {tool} failed and did not say why", kind=error.kind, hint=error.hint)
