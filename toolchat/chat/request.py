"""One question on its way through the advisors to the model."""

import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import field, replace
from typing import Any

from toolchat.messages import AssistantMessage, Message, immutable
from toolchat.models.base import ChatOptions, ChatResponse, ModelEvent, Prompt
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.events import ToolCallEvent

__all__ = ["Approval", "ChatEvent", "ChatRequest", "Emit", "Notice"]

_NOTICE_NAME = re.compile("[a-z_]+")
_OWN_EVENTS = frozenset(
    ("tool_call_started", "tool_call_progress", "tool_call_finished", "delta", "usage", "done", "error")
)


@immutable
class Notice:
    """Something that an advisor tells the client while the question is being answered.

    Raises:
        ValueError: the name has other characters, or is that of an event which every stream has.
    """

    name: str
    """The name of the server-sent event: lower case letters and underscores."""
    data: Mapping[str, Any]
    """The event's JSON object."""

    def __post_init__(self) -> None:
        if not _NOTICE_NAME.fullmatch(self.name):
            raise ValueError(f"a notice's name has lower case letters and underscores only, unlike {self.name!r}")
        if self.name in _OWN_EVENTS:
            raise ValueError(f"a notice cannot be named {self.name}: every stream has an event of this name")


ChatEvent = ModelEvent | ToolCallEvent | Notice
"""What is told while a question is being answered."""

Emit = Callable[[ChatEvent], Coroutine[Any, Any, None]]
"""Tells whoever listens. Await it: a client who reads slowly then slows the model's reader.

Whatever it raises is the listener's failure and ends the question. Several tasks may call it: each event is written
whole, in the order of the calls.
"""


@immutable
class Approval:
    """The user's decision about one call that waits for consent."""

    approved: bool
    reason: str = ""
    """Told to the model when the call was rejected."""
    arguments: str | None = None
    """JSON text that replaces the model's arguments; ``None`` leaves them."""


@immutable
class ChatRequest:
    """A conversation, the tools that it may use, and how it is to be answered."""

    messages: tuple[Message, ...]
    tools: tuple[ToolCallback, ...] = ()
    """Only these can run, whatever the model asks for."""
    context: ToolContext = field(default_factory=ToolContext)
    options: ChatOptions = field(default_factory=ChatOptions)
    stream: bool = False
    paused: AssistantMessage | None = None
    """The message with which a turn paused; it goes on with the calls of this message."""
    approvals: Mapping[str, Approval] = field(default_factory=dict)
    """Decisions by call id."""
    before: ChatResponse | None = None
    """What the turn had come to when it paused."""

    def resumed(self) -> "ChatRequest":
        """The request without the message with which the turn paused, once that is taken up."""
        return ChatRequest(  # field by field: dataclasses.replace costs more than running a small tool
            self.messages, self.tools, self.context, self.options, self.stream, None, self.approvals, self.before
        )

    def next_turn(self, messages: tuple[Message, ...], *, withdrawn: bool) -> "ChatRequest":
        """The request after a round of calls.

        Args:
            messages: the conversation with the calls and their results.
            withdrawn: whether the service runs no more calls; those that the caller runs end the question anyway.
        """
        tools, options = self.tools, self.options
        if withdrawn:
            tools = self._run_by_caller()
        if options.tool_choice and not (options.tool_choice == "required" and self._run_by_caller()):
            options = replace(options, tool_choice=None)
        # A decision is about the calls that it was made for: a later call may bear the same id.
        return ChatRequest(messages, tools, self.context, options, self.stream)

    def _run_by_caller(self) -> tuple[ToolCallback, ...]:
        return tuple(tool for tool in self.tools if tool.metadata.run_by_caller)

    def with_context(self, context: ToolContext) -> "ChatRequest":
        """Copy with other values for tools and advisors."""
        return ChatRequest(
            self.messages, self.tools, context, self.options, self.stream, self.paused, self.approvals, self.before
        )

    def with_messages(self, messages: tuple[Message, ...]) -> "ChatRequest":
        """Copy with another conversation."""
        return ChatRequest(
            messages, self.tools, self.context, self.options, self.stream, self.paused, self.approvals, self.before
        )

    def prompt(self) -> Prompt:
        """What the model is told."""
        definitions = tuple([tool.definition for tool in self.tools])
        guarded = [tool.definition.name for tool in self.tools if tool.metadata.requires_approval]
        return Prompt(self.messages, definitions, self.options, self.stream, guarded)
