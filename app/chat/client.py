"""Asking a chat model a question, with tools, in one sentence of code."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from app.chat.advisors import Advisor, AdvisorChain
from app.chat.request import ChatEvent, ChatRequest
from app.chat_models.base import ChatModel, ChatOptions, ChatResponse, TextDelta
from app.messages import Message, SystemMessage, UserMessage
from app.tool_calling.callback import ToolCallback
from app.tool_calling.context import ToolContext
from app.tool_calling.errors import ToolDefinitionError
from app.tool_calling.method_callback import MethodToolCallbackProvider
from app.tool_calling.provider import ToolCallbackProvider
from app.tool_calling.resolver import ToolCallbackResolver

__all__ = ["ChatClient", "PromptSpec"]


@dataclass(frozen=True, slots=True)
class ChatClient:
    """Asks a model; should live as long as the application does.

    ::

        answer = await client.prompt("请告诉我现在北京时间几点了").tools("getCityTimeFunction").call().content()
    """

    model: ChatModel
    resolver: ToolCallbackResolver
    advisors: tuple[Advisor, ...] = ()
    system_text: str = ""

    def prompt(self, query: str) -> "PromptSpec":
        """Begin a question."""
        system: tuple[Message, ...] = (SystemMessage(self.system_text),) if self.system_text else ()
        return PromptSpec(self, ChatRequest((*system, UserMessage(query))))


@dataclass(frozen=True, slots=True)
class PromptSpec:
    """A question being put together; every method gives a new one."""

    client: ChatClient
    request: ChatRequest

    def tools(self, *tools: str | ToolCallback | ToolCallbackProvider | object) -> "PromptSpec":
        """Offer tools: names that the resolver finds, callbacks, providers, or objects with marked methods.

        Raises:
            ToolDefinitionError: a name is not known, or two different tools have one name.
        """
        offered = {tool.definition.name: tool for tool in self.request.tools}
        for callback in (each for tool in tools for each in self._callbacks(tool)):
            if offered.setdefault(callback.definition.name, callback) is not callback:
                raise ToolDefinitionError(f"two tools have the name {callback.definition.name}")
        return self._with(tools=tuple(offered.values()))

    def tool_context(self, values: Mapping[str, Any]) -> "PromptSpec":
        """Pass values to the tools behind the model's back."""
        return self._with(context=ToolContext({**self.request.context.values, **values}))

    def options(self, options: ChatOptions) -> "PromptSpec":
        """Set sampling options."""
        return self._with(options=options)

    def call(self) -> "CallSpec":
        """Ask for a whole answer; nothing is sent before it is awaited."""
        return CallSpec(self.client, self._with(stream=False).request)

    def stream(self) -> "StreamSpec":
        """Ask for an answer piece by piece; nothing is sent before it is iterated."""
        return StreamSpec(self.client, self._with(stream=True).request)

    def _with(self, **changes: Any) -> "PromptSpec":
        return replace(self, request=replace(self.request, **changes))

    def _callbacks(self, tool: object) -> tuple[ToolCallback, ...]:
        if isinstance(tool, ToolCallback):
            return (tool,)
        if isinstance(tool, str):
            found = self.client.resolver.resolve(tool)
            if found is None:
                raise ToolDefinitionError(f"no tool has the name {tool}")
            return (found,)
        if isinstance(tool, ToolCallbackProvider):
            return tool.tool_callbacks()
        return MethodToolCallbackProvider(tool).tool_callbacks()


@dataclass(frozen=True, slots=True)
class CallSpec:
    """A question to be answered whole."""

    client: ChatClient
    request: ChatRequest

    async def response(self) -> ChatResponse:
        """The answer with its tool calls, usage and rounds.

        Raises:
            ToolchatError: the question could not be answered; see ``app.errors``.
        """
        answer: ChatResponse | None = None
        async with aclosing(_events(self.client, self.request)) as events:
            async for event in events:
                if isinstance(event, ChatResponse):
                    answer = event
        if answer is None:
            raise AssertionError("a chain of advisors ended without an answer")
        return answer

    async def content(self) -> str:
        """The answer's text; raises as :meth:`response`."""
        return (await self.response()).message.text


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A question to be answered piece by piece."""

    client: ChatClient
    request: ChatRequest

    def events(self) -> AsyncGenerator[ChatEvent, None]:
        """Everything that happens; the :class:`ChatResponse` comes last. Raises as :meth:`CallSpec.response`."""
        return _events(self.client, self.request)

    async def content(self) -> AsyncGenerator[str, None]:
        """The answer's text, piece by piece."""
        async with aclosing(self.events()) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    yield event.text


def _events(client: ChatClient, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
    return AdvisorChain.of(client.advisors, client.model).proceed(request)
