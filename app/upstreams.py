"""Replies of the tools' upstreams: their JSON objects, and what an error code means to the model and the operator."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from pydantic_core import from_json

from toolchat import Reply, ToolExecutionError, UpstreamInvalid

_MAX_BYTES = 1024 * 1024
"""Longest body that is parsed; 14 days of weather with every hour are 0.3 MB."""


@dataclass(frozen=True, slots=True)
class JsonReply:
    """A status with the JSON object of its body."""

    status: int
    body: Mapping[str, Any]
    """Empty if an error has no JSON object, such as the page of a proxy."""

    @classmethod
    def parse(cls, reply: Reply, upstream: str) -> Self:
        """Parse a response.

        Raises:
            UpstreamInvalid: the body is too long, or a success without a JSON object.
        """
        if len(reply.body) > _MAX_BYTES:
            raise UpstreamInvalid(f"{upstream} sent more than {_MAX_BYTES} bytes")
        try:
            body = from_json(reply.body, allow_inf_nan=False)
        except ValueError:
            body = None
        if isinstance(body, dict):
            return cls(reply.status, body)
        if reply.status == 200:
            raise UpstreamInvalid(f"{upstream} sent something that is not a JSON object")
        return cls(reply.status, {})


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
