"""JSON objects that an upstream of a tool sends, errors included."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from pydantic_core import from_json

from toolchat import Reply, UpstreamInvalid

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
