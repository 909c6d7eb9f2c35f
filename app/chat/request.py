"""One question on its way through the advisors to the model."""

from dataclasses import dataclass, field

from app.chat_models.base import ChatOptions, ChatResponse, Progress, Prompt, TextDelta
from app.messages import Message
from app.tool_calling.callback import ToolCallback
from app.tool_calling.context import ToolContext
from app.tool_calling.events import ToolCallFinished, ToolCallStarted

__all__ = ["ChatEvent", "ChatRequest"]

ChatEvent = TextDelta | Progress | ToolCallStarted | ToolCallFinished | ChatResponse
"""What a question brings forth; the :class:`ChatResponse` comes last, once."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A conversation, the tools that it may use, and how it is to be answered."""

    messages: tuple[Message, ...]
    tools: tuple[ToolCallback, ...] = ()
    """Only these can run, whatever the model asks for."""
    context: ToolContext = field(default_factory=ToolContext)
    options: ChatOptions = field(default_factory=ChatOptions)
    stream: bool = False

    def prompt(self) -> Prompt:
        """What the model is told."""
        return Prompt(self.messages, tuple(tool.definition for tool in self.tools), self.options, self.stream)
