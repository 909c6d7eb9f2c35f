"""The chat request that passes the advisors on its way to the model, and the events that it emits."""

import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import field, replace
from typing import Any

from toolchat.messages import AssistantMessage, Message, immutable
from toolchat.models.base import ChatOptions, ChatResponse, ModelEvent, Prompt
from toolchat.tool_calling.callback import ToolCallback, ToolSet
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition
from toolchat.tool_calling.events import ToolCallEvent

_NOTICE_NAME = re.compile("[a-z_]+")
_OWN_EVENTS = ("tool_call_started", "tool_call_progress", "tool_call_finished", "delta", "usage", "done", "error")

# Bedrock, Anthropic and LiteLLM refuse a conversation with calls if no tool is defined (BerriAI/litellm#40735).
_NO_TOOLS = (ToolDefinition("no_tool", "Not available: never call it.", {"type": "object", "properties": {}}),)


@immutable
class Notice:
    """An event that an advisor sends to the client.

    Raises:
        ValueError: the name has other characters, or is the name of an event that every stream has.
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
"""An event of a running chat request."""

Emit = Callable[[ChatEvent], Coroutine[Any, Any, None]]
"""Sends an event to the listener. Await it: a client that reads slowly then slows the reading from the model.

An exception that it raises is the listener's failure and ends the chat request. Several tasks may call it: each event
is written whole, in the order of the calls.
"""


@immutable
class Approval:
    """The user's decision about one call that waits for approval."""

    approved: bool
    reason: str = ""
    """Sent to the model if the call was rejected."""
    arguments: str | None = None
    """JSON text that replaces the model's arguments; ``None`` leaves them."""
    by: str = ""
    """The name of the person who decided, shown with the call."""


@immutable
class Resume:
    """Where a paused turn continues: the calls of its last message, and the decisions about them."""

    message: AssistantMessage
    """The message with the calls that waited; without any, the model comes next."""
    approvals: Mapping[str, Approval]
    """Decisions by call id; without any, the calls that have no result run as if the model had just asked for them."""
    paused_response: ChatResponse | None = None
    """The response with which the turn paused; its usage and tool calls count as part of the turn."""
    is_whole_turn: bool = False
    """The turn ends with the results of the calls: no model comes next."""


@immutable
class ChatRequest:
    """A conversation, the tools it may use, and how to answer it."""

    messages: tuple[Message, ...]
    tools: tuple[ToolCallback, ...] = ToolSet()
    """The tools that the model may call; no others can run."""
    context: ToolContext = field(default_factory=ToolContext)
    options: ChatOptions = field(default_factory=ChatOptions)
    stream: bool = False
    resume: Resume | None = None
    """Set if a paused turn continues: its calls come first, before the model is asked."""

    @property
    def tool_set(self) -> ToolSet:
        """The tools, with what the engine needs to know of them."""
        return self.tools if isinstance(self.tools, ToolSet) else ToolSet(self.tools)

    def next_round(self, messages: tuple[Message, ...], *, withdraw_tools: bool) -> "ChatRequest":
        """The request that follows a round of tool calls.

        Args:
            messages: the conversation with the calls and their results.
            withdraw_tools: let no more tools be called that the service runs; calls of a client tool end the turn
                anyway. Without those the tools stay defined, since many servers refuse calls of undefined tools.
        """
        client_tools = self.tool_set.client_tools
        options = self.options
        # A forced tool choice has been met by this round, and kept it would never let the model answer. A client
        # tool's call ends the turn, so with client tools "required" cannot loop.
        if withdraw_tools and not client_tools:
            options = replace(options, tool_choice="none")
        elif options.tool_choice not in (None, "none") and not (options.tool_choice == "required" and client_tools):
            options = replace(options, tool_choice=None)
        tools = client_tools if withdraw_tools and client_tools else self.tools
        # Without ``resume``: a decision holds for the calls it was made for, and a later call may have the same id.
        return ChatRequest(messages, tools, self.context, options, self.stream)

    def with_tools(self, tools: tuple[ToolCallback, ...]) -> "ChatRequest":
        """Copy with other tools; as a :class:`ToolSet`, they are examined once for all requests that offer them."""
        # Not ``dataclasses.replace``, here and below: it costs more than running a small tool.
        tools = tools if isinstance(tools, ToolSet) else ToolSet(tools)
        return ChatRequest(self.messages, tools, self.context, self.options, self.stream, self.resume)

    def with_context(self, context: ToolContext) -> "ChatRequest":
        """Copy with other values for tools and advisors."""
        return ChatRequest(self.messages, self.tools, context, self.options, self.stream, self.resume)

    def with_messages(self, messages: tuple[Message, ...]) -> "ChatRequest":
        """Copy with another conversation."""
        return ChatRequest(messages, self.tools, self.context, self.options, self.stream, self.resume)

    def prompt(self) -> Prompt:
        """The request to the model."""
        tools, options = self.tool_set, self.options
        if not tools and options.tool_choice != "none" and any(_has_calls(each) for each in self.messages):
            return Prompt(self.messages, _NO_TOOLS, replace(options, tool_choice="none"), self.stream)
        return Prompt(self.messages, tools.definitions, options, self.stream, tools.metadata)


def _has_calls(message: Message) -> bool:
    return isinstance(message, AssistantMessage) and bool(message.tool_calls)
