"""Errors of tools and of tool calls, and the JSON that the model receives for them."""

from collections.abc import Mapping, Sequence
from typing import Any

from toolchat.tool_calling.results import json_text


class ToolDefinitionError(Exception):
    """A tool's definition is invalid. Found at start; the message names the tool."""


class ToolExecutionError(Exception):
    """An expected failure of a tool: the model receives the message, and the turn continues.

    Args:
        message: one sentence that the model can act on; no secret, no URL, no upstream body.
        kind: a stable word for programs, such as ``no-such-place``.
        hint: what the model can try instead.
        retryable: whether another attempt may succeed; a tool with ``retries`` makes it before the model is informed.
    """

    kind = "failed"
    retryable = False

    def __init__(
        self, message: str, *, kind: str | None = None, hint: str | None = None, retryable: bool | None = None
    ) -> None:
        super().__init__(message)
        self.message = str(message)  # callers also pass an exception
        self.kind = kind or self.kind
        self.hint = hint
        if retryable is not None:
            self.retryable = retryable

    def details(self) -> dict[str, Any]:
        """Describe the error as an object for the model."""
        error: dict[str, Any] = {"kind": self.kind, "message": self.message}
        if self.hint:
            error["hint"] = self.hint
        return error

    def as_result(self) -> str:
        """Write the error as JSON with an ``error`` object, which replaces the tool's result."""
        return json_text({"error": self.details()})


class ToolArgumentsError(ToolExecutionError):
    """The arguments do not fit the tool's schema. Nothing was run."""

    kind = "invalid-arguments"

    def __init__(self, message: str, fields: Sequence[Mapping[str, str]] = ()) -> None:
        super().__init__(message)
        self.fields = tuple(fields)

    def details(self) -> dict[str, Any]:
        """Describe the error with one entry for each invalid field."""
        return super().details() | ({"fields": list(self.fields)} if self.fields else {})
