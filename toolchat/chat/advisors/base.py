"""Advisors: middleware around a chat request, in a chain that ends with the model."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from operator import attrgetter

from toolchat.chat.request import ChatRequest, Emit
from toolchat.errors import ToolchatError, UpstreamInvalid
from toolchat.messages import ToolCall, immutable
from toolchat.models.base import ChatModel, ChatResponse, TextDelta
from toolchat.tool_calling.callback import ToolResult
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.manager import AroundToolCall, ProceedToolCall


class Advisor(ABC):
    """Wraps a chat request; one method serves whole answers and streams."""

    order: int = 0
    """Lower is further out."""
    record_name: str = ""
    """Names the class in the record of a paused turn; by default its module and qualified name.

    Other processes read the record. Set it to the old name when you move a class, so that waiting turns can resume.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "record_name" not in vars(cls):
            cls.record_name = f"{cls.__module__}.{cls.__qualname__}"
        if inspect.isasyncgenfunction(cls.advise):
            raise TypeError(f"{cls.__name__}.advise is a generator: return the response, and send events by emit")

    def applies(self, request: ChatRequest) -> bool:  # noqa: ARG002
        """Whether the request needs this advisor; called once, before the request starts."""
        return True

    @abstractmethod
    async def advise(self, request: ChatRequest, chain: "AdvisorChain", emit: Emit) -> ChatResponse:
        """Pass the request on with ``await chain.proceed(request, emit)``, changed or not, once or several times.

        ``emit`` sends events to the client meanwhile; for whole answers it drops them. Pass another ``emit`` on to
        see or change the events from further in.
        """

    async def around_tool_call(self, call: ToolCall, context: ToolContext, proceed: ProceedToolCall) -> ToolResult:
        """Wrap a tool call that the service runs: return ``await proceed(call, context)``, changed or not.

        It runs within the call's time limit, after limits, authorisation and approval, in resumed turns as well. Errors
        that it raises are treated like the tool's own. ``proceed`` includes the tool's cache and retries; pass a copy
        of the call on to change its arguments. The outermost advisor is the outermost wrapper.
        """
        return await proceed(call, context)


@immutable
class AdvisorChain:
    """The advisors that are still to be called, and the model at the end."""

    advisors: tuple[Advisor, ...]
    model: ChatModel
    on_model_request: Callable[[ChatRequest], None] | None = None
    """Called with each request that reaches the model, after all advisors have changed it."""
    around_tool_call: tuple[AroundToolCall, ...] = ()
    """What all advisors, the outer ones included, wrap around each tool call."""

    @classmethod
    def of(cls, advisors: Iterable[Advisor], model: ChatModel) -> "AdvisorChain":
        """Order the advisors, outermost first."""
        return cls(tuple(sorted(advisors, key=attrgetter("order"))), model)

    def needed_for(self, request: ChatRequest) -> "AdvisorChain":
        """The chain without the advisors that do not apply to a request."""
        # Each advisor in the chain costs two coroutines per request, even if it only passes the request on.
        needed = tuple([each for each in self.advisors if each.applies(request)])
        around = tuple([each.around_tool_call for each in needed if _wraps_tool_calls(type(each))])
        return AdvisorChain(needed, self.model, self.on_model_request, around)

    def copy_after(self, advisor: Advisor) -> "AdvisorChain":
        """The part of the chain after one of its advisors."""
        return replace(self, advisors=self.advisors[self.advisors.index(advisor) + 1 :])

    async def proceed(self, request: ChatRequest, emit: Emit) -> ChatResponse:
        """Pass the request to the next advisor, or to the model; may be called several times.

        Raises:
            UpstreamInvalid: the model returned no response; also what the model raises.
            ToolchatError: an advisor returned no response; also what the advisors raise.
        """
        if not self.advisors:
            if self.on_model_request is not None:
                self.on_model_request(request)
            answer = await self.model.respond(request.prompt(), emit)
            if not isinstance(answer, ChatResponse):
                raise UpstreamInvalid("the chat model ended without a response")
            return answer
        advisor = self.advisors[0]
        rest = AdvisorChain(self.advisors[1:], self.model, self.on_model_request, self.around_tool_call)
        response = await advisor.advise(request, rest, emit)
        if not isinstance(response, ChatResponse):
            raise ToolchatError(f"the advisor {type(advisor).__name__} ended without a response")
        return response


@cache
def _wraps_tool_calls(advisor: type[Advisor]) -> bool:
    return advisor.around_tool_call is not Advisor.around_tool_call


class BaseAdvisor(Advisor):
    """An advisor that only changes the request before, or the answer after."""

    def before(self, request: ChatRequest) -> ChatRequest:
        """Change the request."""
        return request

    def after(self, response: ChatResponse) -> ChatResponse:
        """Change the finished answer; in a stream the client still receives text that is added at its end."""
        return response

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        response = await chain.proceed(self.before(request), emit)
        changed = self.after(response)
        text, before = changed.message.text, response.message.text
        # Any other change comes too late for a stream, whose client has the text.
        if len(text) > len(before) and text.startswith(before):
            await emit(TextDelta(text[len(before) :]))
        return changed
