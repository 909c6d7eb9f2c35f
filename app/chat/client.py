"""Asking a chat model a question, with tools, in one sentence of code."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from app.chat.advisors import Advisor, AdvisorChain
from app.chat.request import Approval, ChatRequest
from app.chat.specs import CallSpec, StreamSpec
from app.chat.tool_calling_advisor import ToolCallingAdvisor
from app.chat_models.base import ChatModel, ChatOptions, ChatResponse
from app.immutable import immutable
from app.messages import Message, SystemMessage, UserMessage
from app.tool_calling.callback import ToolCallback
from app.tool_calling.context import ToolContext
from app.tool_calling.errors import ToolDefinitionError
from app.tool_calling.offering import callbacks_of
from app.tool_calling.provider import ToolCallbackProvider
from app.tool_calling.resolver import StaticToolCallbackResolver, ToolCallbackResolver, same_name

__all__ = ["ChatClient", "PromptSpec"]


@dataclass(frozen=True, slots=True)
class ChatClient:
    """Asks a model; should live as long as the application does.

    ::

        answer = await client.prompt("请告诉我现在北京时间几点了").tools("getCityTimeFunction").call().content()
    """

    model: ChatModel
    resolver: ToolCallbackResolver = field(default_factory=lambda: StaticToolCallbackResolver(()))
    """Finds the tools that are offered by their names."""
    advisors: tuple[Advisor, ...] = ()
    """Without a :class:`ToolCallingAdvisor` among them, one with its own defaults is added."""
    system_text: str = ""
    default_tools: tuple[ToolCallback, ...] = ()
    """Offered with every question, beside those of the question."""
    default_options: ChatOptions = field(default_factory=ChatOptions)
    default_context: ToolContext = field(default_factory=ToolContext)
    chain: AdvisorChain = field(init=False, repr=False)
    """The advisors in their order, with the model at the end."""

    def __post_init__(self) -> None:
        loop = () if any(isinstance(each, ToolCallingAdvisor) for each in self.advisors) else (ToolCallingAdvisor(),)
        object.__setattr__(self, "chain", AdvisorChain.of((*self.advisors, *loop), self.model))

    @classmethod
    def create(
        cls,
        model: ChatModel,
        *,
        system_text: str = "",
        tools: Sequence[object] = (),
        advisors: Sequence[Advisor] = (),
        options: ChatOptions | None = None,
        tool_context: Mapping[str, Any] | None = None,
    ) -> "ChatClient":
        """Make a client whose every question begins with these; tools are offered as by :meth:`PromptSpec.tools`.

        Raises:
            ToolDefinitionError: a tool cannot be defined as it is written, or two have one name.
        """
        callbacks = callbacks_of(list(tools))
        client = cls(
            model,
            StaticToolCallbackResolver(callbacks),
            tuple(advisors),
            system_text,
            default_options=options or ChatOptions(),
            default_context=ToolContext(tool_context or {}),
        )
        return replace(client, default_tools=client.prompt().tools(*callbacks).request.tools)

    @classmethod
    @asynccontextmanager
    async def from_env(cls) -> AsyncGenerator["ChatClient", None]:
        """Open a client for the model that the environment and ``.env`` name, as the service does.

        Its connections are closed with the block. Tools of the service's folders are not among its names.

        Raises:
            ConfigurationError: a setting cannot be used, or the provider that is named lacks its key.
        """
        from app.chat.configured import open_parts

        async with open_parts() as parts:
            yield cls(parts.model, advisors=(parts.loop,), system_text=parts.system_text)

    def prompt(self, query: str = "") -> "PromptSpec":
        """Begin a question; without a text, a whole conversation follows by :meth:`PromptSpec.messages`."""
        messages: tuple[Message, ...] = (UserMessage(query),) if query else ()
        if self.system_text:
            messages = (SystemMessage(self.system_text), *messages)
        return PromptSpec(self, ChatRequest(messages, self.default_tools, self.default_context, self.default_options))

    def resume(self, paused: ChatResponse, approvals: Mapping[str, Approval]) -> "PromptSpec":
        """Go on with an answer that waits for approval, with its context and options; offer the same tools again.

        Args:
            paused: the answer, with the finish reason ``approval_required``.
            approvals: the decisions by call id; a call without one counts as rejected.
        """
        decided = {call.id: approvals.get(call.id, Approval(False)) for call in paused.message.tool_calls}
        request = ChatRequest(paused.history, self.default_tools, paused.context, paused.options)
        return PromptSpec(self, replace(request, paused=paused.message, approvals=decided, before=paused))


@immutable
class PromptSpec:
    """A question being put together; every method gives a new one."""

    client: ChatClient
    request: ChatRequest
    own_advisors: tuple[Advisor, ...] = ()

    def system(self, text: str) -> "PromptSpec":
        """Put other instructions above the conversation."""
        rest = tuple(each for each in self.request.messages if not isinstance(each, SystemMessage))
        return self._with(messages=(SystemMessage(text), *rest) if text else rest)

    def messages(self, messages: Sequence[Message]) -> "PromptSpec":
        """Ask with a whole conversation instead of one question."""
        return self._with(messages=tuple(messages))

    def advisors(self, *advisors: Advisor) -> "PromptSpec":
        """Add advisors for this question alone; they take their places by their order."""
        return PromptSpec(self.client, self.request, (*self.own_advisors, *advisors))

    def tools(self, *tools: str | ToolCallback | ToolCallbackProvider | Callable[..., Any] | object) -> "PromptSpec":
        """Offer tools: names that the resolver finds, or whatever :func:`callbacks_of` takes.

        Raises:
            ToolDefinitionError: a name is not known, a tool cannot be defined, or two different tools have one name.
        """
        offered = {tool.definition.name: tool for tool in self.request.tools}
        for tool in tools:
            for callback in (tool,) if isinstance(tool, ToolCallback) else self._callbacks(tool):
                other = offered.setdefault(callback.definition.name, callback)
                if other is not callback:
                    raise same_name(callback, other)
        before = self.request  # field by field: dataclasses.replace costs more than all else here
        request = ChatRequest(
            before.messages,
            tuple(offered.values()),
            before.context,
            before.options,
            before.stream,
            before.paused,
            before.approvals,
            before.before,
        )
        return PromptSpec(self.client, request, self.own_advisors)

    def offering(self, may: Callable[[str], bool]) -> "PromptSpec":
        """Take back the tools of names that may not be used; those that the caller runs are the caller's own."""
        tools = self.request.tools
        kept = tuple(tool for tool in tools if tool.metadata.run_by_caller or may(tool.definition.name))
        return self if len(kept) == len(tools) else self._with(tools=kept)

    def tool_context(self, values: Mapping[str, Any] | None = None, *, value: object = None) -> "PromptSpec":
        """Pass values to the tools behind the model's back, and one typed object for ``ToolContext[...].value``."""
        context = self.request.context.with_values(values or {})
        if value is not None:
            context = ToolContext(context.values, context.history, value)
        return PromptSpec(self.client, self.request.with_context(context), self.own_advisors)

    def options(self, options: ChatOptions) -> "PromptSpec":
        """Set sampling options."""
        return self._with(options=options)

    def call(self) -> "CallSpec":
        """Ask for a whole answer; nothing is sent before it is awaited."""
        return CallSpec(self._chain(), self._request(stream=False))

    def stream(self) -> "StreamSpec":
        """Ask for an answer piece by piece; nothing is sent before it is iterated."""
        return StreamSpec(self._chain(), self._request(stream=True))

    def _request(self, *, stream: bool) -> ChatRequest:
        return self.request if self.request.stream is stream else replace(self.request, stream=stream)

    def _chain(self) -> AdvisorChain:
        chain = self.client.chain
        if self.own_advisors:
            chain = AdvisorChain.of(
                (*_without_replaced(chain.advisors, self.own_advisors), *self.own_advisors), chain.model
            )
        return chain.needed_for(self.request)

    def _with(self, **changes: Any) -> "PromptSpec":
        return PromptSpec(self.client, replace(self.request, **changes), self.own_advisors)

    def _callbacks(self, tool: object) -> tuple[ToolCallback, ...]:
        if isinstance(tool, list | tuple):
            return tuple(callback for each in tool for callback in self._callbacks(each))
        if not isinstance(tool, str):
            return callbacks_of(tool)
        found = self.client.resolver.resolve(tool)
        if found is None:
            known = ", ".join(self.client.resolver.names()) or "none"
            raise ToolDefinitionError(f"no tool has the name {tool}; known: {known}")
        return (found,)


def _without_replaced(advisors: Sequence[Advisor], own: Sequence[Advisor]) -> Sequence[Advisor]:
    """The client's advisors beside those of one question, whose tool loop takes the place of the client's.

    Raises:
        ValueError: the question has two loops: the inner one would hide its calls from the outer one.
    """
    loops = [each for each in own if isinstance(each, ToolCallingAdvisor)]
    if not loops:
        return advisors
    if len(loops) > 1:
        raise ValueError("a question has one tool loop; it was given several ToolCallingAdvisors")
    return [each for each in advisors if not isinstance(each, ToolCallingAdvisor)]
