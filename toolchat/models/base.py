"""What a chat model is to the rest of the service: definitions in, text and calls out."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Self

from pydantic_core import to_json

from toolchat.messages import AssistantMessage, Message, Usage, immutable
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition
from toolchat.tool_calling.events import ToolCallFinished

__all__ = [
    "ChatModel",
    "ChatOptions",
    "ChatResponse",
    "EmitModelEvent",
    "ModelEvent",
    "Progress",
    "Prompt",
    "SerializedTools",
    "TextDelta",
    "full_name",
]


@immutable
class ChatOptions:
    """Sampling options; ``None`` leaves the provider's own default."""

    model: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: Sequence[str] | None = None
    """Texts before which the answer ends."""
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    reasoning_effort: str | None = None
    response_format: Mapping[str, Any] | None = None
    """As OpenAI has it: ``{"type": "json_schema", "json_schema": ...}``."""
    parallel_tool_calls: bool | None = None
    """Whether one message may call several tools."""
    tool_choice: str | None = None
    """``auto``, ``required`` (some tool must be called) or the name of the tool that must be called.

    A name is meant for the first message alone, else no question would end; so is ``required``, unless there are tools
    that the caller runs: then it holds until one of those is called.
    """
    max_tool_calls: int | None = None
    """Most tool calls of this question; ``None`` leaves it to the loop's own limits."""
    internal_tool_execution_enabled: bool = True
    """Whether the service runs the tool calls; if not, the caller gets them and runs them himself."""


@immutable
class Prompt:
    """One turn of a model: the conversation so far and the tools that it may ask for."""

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    options: ChatOptions = field(default_factory=ChatOptions)
    stream: bool = False
    """Whether text is wanted piece by piece."""
    guarded: Collection[str] = ()
    """Names of the tools whose calls wait for consent; providers are not told."""


@immutable
class TextDelta:
    """A piece of the answer's text, in order; never reasoning."""

    text: str


@immutable
class Progress:
    """The upstream sent something that is not text for the user (reasoning, a piece of a call): it is alive."""

    reasoning: str = ""
    """What the model thinks before it answers, piece by piece, where its provider tells it; never part of the text."""


_NO_CONTEXT = ToolContext()
_NO_OPTIONS = ChatOptions()


@immutable
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
    context: ToolContext = field(default_factory=lambda: _NO_CONTEXT)
    """What tools were told behind the model's back; an answer that waits for approval goes on with it."""
    options: ChatOptions = _NO_OPTIONS
    """What the model was asked with; likewise."""
    before: "ChatResponse | None" = None
    """What the turn had come to when it paused, where it went on after approval; not counted in here."""
    provider: str = ""
    """Whose model it was, where several stand by; empty: the client's own."""

    @property
    def has_tool_calls(self) -> bool:
        """Whether the message asks for tool calls that have not been run."""
        return bool(self.message.tool_calls)

    def whole_turn(self) -> "ChatResponse":
        """Copy that counts everything since the question, whether or not the turn has paused."""
        if self.before is None:
            return self
        earlier = self.before.whole_turn()
        # The calls for which a turn pauses are those of its last round until then, and run in the first one after it.
        rounds = earlier.rounds - 1
        executions = [*earlier.executions, *(replace(each, round=each.round + rounds) for each in self.executions)]
        return replace(
            self,
            usage=earlier.usage + self.usage,
            rounds=rounds + self.rounds,
            executions=tuple(executions),
            before=None,
        )

    def by(self, provider: str) -> "ChatResponse":
        """Copy that says whose model it was."""
        return replace(self, provider=provider)

    def with_text(self, text: str) -> "ChatResponse":
        """Copy that answers with another text."""
        return replace(self, message=replace(self.message, text=text))


ModelEvent = TextDelta | Progress
"""What a model tells while it answers."""

EmitModelEvent = Callable[[ModelEvent], Coroutine[Any, Any, None]]
"""Tells whoever listens; awaited, so that a client who reads slowly slows the reading of the model's answer."""


def full_name(provider: str, name: str) -> str:
    """Provider and model as one: ``offline``, ``dashscope/qwen-plus``."""
    return provider if name == provider else f"{provider}/{name}"


class ChatModel(ABC):
    """A provider's model behind one door. It never holds a callable: it is told definitions and gives back calls."""

    provider: str
    """``offline``, ``dashscope`` or ``openai_compatible``."""
    name: str
    """The configured model name."""

    async def aclose(self) -> None:  # noqa: B027 - most models hold nothing
        """Release what the model holds, such as its own connections."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @abstractmethod
    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Run one turn.

        With ``prompt.stream`` the text is told meanwhile as :class:`TextDelta` pieces whose concatenation is the
        response's text, and :class:`Progress` for what is none; without, nothing need be told.

        Raises:
            UpstreamError: one of its kinds; also :class:`ContextTooLong` and :class:`ContentFiltered`.
        """


_MAX_KEPT = 64


class SerializedTools:
    """Remembers the JSON of the sets of tools that were offered lately."""

    def __init__(self, write: Callable[[ToolDefinition], dict[str, Any]]) -> None:
        """Take the provider's own way to write one definition."""
        self._write = write
        self._kept: OrderedDict[tuple[int, ...], tuple[tuple[ToolDefinition, ...], bytes]] = OrderedDict()

    def of(self, tools: tuple[ToolDefinition, ...]) -> bytes:
        """The definitions as a JSON array."""
        # By identity: comparing schemas would cost more than writing them. The entry holds on to its definitions, so
        # that no other object can have their ids.
        key = tuple(map(id, tools))
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = (tools, to_json([self._write(tool) for tool in tools]))
            if len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        return kept[1]
