"""The words of a conversation: messages, tool calls, tool responses, usage.

Every other module speaks in these; a provider's wire format never leaves its own file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

__all__ = [
    "AssistantMessage",
    "Message",
    "SystemMessage",
    "ToolCall",
    "ToolResponse",
    "ToolResponseMessage",
    "Usage",
    "UserMessage",
    "immutable",
]


_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[_T]) -> type[_T]:
    """Make a dataclass whose fields the type checker lets nobody set.

    Nothing stops it when the program runs, as ``frozen=True`` would: that sets every field by a call of its own, which
    was a tenth of what a question costs. Where a value is not made for every question, ``frozen=True`` is the better
    way.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


@immutable
class ToolCall:
    """One call that a chat model asks for."""

    id: str
    """Pairs the call with its response; never empty."""
    name: str
    arguments: str
    """The arguments as the model wrote them: JSON text, possibly empty or broken."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the provider that must be sent back unchanged, such as a thought signature."""

    def __post_init__(self) -> None:
        if (self.id + self.name + self.arguments).isascii():
            return
        # A lone surrogate is valid JSON and cannot be sent to anyone as UTF-8.
        for part in ("id", "name", "arguments"):
            object.__setattr__(self, part, getattr(self, part).encode("utf-8", "replace").decode())


@immutable
class SystemMessage:
    """Instructions that stand above the conversation."""

    text: str


@immutable
class UserMessage:
    """What the user said."""

    text: str


@immutable
class AssistantMessage:
    """What the model said, and the tool calls that it asks for."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the provider that must be sent back within the same turn, such as ``reasoning_content``."""


@immutable
class ToolResponse:
    """The text that answers one tool call."""

    id: str
    name: str
    text: str
    sandbox: bool = False
    """The text is a sandbox's invented data."""


@immutable
class ToolResponseMessage:
    """The responses to all calls of one assistant message, in the order of the calls."""

    responses: tuple[ToolResponse, ...]


Message = SystemMessage | UserMessage | AssistantMessage | ToolResponseMessage


@immutable
class Usage:
    """Tokens used, as the provider counted them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """How many of the input tokens the provider had at hand; 0 where it does not tell."""
    reasoning_tokens: int = 0
    """How many of the output tokens nobody is shown; 0 where it does not tell."""

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def to_dict(self) -> dict[str, int]:
        """The tokens as a plain object; what the provider does not tell is absent."""
        record = {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.total_tokens,
        }
        if self.cached_tokens:
            record["cached_tokens"] = self.cached_tokens
        if self.reasoning_tokens:
            record["reasoning_tokens"] = self.reasoning_tokens
        return record

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )
