"""The tools that a client offers: the model is told of them, and the client runs them."""

from collections.abc import Sequence
from functools import lru_cache

from pydantic_core import PydanticSerializationError, from_json, to_json

from app.api.openai_wire.errors import BadRequest
from app.api.openai_wire.wire import WireTool
from app.tool_calling.caller_callback import CallerToolCallback
from app.tool_calling.definition import ToolDefinition

__all__ = ["caller_tools"]

MAX_BYTES = 256 * 1024
"""Longest definitions of all tools of one request, as JSON."""


def caller_tools(sent: Sequence[WireTool]) -> tuple[CallerToolCallback, ...]:
    """Make the tools of a request; the same definitions give the same objects.

    Clients send their tools with every question, and whoever writes them for a provider remembers them by identity.

    Raises:
        BadRequest: two have one name, or there is too much of them.
    """
    names = [each.function.name for each in sent]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise BadRequest(f"tools: two have the name {repeated}", "tools")
    try:
        text = to_json([each.function.model_dump() for each in sent])
    except PydanticSerializationError:
        raise BadRequest("tools: cannot be sent on as JSON", "tools") from None
    if len(text) > MAX_BYTES:
        raise BadRequest(f"tools: longer than {MAX_BYTES} bytes as JSON", "tools")
    return _made(text)


@lru_cache(maxsize=64)
def _made(text: bytes) -> tuple[CallerToolCallback, ...]:
    return tuple(
        CallerToolCallback(
            ToolDefinition(
                each["name"],
                (each["description"] or "").strip() or each["name"],
                {"type": "object", "properties": {}} | (each["parameters"] or {}),
            )
        )
        for each in from_json(text)
    )
