"""What a chat model is to the rest of the service: definitions in, text and calls out."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from app.messages import AssistantMessage, Message, Usage
from app.tool_calling.definition import ToolDefinition
from app.tool_calling.events import ToolCallFinished

__all__ = ["ChatModel", "ChatOptions", "ChatResponse", "ModelEvent", "Progress", "Prompt", "TextDelta"]


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Sampling options; ``None`` leaves the provider's own default."""

    model: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    internal_tool_execution_enabled: bool = True
    """Whether the service runs the tool calls; if not, the caller gets them and runs them himself."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One turn of a model: the conversation so far and the tools that it may ask for."""

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    options: ChatOptions = field(default_factory=ChatOptions)
    stream: bool = False
    """Whether text is wanted piece by piece."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text, in order; never reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    """The upstream sent something that is not text for the user (reasoning, a piece of a call): it is alive."""


@dataclass(frozen=True, slots=True)
class ChatResponse:
    """One finished turn of a model."""

    message: AssistantMessage
    finish_reason: str
    """``stop``, ``tool_calls``, ``length`` or ``content_filter``; whether there are calls is in the message."""
    usage: Usage
    model: str
    """The model's name, as the provider gave it or as it was asked for."""
    rounds: int = 1
    """Turns of the model that led to this response."""
    executions: tuple[ToolCallFinished, ...] = ()
    """The tool calls that were run on the way, in order."""
    history: tuple[Message, ...] = ()
    """The conversation that led to the message, tool rounds included."""

    @property
    def has_tool_calls(self) -> bool:
        """Whether the message asks for tool calls that have not been run."""
        return bool(self.message.tool_calls)


ModelEvent = TextDelta | Progress | ChatResponse


class ChatModel(ABC):
    """A provider's model behind one door. It never holds a callable: it is told definitions and gives back calls."""

    provider: str
    """``offline``, ``dashscope`` or ``openai_compatible``."""
    name: str
    """The configured model name."""

    @abstractmethod
    def respond(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        """Run one turn; the last event, and only the last, is the :class:`ChatResponse`.

        With ``prompt.stream`` the text comes before it as :class:`TextDelta` pieces whose concatenation is
        the response's text; without, the response may be the only event.

        Raises:
            UpstreamError: one of its kinds; also :class:`ContextTooLong` and :class:`ContentFiltered`.
        """
