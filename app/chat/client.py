"""Asking a chat model a question, with tools, in one sentence of code."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from app.chat.advisors import Advisor, AdvisorChain
from app.chat.entity import entity_from, with_format
from app.chat.request import Approval, ChatEvent, ChatRequest, Emit
from app.chat_models.base import ChatModel, ChatOptions, ChatResponse, TextDelta
from app.errors import UpstreamInvalid
from app.messages import Message, SystemMessage, UserMessage
from app.tool_calling.callback import ToolCallback
from app.tool_calling.context import ToolContext
from app.tool_calling.errors import ToolDefinitionError
from app.tool_calling.events import silent
from app.tool_calling.method_callback import MethodToolCallbackProvider
from app.tool_calling.provider import ToolCallbackProvider
from app.tool_calling.resolver import ToolCallbackResolver, same_name

__all__ = ["ChatClient", "PromptSpec"]

_T = TypeVar("_T")
_EVENTS_AHEAD = 4


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
    default_tools: tuple[ToolCallback, ...] = ()
    """Offered with every question, beside those of the question."""
    chain: AdvisorChain = field(init=False, repr=False)
    """The advisors in their order, with the model at the end."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "chain", AdvisorChain.of(self.advisors, self.model))

    def prompt(self, query: str = "") -> "PromptSpec":
        """Begin a question; without a text, a whole conversation follows by :meth:`PromptSpec.messages`."""
        messages: tuple[Message, ...] = (UserMessage(query),) if query else ()
        if self.system_text:
            messages = (SystemMessage(self.system_text), *messages)
        return PromptSpec(self, ChatRequest(messages, self.default_tools))

    def resume(self, paused: ChatResponse, approvals: Mapping[str, Approval]) -> "PromptSpec":
        """Go on with an answer that waits for approval; offer the same tools again.

        Args:
            paused: the answer, with the finish reason ``approval_required``.
            approvals: the decisions by call id; a call without one counts as rejected.
        """
        decided = {call.id: approvals.get(call.id, Approval(False)) for call in paused.message.tool_calls}
        request = ChatRequest(paused.history, self.default_tools, paused=paused.message, approvals=decided)
        return PromptSpec(self, request)


@dataclass(frozen=True, slots=True)
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
        return replace(self, own_advisors=(*self.own_advisors, *advisors))

    def tools(self, *tools: str | ToolCallback | ToolCallbackProvider | object) -> "PromptSpec":
        """Offer tools: names that the resolver finds, callbacks, providers, or objects with marked methods.

        Raises:
            ToolDefinitionError: a name is not known, or two different tools have one name.
        """
        offered = {tool.definition.name: tool for tool in self.request.tools}
        for tool in tools:
            for callback in (tool,) if isinstance(tool, ToolCallback) else self._callbacks(tool):
                other = offered.setdefault(callback.definition.name, callback)
                if other is not callback:
                    raise same_name(callback, other)
        before = self.request
        request = ChatRequest(
            before.messages,
            tuple(offered.values()),
            before.context,
            before.options,
            before.stream,
            before.paused,
            before.approvals,
        )
        return PromptSpec(self.client, request, self.own_advisors)

    def tool_context(self, values: Mapping[str, Any]) -> "PromptSpec":
        """Pass values to the tools behind the model's back."""
        return self._with(context=ToolContext({**self.request.context.values, **values}))

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
            chain = AdvisorChain.of((*chain.advisors, *self.own_advisors), chain.model)
        return chain.needed_for(self.request)

    def _with(self, **changes: Any) -> "PromptSpec":
        return PromptSpec(self.client, replace(self.request, **changes), self.own_advisors)

    def _callbacks(self, tool: object) -> tuple[ToolCallback, ...]:
        if isinstance(tool, str):
            found = self.client.resolver.resolve(tool)
            if found is None:
                known = ", ".join(self.client.resolver.names()) or "none"
                raise ToolDefinitionError(f"no tool has the name {tool}; known: {known}")
            return (found,)
        if isinstance(tool, ToolCallbackProvider):
            return tool.tool_callbacks()
        return MethodToolCallbackProvider(tool).tool_callbacks()


@dataclass(frozen=True, slots=True)
class CallSpec:
    """A question to be answered whole."""

    chain: AdvisorChain
    request: ChatRequest

    async def response(self) -> ChatResponse:
        """The answer with its tool calls, usage and rounds.

        Raises:
            ToolchatError: the question could not be answered; see ``app.errors``.
        """
        return await self.chain.proceed(self.request, silent)

    async def content(self) -> str:
        """The answer's text; raises as :meth:`response`."""
        return (await self.response()).message.text

    async def entity(self, model: type[_T]) -> _T:
        """The answer as an object: the model is told the JSON Schema, and once more where its answer does not fit.

        Args:
            model: a pydantic model, a dataclass or any other type that pydantic validates.

        Raises:
            UpstreamInvalid: the second answer did not fit either; else as :meth:`response`.
        """
        request = replace(self.request, messages=with_format(self.request.messages, model))
        response = await CallSpec(self.chain, request).response()
        entity, fault = entity_from(response.message.text, model)
        if fault:
            told = UserMessage(f"That does not fit: {fault}. Answer with the corrected JSON alone.")
            again = replace(request, messages=(*response.history, response.message, told))
            response = await CallSpec(self.chain, again).response()
            entity, fault = entity_from(response.message.text, model)
        if entity is None:
            raise UpstreamInvalid("the chat model did not answer in the form that it was asked for")
        return entity


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A question to be answered piece by piece."""

    chain: AdvisorChain
    request: ChatRequest

    async def response(self, emit: Emit) -> ChatResponse:
        """The answer as :meth:`CallSpec.response` gives it; ``emit`` is told what happens until then."""
        return await self.chain.proceed(self.request, emit)

    async def events(self) -> AsyncGenerator[ChatEvent | ChatResponse, None]:
        """What happens, then the :class:`ChatResponse`. Raises as :meth:`CallSpec.response`.

        The question is answered in a task of its own, which is at most a few events ahead of whoever iterates; closing
        the iterator (``contextlib.aclosing``) cancels it.
        """
        told: asyncio.Queue[ChatEvent | asyncio.Task[ChatResponse]] = asyncio.Queue()
        room = asyncio.Semaphore(_EVENTS_AHEAD)

        async def tell(event: ChatEvent) -> None:
            await room.acquire()
            told.put_nowait(event)

        answering = asyncio.create_task(self.response(tell))
        answering.add_done_callback(told.put_nowait)
        try:
            while not isinstance(event := await told.get(), asyncio.Task):
                room.release()
                yield event
            yield event.result()
        finally:
            answering.cancel()
            await asyncio.wait({answering})

    async def content(self) -> AsyncGenerator[str, None]:
        """The answer's text, piece by piece."""
        async with aclosing(self.events()) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    yield event.text
