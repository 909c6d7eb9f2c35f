"""The chat client: builds chat requests, sends them through the advisors, and returns answers whole or as streams."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.advisors.tool_loop import ToolCallingAdvisor
from toolchat.chat.request import Approval, ChatEvent, ChatRequest, Emit, Resume
from toolchat.errors import UpstreamInvalid
from toolchat.messages import Message, SystemMessage, UserMessage, immutable, turn_start
from toolchat.models.base import ChatModel, ChatOptions, ChatResponse, TextDelta
from toolchat.tool_calling.callback import (
    StaticToolCallbackResolver,
    ToolCallback,
    ToolCallbackProvider,
    ToolCallbackResolver,
    ToolSet,
)
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.events import discard_event
from toolchat.tool_calling.function_callback import to_callbacks

_T = TypeVar("_T")


def request_format(messages: Sequence[Message], model: type[Any]) -> tuple[Message, ...]:
    """The conversation with a request for an answer of that type, as JSON Schema, below its last user message."""
    schema = to_json(TypeAdapter(model).json_schema()).decode()
    instruction = f"Answer with JSON alone, without a code fence, that fits this JSON Schema: {schema}"
    last = turn_start(messages)
    question = messages[last] if messages else None
    if not isinstance(question, UserMessage):
        return (*messages, UserMessage(instruction))
    return (*messages[:last], UserMessage(f"{question.text}\n\n{instruction}"), *messages[last + 1 :])


def parse_entity(text: str, model: type[_T]) -> tuple[_T | None, str]:
    """Parse an answer as JSON; a code fence around it is ignored.

    Returns:
        The object and an empty text, or ``None`` and the faults in words for the model.
    """
    # Models add a fence although the prompt forbids it.
    fenced = re.search(r"```(?:json)?\s*\n(.*?)```", text, re.DOTALL)
    adapter: TypeAdapter[_T] = TypeAdapter(model)
    try:
        return adapter.validate_json(fenced[1] if fenced else text.strip()), ""
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)[:5]
        return None, "; ".join(f"{'.'.join(map(str, each['loc'])) or 'answer'}: {each['msg']}" for each in faults)


_EVENTS_AHEAD = 4
"""Events that a stream produces before its consumer has read them."""


@immutable
class CallSpec:
    """A chat request whose answer is returned whole."""

    chain: AdvisorChain
    request: ChatRequest

    def response(self) -> Coroutine[Any, Any, ChatResponse]:
        """The answer with its tool calls, usage and rounds.

        Raises:
            ToolchatError: the request failed; see ``toolchat.errors``.
        """
        return self.chain.proceed(self.request, discard_event)

    async def content(self) -> str:
        """The answer's text; raises as :meth:`response`."""
        return (await self.response()).message.text

    async def entity(self, model: type[_T]) -> _T:
        """The answer as an object. The model receives the JSON Schema, and one more try if its answer does not fit.

        Args:
            model: a pydantic model, a dataclass or any other type that pydantic validates.

        Raises:
            UpstreamInvalid: the second answer did not fit either; also as :meth:`response`.
        """
        request = replace(self.request, messages=request_format(self.request.messages, model))
        response = await CallSpec(self.chain, request).response()
        entity, fault = parse_entity(response.message.text, model)
        if fault:
            correction = UserMessage(f"That does not fit: {fault}. Answer with the corrected JSON alone.")
            again = replace(request, messages=(*response.history, response.message, correction))
            response = await CallSpec(self.chain, again).response()
            entity, fault = parse_entity(response.message.text, model)
        if entity is None:
            raise UpstreamInvalid("the chat model did not answer in the requested format")
        return entity


@immutable
class StreamSpec:
    """A chat request whose answer is streamed."""

    chain: AdvisorChain
    request: ChatRequest

    def response(self, emit: Emit) -> Coroutine[Any, Any, ChatResponse]:
        """The answer as from :meth:`CallSpec.response`; ``emit`` receives the events before it."""
        return self.chain.proceed(self.request, emit)

    async def events(self) -> AsyncGenerator[ChatEvent | ChatResponse, None]:
        """The events, then the :class:`ChatResponse`. Raises as :meth:`CallSpec.response`.

        The request runs in its own task, at most a few events ahead of the consumer; closing the iterator
        (``contextlib.aclosing``) cancels it.
        """
        # The queue is bounded by a semaphore rather than by its size: the task's end must go in without waiting.
        queue: asyncio.Queue[ChatEvent | asyncio.Task[ChatResponse]] = asyncio.Queue()
        room = asyncio.Semaphore(_EVENTS_AHEAD)

        async def put(event: ChatEvent) -> None:
            await room.acquire()
            queue.put_nowait(event)

        running = asyncio.create_task(self.response(put))
        running.add_done_callback(queue.put_nowait)
        try:
            while not isinstance(event := await queue.get(), asyncio.Task):
                room.release()
                yield event
            yield event.result()
        finally:
            # Waited for, so that no tool of this request runs after the iterator is closed.
            running.cancel()
            await asyncio.wait({running})

    async def content(self) -> AsyncGenerator[str, None]:
        """The pieces of the answer's text."""
        async with aclosing(self.events()) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    yield event.text


@dataclass(frozen=True, slots=True)
class ChatClient:
    """Sends chat requests to a model; should live as long as the application does.

    ::

        answer = await client.prompt("请告诉我现在北京时间几点了").tools("getCityTimeFunction").call().content()
    """

    model: ChatModel
    resolver: ToolCallbackResolver = field(default_factory=lambda: StaticToolCallbackResolver(()))
    """Finds tools that a request names."""
    advisors: tuple[Advisor, ...] = ()
    """If none is a :class:`ToolCallingAdvisor`, one with default settings is added."""
    system_text: str = ""
    default_tools: tuple[ToolCallback, ...] = ()
    """Offered with every request, beside the request's own."""
    default_options: ChatOptions = field(default_factory=ChatOptions)
    default_context: ToolContext = field(default_factory=ToolContext)
    chain: AdvisorChain = field(init=False, repr=False)
    """The advisors in their order, with the model at the end."""
    _system: tuple[SystemMessage, ...] = field(init=False, repr=False)
    """The same message in each request: its JSON is written once."""

    def __post_init__(self) -> None:
        loop = () if any(isinstance(each, ToolCallingAdvisor) for each in self.advisors) else (ToolCallingAdvisor(),)
        object.__setattr__(self, "chain", AdvisorChain.of((*self.advisors, *loop), self.model))
        object.__setattr__(self, "_system", (SystemMessage(self.system_text),) if self.system_text else ())

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
        """Create a client with defaults for every request; ``tools`` are as in :meth:`PromptSpec.tools`.

        Raises:
            ToolDefinitionError: a tool cannot be defined, or two have the same name.
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

    def prompt(self, query: str | Sequence[Message] = "", images: Sequence[str] = ()) -> "PromptSpec":
        """Start a request with a question and its images, or a whole conversation that has its own instructions."""
        if isinstance(query, str):
            asked = (UserMessage(query, tuple(images)),) if query else ()
            messages: tuple[Message, ...] = (*self._system, *asked)
        else:
            messages = tuple(query)
        return PromptSpec(self, ChatRequest(messages, self.default_tools, self.default_context, self.default_options))

    def resume(self, paused: ChatResponse, approvals: Mapping[str, Approval]) -> "PromptSpec":
        """Resume a turn that waits for approval, with its context and options; offer the same tools again.

        Args:
            paused: the response with the finish reason ``approval_required``.
            approvals: the decisions by call id; a call without one counts as rejected.
        """
        decided = {call.id: approvals.get(call.id, Approval(False)) for call in paused.waiting_calls}
        resume = Resume(paused.message, decided, paused)
        request = ChatRequest(paused.history, self.default_tools, paused.context, paused.options, resume=resume)
        return PromptSpec(self, request)


@immutable
class PromptSpec:
    """A chat request under construction; every method returns a new one."""

    client: ChatClient
    request: ChatRequest
    own_advisors: tuple[Advisor, ...] = ()

    def system(self, text: str) -> "PromptSpec":
        """Replace the instructions at the top of the conversation."""
        rest = tuple(each for each in self.request.messages if not isinstance(each, SystemMessage))
        return self._with(messages=(SystemMessage(text), *rest) if text else rest)

    def messages(self, messages: Sequence[Message]) -> "PromptSpec":
        """Use a whole conversation instead of one user message."""
        return PromptSpec(self.client, self.request.with_messages(tuple(messages)), self.own_advisors)

    def advisors(self, *advisors: Advisor) -> "PromptSpec":
        """Add advisors for this request only; their order places them among the client's."""
        return PromptSpec(self.client, self.request, (*self.own_advisors, *advisors))

    def tools(self, *tools: str | ToolCallback | ToolCallbackProvider | Callable[..., Any] | object) -> "PromptSpec":
        """Offer tools: names that the resolver finds, or anything that :func:`to_callbacks` accepts, sets included.

        Raises:
            ToolDefinitionError: a name is unknown, a tool cannot be defined, or two tools have the same name.
        """
        if len(tools) == 1 and isinstance(tools[0], ToolSet) and not self.request.tools:
            offered = tools[0]
        else:
            callbacks = [callback for tool in tools for callback in self._callbacks(tool)]
            offered = ToolSet.unique((*self.request.tools, *callbacks))
        return PromptSpec(self.client, self.request.with_tools(offered), self.own_advisors)

    def filter_tools(self, is_allowed: Callable[[str], bool]) -> "PromptSpec":
        """Keep only the tools whose names are allowed, and all client tools, which the client itself runs."""
        tools = self.request.tool_set
        allowed = [name for name, each in tools.metadata.items() if each.run_by_caller or is_allowed(name)]
        if len(allowed) == len(tools):
            return self
        return PromptSpec(self.client, self.request.with_tools(tools.subset(tuple(allowed))), self.own_advisors)

    def tool_context(self, values: Mapping[str, Any] | None = None, *, value: object = None) -> "PromptSpec":
        """Pass values to the tools, hidden from the model, and one typed object for ``ToolContext[...].value``."""
        context = self.request.context.with_values(values or {})
        if value is not None:
            context = context.with_value(value)
        return PromptSpec(self.client, self.request.with_context(context), self.own_advisors)

    def options(self, options: ChatOptions) -> "PromptSpec":
        """Set options; those that are ``None`` stay as the client has them."""
        return self._with(options=self.request.options.updated(options))

    def call(self) -> "CallSpec":
        """Request a whole answer; nothing is sent before it is awaited."""
        return CallSpec(self._chain(), self._request(stream=False))

    def stream(self) -> "StreamSpec":
        """Request a stream; nothing is sent before it is iterated."""
        return StreamSpec(self._chain(), self._request(stream=True))

    def _request(self, *, stream: bool) -> ChatRequest:
        return self.request if self.request.stream is stream else replace(self.request, stream=stream)

    def _chain(self) -> AdvisorChain:
        chain = self.client.chain
        if self.own_advisors:
            loops = [each for each in self.own_advisors if isinstance(each, ToolCallingAdvisor)]
            if len(loops) > 1:  # the inner one would hide its calls from the outer one
                raise ValueError("a chat request has one tool loop, but several ToolCallingAdvisors were added")
            others = chain.advisors
            if loops:
                others = tuple([each for each in others if not isinstance(each, ToolCallingAdvisor)])
            chain = AdvisorChain.of((*others, *self.own_advisors), chain.model)
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
