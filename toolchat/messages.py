"""The message types of a conversation: messages, tool calls, tool responses and token usage.

All modules use these types; only the folder of a provider knows its wire format.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar, dataclass_transform

from pydantic_core import to_json

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[_T]) -> type[_T]:
    """Make a dataclass that is immutable to type checkers, but not at run time.

    ``frozen=True`` would enforce it at run time, but sets every field with ``object.__setattr__``, a tenth of the
    CPU time of a chat request. Prefer ``frozen=True`` for objects that are not created in every request.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


def updated(options: _T, other: _T) -> _T:
    """Copy of a dataclass with every value of another one that differs from the default."""
    changed = {
        each.name: value
        for each in fields(other)  # type: ignore[arg-type]
        if (value := getattr(other, each.name)) != each.default
    }
    return replace(options, **changed)  # type: ignore[type-var]


def sendable(text: str) -> str:
    """The text as UTF-8 can encode it: a lone surrogate, which JSON may escape, becomes a question mark."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


@immutable
class ToolCall:
    """A tool call that a chat model requests."""

    id: str
    """Matches the call with its response; never empty."""
    name: str
    arguments: str
    """The arguments as the model wrote them: JSON text, possibly empty or malformed."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Provider-specific keys that must be sent back unchanged, such as a thought signature."""
    repaired: bool = field(default=False, compare=False)
    """Whether the model wrote the call as text, from which it was read."""

    def __post_init__(self) -> None:
        if not (self.id + self.name + self.arguments).isascii():
            for part in ("id", "name", "arguments"):
                object.__setattr__(self, part, sendable(getattr(self, part)))


@immutable
class SystemMessage:
    """Instructions to the model, before the conversation."""

    role: ClassVar = "system"
    text: str
    json: bytes | None = field(default=None, init=False, repr=False, compare=False)
    """What :func:`text_json` has computed; ``None`` before, and for messages that hold more than text."""


@immutable
class UserMessage:
    """A message of the user."""

    role: ClassVar = "user"
    text: str
    images: tuple[str, ...] = ()
    """URLs of images, or data URLs with their bytes; they go to models that take them, and are fetched by nobody."""
    json: bytes | None = field(default=None, init=False, repr=False, compare=False)
    """As in a :class:`SystemMessage`."""


@immutable
class AssistantMessage:
    """A message of the model, with the tool calls that it requests."""

    role: ClassVar = "assistant"
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Provider-specific keys that must be sent back within the same turn, such as ``reasoning_content``."""
    json: bytes | None = field(default=None, init=False, repr=False, compare=False)
    """As in a :class:`SystemMessage`."""


@immutable
class ToolResponse:
    """The result of one tool call, as the model receives it."""

    id: str
    name: str
    text: str
    sandbox: bool = False
    """Whether the result is invented data of the sandbox."""
    images: tuple[str, ...] = ()
    """As in a :class:`UserMessage`."""


@immutable
class ToolResponseMessage:
    """The responses to all calls of one assistant message, in the order of the calls."""

    json: ClassVar = None
    responses: tuple[ToolResponse, ...]


Message = SystemMessage | UserMessage | AssistantMessage | ToolResponseMessage


def text_json(message: SystemMessage | UserMessage | AssistantMessage) -> bytes:
    """A message's role and text as most providers take them; a conversation is sent again with each of its turns."""
    if (written := message.json) is None:
        written = to_json({"role": message.role, "content": message.text})
        object.__setattr__(message, "json", written)
    return written


MAX_IMAGES = 20
"""Images of one message."""
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,|https?://[^\s\"<>]{1,2048}\Z", re.ASCII)


def is_image(url: str) -> bool:
    """Whether a URL may be that of an image: of the web, or data of a type that all models with images take."""
    return _IMAGE.match(url) is not None


def described(message: UserMessage | ToolResponse) -> str:
    """The text of a message, with a note in place of its images, for a model or a memory that takes only text."""
    if not message.images:
        return message.text
    note = "[image left out]" if len(message.images) == 1 else f"[{len(message.images)} images left out]"
    return f"{message.text}\n{note}".lstrip("\n")


def turn_start(messages: Sequence[Message]) -> int:
    """The index of the last user message, with which the running turn begins; 0 without one."""
    for place in range(len(messages) - 1, 0, -1):
        if isinstance(messages[place], UserMessage):
            return place
    return 0


def split_answered(
    messages: Sequence[Message], message: AssistantMessage
) -> tuple[Sequence[Message], Mapping[str, ToolResponse]]:
    """Split a conversation into the messages before ``message`` and the responses to some of its calls, by id.

    An equal message whose calls are all answered is an earlier one: a model may repeat itself.
    """
    end = len(messages)
    while end and isinstance(messages[end - 1], ToolResponseMessage):
        end -= 1
    if not end or messages[end - 1] != message:
        return messages, {}
    after = [each for each in messages[end:] if isinstance(each, ToolResponseMessage)]
    answered = {response.id: response for each in after for response in each.responses}
    if all(call.id in answered for call in message.tool_calls):
        return messages, {}
    return messages[: end - 1], answered


@immutable
class Usage:
    """Tokens used, as the provider counted them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens that the provider read from its cache; 0 if it does not report them."""
    reasoning_tokens: int = 0
    """Reasoning tokens within the output; 0 if the provider does not report them."""

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def to_dict(self) -> dict[str, int]:
        """Convert to a plain object; counts that the provider does not report are absent."""
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


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text as current tokenizers count: one per Chinese character, one per four letters."""
    if text.isascii():
        return (len(text) + 3) // 4
    # UTF-8 has three bytes for a Chinese character, two more than there are characters: half of these is one token.
    wide = (len(text.encode("utf-8", "replace")) - len(text)) // 2
    return wide + (len(text) - wide + 3) // 4


def estimate_size(messages: Sequence[Message]) -> int:
    """Estimate the tokens of a conversation, for which no provider's count exists."""
    return sum([_message_tokens(message) for message in messages])


_IMAGE_TOKENS = 800
"""Of a picture of about a million pixels, at OpenAI and Qwen alike."""


def _message_tokens(message: Message) -> int:
    if isinstance(message, ToolResponseMessage):
        return sum([estimate_tokens(each.text) + _IMAGE_TOKENS * len(each.images) for each in message.responses])
    tokens = estimate_tokens(message.text)
    if isinstance(message, UserMessage) and message.images:
        tokens += _IMAGE_TOKENS * len(message.images)
    if isinstance(message, AssistantMessage) and message.tool_calls:
        tokens += sum([estimate_tokens(call.arguments) for call in message.tool_calls])
    return tokens
