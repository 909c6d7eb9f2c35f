"""What a caller tells a tool behind the model's back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from app.messages import Message

__all__ = ["CONVERSATION_ID", "ToolContext"]

CONVERSATION_ID = "conversation_id"
"""The value that names the conversation: what a tool or an advisor keeps between two questions is kept under it."""


_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Values for tools, such as a tenant, and the conversation that led to the call.

    It never enters a tool's schema and is never sent to the model. A tool receives it by declaring a parameter
    of this type; without values it is empty, never missing.
    """

    values: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    history: tuple[Message, ...] = ()
    """The messages before the call, oldest first, the assistant message with the call last."""

    def __post_init__(self) -> None:
        if not isinstance(self.values, MappingProxyType):
            object.__setattr__(self, "values", MappingProxyType(dict(self.values)))

    def get(self, key: str, default: Any = None) -> Any:
        """Look up one value."""
        return self.values.get(key, default)

    def with_history(self, history: tuple[Message, ...]) -> "ToolContext":
        """Copy with another history."""
        return ToolContext(self.values, history)
