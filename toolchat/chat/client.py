"""Asking a chat model a question, with tools, in one sentence of code."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.advisors.tool_calling import ToolCallingAdvisor
from toolchat.chat.request import Approval, ChatEvent, ChatRequest, Emit, Resume
from toolchat.errors import UpstreamInvalid
from toolchat.messages import Message, SystemMessage, UserMessage, immutable
from toolchat.models.base import ChatModel, ChatOptions, ChatResponse, TextDelta
from toolchat.tool_calling.callback import (
    StaticToolCallbackResolver,
    ToolCallback,
    ToolCallbackProvider,
    ToolCallbackResolver,
    duplicate_name_error,
)
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.events import silent
from toolchat.tool_calling.function_callback import to_callbacks

__all__ = ["CallSpec", "ChatClient", "PromptSpec", "StreamSpec", "parse_entity", "request_format"]


_T = TypeVar("_T")


def request_format(messages: Sequence[Message], model: type[Any]) -> tuple[Message, ...]:
    """The conversation with the JSON Schema of the wanted answer under its last question."""
    schema = to_json(TypeAdapter(model).json_schema()).decode()
    wish = f"Answer with JSON alone, without a code fence, that fits this JSON Schema: {schema}"
    last = max((place for place, each in enumerate(messages) if isinstance(each, UserMessage)), default=None)
    if last is None:
        return (*messages, UserMessage(wish))
    asked = messages[last]
    text = asked.text if isinstance(asked, UserMessage) else ""
    return (*messages[:last], UserMessage(f"{text}\n\n{wish}"), *messages[last + 1 :])


def parse_entity(text: str, model: type[_T]) -> tuple[_T | None, str]:
    """Read an answer; a code fence around it is taken off.

    Returns:
        The object and an empty text, or nothing and what is wrong in words for the model.
    """
    fenced = re.search(r"```(?:json)?\s*\n(.*?)```", text, re.DOTALL)
    adapter: TypeAdapter[_T] = TypeAdapter(model)
    try:
        return adapter.validate_json(fenced[1] if fenced else text.strip()), ""
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)[:5]
        return None, "; ".join(f"{'.'.join(map(str, each['loc'])) or 'answer'}: {each['msg']}" for each in faults)


_EVENTS_AHEAD = 4


@immutable
class CallSpec:
    """A question to be answered whole."""

    chain: AdvisorChain
    request: ChatRequest

    def response(self) -> Coroutine[Any, Any, ChatResponse]:
        """The answer with its tool calls, usage and rounds.

        Raises:
            ToolchatError: the question could not be answered; see ``toolchat.errors``.
        """
        return self.chain.proceed(self.request, silent)

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
        request = replace(self.request, messages=request_format(self.request.messages, model))
        response = await CallSpec(self.chain, request).response()
        entity, fault = parse_entity(response.message.text, model)
        if fault:
            told = UserMessage(f"That does not fit: {fault}. Answer with the corrected JSON alone.")
            again = replace(request, messages=(*response.history, response.message, told))
            response = await CallSpec(self.chain, again).response()
            entity, fault = parse_entity(response.message.text, model)
        if entity is None:
            raise UpstreamInvalid("the chat model did not answer in the form that it was asked for")
        return entity


@immutable
class StreamSpec:
    """A question to be answered piece by piece."""

    chain: AdvisorChain
    request: ChatRequest

    def response(self, emit: Emit) -> Coroutine[Any, Any, ChatResponse]:
        """The answer as :meth:`CallSpec.response` gives it; ``emit`` is told what happens until then."""
        return self.chain.proceed(self.request, emit)

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
        callbacks = to_callbacks(list(tools))
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
        from app.composition.models import open_parts

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
        resume = Resume(paused.message, decided, paused)
        request = ChatRequest(paused.history, self.default_tools, paused.context, paused.options, resume=resume)
        return PromptSpec(self, request)


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
        """Offer tools: names that the resolver finds, or whatever :func:`to_callbacks` takes.

        Raises:
            ToolDefinitionError: a name is not known, a tool cannot be defined, or two different tools have one name.
        """
        offered = {tool.definition.name: tool for tool in self.request.tools}
        for tool in tools:
            for callback in (tool,) if isinstance(tool, ToolCallback) else self._callbacks(tool):
                other = offered.setdefault(callback.definition.name, callback)
                if other is not callback:
                    raise duplicate_name_error(callback, other)
        request = self.request.with_tools(tuple(offered.values()))
        return PromptSpec(self.client, request, self.own_advisors)

    def filter_tools(self, may: Callable[[str], bool]) -> "PromptSpec":
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
            return to_callbacks(tool)
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
