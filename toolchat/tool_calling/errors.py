"""What can go wrong in a tool call, in the words that the model is told."""

from collections.abc import Mapping, Sequence
from typing import Any

from toolchat.tool_calling.results import json_text

__all__ = ["ToolArgumentsError", "ToolDefinitionError", "ToolExecutionError"]


class ToolDefinitionError(Exception):
    """A tool cannot be defined as it is written; found at start, the message names the tool."""


class ToolExecutionError(Exception):
    """A tool's expected failure: the model is told its text, the turn goes on.

    Args:
        message: one sentence that the model can act on; no secret, no URL, no upstream body.
        kind: a stable word for programs, such as ``no-such-place``.
        hint: what to try instead, where that is known.
        retryable: trying again may help; a tool with ``retries`` does so before the model is told.
    """

    kind = "failed"
    retryable = False

    def __init__(
        self, message: str, *, kind: str | None = None, hint: str | None = None, retryable: bool | None = None
    ) -> None:
        super().__init__(message)
        self.message = str(message)  # ``raise ToolExecutionError(error)`` is soon written
        self.kind = kind or self.kind
        self.hint = hint
        if retryable is not None:
            self.retryable = retryable

    def details(self) -> dict[str, Any]:
        """The error as an object for the model."""
        error: dict[str, Any] = {"kind": self.kind, "message": self.message}
        if self.hint:
            error["hint"] = self.hint
        return error

    def as_result(self) -> str:
        """The text that takes the place of the tool's result: short JSON with an ``error`` object."""
        return json_text({"error": self.details()})


class ToolArgumentsError(ToolExecutionError):
    """The arguments do not fit the tool's schema; nothing was run."""

    kind = "invalid-arguments"

    def __init__(self, message: str, fields: Sequence[Mapping[str, str]] = ()) -> None:
        super().__init__(message)
        self.fields = tuple(fields)

    def details(self) -> dict[str, Any]:
        """The error with one entry per field at fault."""
        return super().details() | ({"fields": list(self.fields)} if self.fields else {})
