"""The interface of chat models: messages and tool definitions in, text and tool calls out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Generic, Self, TypeVar

from toolchat.messages import AssistantMessage, Message, ToolCall, Usage, immutable, split_answered, updated
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata
from toolchat.tool_calling.events import ToolCallFinished

CUT = ("length", "content_filter", "incomplete")
"""The finish reasons of a truncated message: the arguments of its tool calls may be incomplete."""


@immutable
class ChatOptions:
    """Options of a model call; ``None`` leaves the provider's default."""

    model: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: Sequence[str] | None = None
    """Stop sequences."""
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    reasoning_effort: str | None = None
    response_format: Mapping[str, Any] | None = None
    """In OpenAI's format: ``{"type": "json_schema", "json_schema": ...}``."""
    parallel_tool_calls: bool | None = None
    """Whether one message may contain several tool calls."""
    tool_choice: str | None = None
    """``auto``, ``none``, ``required`` (the model must call a tool) or the name of the tool that it must call.

    A name applies to the first round only, since the turn would not end otherwise. So does ``required``, unless the
    caller runs some tools itself: then it applies until the model calls one of those.
    """
    max_tool_calls: int | None = None
    """The limit of tool calls in this chat request; ``None`` leaves it to the limits of the tool loop."""
    internal_tool_execution_enabled: bool = True
    """Whether the tool loop runs the tool calls; otherwise the response returns them to the caller."""

    def updated(self, other: "ChatOptions") -> "ChatOptions":
        """Copy with every option of another one that differs from the default."""
        return other if self == _NO_OPTIONS else updated(self, other)


@immutable
class Prompt:
    """The input of one model call: the conversation so far and the offered tools."""

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    options: ChatOptions = field(default_factory=ChatOptions)
    stream: bool = False
    """Whether to stream the text."""
    metadata: Mapping[str, ToolMetadata] = field(default_factory=dict)
    """How the engine treats the tools, by name; not sent to providers."""


@immutable
class TextDelta:
    """The next piece of the answer's text; never reasoning."""

    text: str


@immutable
class Progress:
    """The upstream sent something else than text, such as reasoning or part of a tool call; resets the idle timeout."""

    reasoning: str = ""
    """The next piece of the model's reasoning, if the provider sends it; never part of the text."""
    is_keepalive: bool = False
    """Whether it was no event at all, such as an SSE comment; a :class:`ResilientChatModel` does not pass it on."""


_NO_CONTEXT = ToolContext()
_NO_OPTIONS = ChatOptions()


@immutable
class ChatResponse:
    """The result of a model call, or of a whole chat request with its tool calls."""

    message: AssistantMessage
    finish_reason: str
    """Why the model, or the whole chat request, ended:

    - ``stop``: the answer is complete.
    - ``length``, ``content_filter``: the provider cut the answer; calls in it may be incomplete and do not run.
    - ``incomplete``: the provider ended the answer for a reason that is not known; its calls do not run either.
    - ``tool_calls``: the caller runs the calls.
    - ``approval_required``: a call waits for the user's approval; see :meth:`ChatClient.resume`.
    - ``return_direct``: the answer is the results of tools.
    """
    usage: Usage
    model: str
    """The name of the model as the provider reports it, otherwise as configured."""
    rounds: int = 1
    """Model calls that led to this response."""
    executions: tuple[ToolCallFinished, ...] = ()
    """The tool calls that were executed, in order."""
    history: tuple[Message, ...] = ()
    """The conversation that led to the message, tool rounds included."""
    context: ToolContext = field(default_factory=lambda: _NO_CONTEXT)
    """The tool context, hidden from the model; a paused turn resumes with it."""
    options: ChatOptions = _NO_OPTIONS
    """The options of the model calls; a paused turn resumes with them."""
    paused_response: "ChatResponse | None" = None
    """The response with which the turn paused, if it was resumed after an approval; not counted in this one."""
    provider: str = ""
    """The provider of the model that answered, if there are fallbacks; empty: the client's model."""
    last_usage: Usage | None = None
    """The tokens of the last model call, and so of the conversation; ``None``: there was one call."""
    left_out: frozenset[str] = frozenset()
    """The names of the tools that were not offered, since the provider refuses them; calls of them do not run."""
    approvers: Mapping[str, str] = field(default_factory=dict)
    """The roles of who has to approve waiting calls, by call id; a call without one is confirmed by who asked."""

    @property
    def has_tool_calls(self) -> bool:
        """Whether the message requests tool calls that were not executed."""
        return bool(self.message.tool_calls)

    @property
    def is_empty(self) -> bool:
        """Whether the model ended its message in order, and wrote no text."""
        return self.finish_reason == "stop" and not self.message.text.strip()

    @property
    def waiting_calls(self) -> tuple[ToolCall, ...]:
        """The message's calls that have no result yet: the user has to approve them, or the caller to run them."""
        answered = split_answered(self.history, self.message)[1]
        return tuple([call for call in self.message.tool_calls if call.id not in answered])

    def whole_turn(self) -> "ChatResponse":
        """Copy that counts the whole turn, including the part before it paused."""
        if self.paused_response is None:
            return self
        earlier = self.paused_response.whole_turn()
        # A turn pauses for the calls of its last round, which are executed in the first round after it.
        rounds = earlier.rounds - 1
        executions = [*earlier.executions, *(replace(each, round=each.round + rounds) for each in self.executions)]
        return replace(
            self,
            usage=earlier.usage + self.usage,
            rounds=rounds + self.rounds,
            executions=tuple(executions),
            paused_response=None,
        )

    def with_text(self, text: str) -> "ChatResponse":
        """Copy with another text."""
        return replace(self, message=replace(self.message, text=text))


ModelEvent = TextDelta | Progress
"""What a model emits while it answers."""

EmitModelEvent = Callable[[ModelEvent], Coroutine[Any, Any, None]]
"""Receives events; awaited, so that a slow client slows down the reading of the model's answer (back-pressure)."""


def full_name(provider: str, name: str) -> str:
    """Join the names of provider and model: ``dashscope/qwen-plus``; ``offline`` alone is both."""
    return provider if name == provider else f"{provider}/{name}"


class ChatModel(ABC):
    """A model of a provider: receives tool definitions and returns tool calls, so it cannot execute a tool."""

    provider: str
    """``offline``, ``dashscope`` or ``openai_compatible``."""
    name: str
    """The configured model name."""
    takes_images: bool = False
    """Whether it takes the images of messages; otherwise it gets a note in their place."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be logged if a provider repeats it, such as its key."""
        return ()

    @property
    def adapted(self) -> Mapping[str, Any]:
        """By model, what it is asked otherwise after refusals of its provider."""
        return {}

    async def aclose(self) -> None:  # noqa: B027 - most models hold nothing
        """Release what the model holds, such as its own connections."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @abstractmethod
    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Call the model.

        With ``prompt.stream``, emits the text as :class:`TextDelta` pieces whose concatenation is the text of the
        response, and :class:`Progress` for everything else. Without it, need not emit anything.

        Raises:
            UpstreamError: one of its kinds; also :class:`ContextTooLong`, :class:`ContentFiltered` and
                :class:`NotConfigured` if the provider does not serve the model.
        """


_MAX_CACHED = 64
_PreparedT = TypeVar("_PreparedT")


class PreparedTools(Generic[_PreparedT]):
    """Caches what a provider is sent of recently offered sets of tools."""

    def __init__(self, prepare: Callable[[tuple[ToolDefinition, ...]], _PreparedT]) -> None:
        self._prepare = prepare
        self._cache: dict[int, tuple[tuple[ToolDefinition, ...], _PreparedT]] = {}

    def of(self, tools: tuple[ToolDefinition, ...]) -> _PreparedT:
        """What is sent of these tools."""
        # Keyed by identity, since comparing the tools would cost more for each of them than sending it. An entry keeps
        # its set alive, so that its id cannot be reused for another one.
        key = id(tools)
        if key not in self._cache:
            if len(self._cache) >= _MAX_CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[key] = (tools, self._prepare(tools))
        return self._cache[key][1]
