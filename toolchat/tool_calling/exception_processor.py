"""Exceptions of tools: what the model receives for them, and which of them end the chat request."""

import inspect
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from toolchat.errors import ToolchatError, ToolFailed
from toolchat.tool_calling.errors import ToolArgumentsError, ToolExecutionError
from toolchat.tool_calling.results import ToolResultError
from toolchat.tool_calling.threads import NotBegun

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolExecutionExceptionProcessor:
    """Converts an exception of a tool to the error that the model receives, or ends the chat request with it.

    The model receives the message of a :class:`ToolExecutionError` and the client-safe detail of a
    :class:`ToolchatError`. For any other exception it learns only that the tool failed; the details are logged.
    A result without a JSON form counts as such an exception, of the kind ``tool-result``; the log names its type.

    A processor of your own derives from it, or is any object with its method ``process``.
    """

    always_throw: bool = False
    """A failing tool ends the chat request; Spring AI's ``throw-exception-on-error``."""
    rethrow: tuple[type[BaseException], ...] = ()
    """Exceptions that are raised unchanged, for the caller to handle."""

    def process(self, error: BaseException, tool: str) -> ToolExecutionError | str:
        """Convert one exception.

        Returns:
            The error for the model; or, as in Spring AI, the text that it receives as it is.

        Raises:
            ToolFailed: with ``always_throw``, unless the model's arguments are the cause.
            BaseException: the exception itself, if it is listed in ``rethrow``.
        """
        for each in _leaves(error):
            if isinstance(each, self.rethrow):
                raise each
        converted = _convert(error, tool)
        if self.always_throw and not isinstance(error, ToolArgumentsError):
            raise ToolFailed(f"{tool}: {converted.message}") from error
        return converted


def _convert(error: BaseException, tool: str) -> ToolExecutionError:
    if isinstance(error, ToolchatError):
        if error.status >= 500:  # its upstream, not the model's arguments
            said = {"tool": tool, "code": error.code, "detail": error.detail, **error.log_fields}
            _log.warning("tool failed", extra=said)
        error = ToolExecutionError(error.detail, kind=error.code)
    if isinstance(error, ToolExecutionError):
        if error.message.strip():
            return error
        return ToolExecutionError(f"the tool {tool} failed without a message", kind=error.kind, hint=error.hint)
    fields = {"tool": tool, "error": type(error).__name__}
    if isinstance(error, ToolResultError):
        fields["result_type"] = error.type_name
    _log.error("tool failed", extra=fields, exc_info=error)
    return ToolExecutionError("the tool failed", kind="tool-result" if "result_type" in fields else "failed")


class _ErrorText(ToolExecutionError):
    """A failure that the model receives as a plain text."""

    def as_result(self) -> str:
        return self.message


def check_processor(processor: object) -> None:
    """Reject an object that cannot process exceptions, before a tool fails."""
    process = getattr(processor, "process", None)
    try:
        inspect.signature(process).bind(Exception(), "")  # type: ignore[arg-type]
    except (TypeError, ValueError):
        process = None
    if process is None or inspect.iscoroutinefunction(process):
        raise TypeError("an exception processor needs a method process(error, tool) that returns an error or a text")


def process_exception(
    processor: ToolExecutionExceptionProcessor, error: BaseException, tool: str
) -> ToolExecutionError:
    """The error for the model, whatever a processor of the application's own returns; raises what that raises."""
    processed: object = processor.process(error, tool)
    if isinstance(processed, str) and processed.strip():
        expected = expected_error(error)
        return _ErrorText(processed, kind=getattr(expected, "kind", None) or getattr(expected, "code", None))
    if not isinstance(processed, BaseException):
        _log.error("exception processor returned no error", extra={"tool": tool, "returned": type(processed).__name__})
        processed = error
    return _convert(processed, tool)


def timeout_error(outcome: object, seconds: float) -> ToolExecutionError:
    """The error of a call that exceeded its time limit; ``outcome`` is what its cancellation led to."""
    if isinstance(outcome, NotBegun):
        message = f"not begun: no thread was free for the tool within {seconds:g} s"
        return ToolExecutionError(message, kind="busy", hint="call it again later", retryable=True)
    return ToolExecutionError(f"the tool did not answer within {seconds:g} s", kind="timeout")


def expected_error(error: BaseException) -> ToolExecutionError | ToolchatError | None:
    """The error that a tool raised for the model, also within the group of an ``asyncio.TaskGroup``."""
    return next((each for each in _leaves(error) if isinstance(each, ToolExecutionError | ToolchatError)), None)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
