"""Error rules: what the model and the operator get for an error code of an upstream."""

import logging
from dataclasses import dataclass

from toolchat import ToolExecutionError


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """How a tool answers one error code of its upstream."""

    kind: str
    message: str
    """For the model: no secret, no URL, no text of the upstream."""
    hint: str | None = None
    operator: str | None = None
    """What the operator has to fix; logged as a warning, never sent to the model."""
    retry_after: float | None = None
    """Seconds to wait before the only retry; ``None`` if a retry cannot help."""

    def to_error(self, upstream: str, log: logging.Logger, **fields: object) -> ToolExecutionError:
        """Return the error for the model, after logging what the operator has to fix.

        Args:
            upstream: name of the upstream.
            log: the logger of the tool.
            **fields: fields of the log record, such as the error code.
        """
        if self.operator:
            log.warning("%s: %s", upstream, self.operator, extra=fields)
        return ToolExecutionError(self.message, kind=self.kind, hint=self.hint)
