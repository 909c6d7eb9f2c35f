"""What happens around a question: a chain of advisors, the model at its end."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from operator import attrgetter

from toolchat.chat.request import ChatRequest, Emit
from toolchat.errors import ToolchatError, UpstreamInvalid
from toolchat.messages import ToolResponseMessage, UserMessage, immutable
from toolchat.models.base import ChatModel, ChatResponse, TextDelta

__all__ = ["Advisor", "AdvisorChain", "BaseAdvisor", "SandboxNoticeAdvisor"]


class Advisor(ABC):
    """Wraps a question; one method serves whole answers and streams alike."""

    order: int = 0
    """Lower is further out."""
    record_name: str = ""
    """Names the class in a stored turn; the module's and the class' own name unless it sets another.

    A turn that waits for approval is read by other processes, of other versions as well: a class that moves keeps the
    name that it had.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "record_name" not in vars(cls):
            cls.record_name = f"{cls.__module__}.{cls.__qualname__}"
        if inspect.isasyncgenfunction(cls.advise):
            raise TypeError(
                f"{cls.__name__}.advise is a generator: it must return its response, and tell events to emit"
            )

    def applies(self, request: ChatRequest) -> bool:  # noqa: ARG002
        """Whether the question needs this advisor; asked once, before it begins."""
        return True

    @abstractmethod
    async def advise(self, request: ChatRequest, chain: "AdvisorChain", emit: Emit) -> ChatResponse:
        """Pass the question on by ``await chain.proceed(request, emit)``, as it is or changed, once or several times.

        ``emit`` tells the client what happens meanwhile; whole answers have an ``emit`` that tells nobody. Give
        another one down to see or change what comes from below.
        """


@immutable
class AdvisorChain:
    """The advisors that are still to come, and the model behind them."""

    advisors: tuple[Advisor, ...]
    model: ChatModel
    heard: Callable[[ChatRequest], None] | None = None
    """Told each request as it reaches the model, whatever the advisors between have made of it."""

    @classmethod
    def of(cls, advisors: Iterable[Advisor], model: ChatModel) -> "AdvisorChain":
        """Order the advisors, outermost first."""
        return cls(tuple(sorted(advisors, key=attrgetter("order"))), model)

    def needed_for(self, request: ChatRequest) -> "AdvisorChain":
        """The chain without the advisors that do not apply to a question."""
        return AdvisorChain(tuple([each for each in self.advisors if each.applies(request)]), self.model, self.heard)

    def copy_after(self, advisor: Advisor) -> "AdvisorChain":
        """The part of the chain behind one of its advisors."""
        return AdvisorChain(self.advisors[self.advisors.index(advisor) + 1 :], self.model)

    async def proceed(self, request: ChatRequest, emit: Emit) -> ChatResponse:
        """Hand the question to the next advisor, or to the model; may be called several times.

        Raises:
            UpstreamInvalid: the model ended without a response; also whatever it raises itself.
            ToolchatError: an advisor did; also whatever it raises itself.
        """
        if not self.advisors:
            if self.heard is not None:
                self.heard(request)
            answer = await self.model.respond(request.prompt(), emit)
            if not isinstance(answer, ChatResponse):
                raise UpstreamInvalid("the chat model ended without a response")
            return answer
        advisor = self.advisors[0]
        rest = AdvisorChain(self.advisors[1:], self.model, self.heard)
        response = await advisor.advise(request, rest, emit)
        if not isinstance(response, ChatResponse):
            raise ToolchatError(f"the advisor {type(advisor).__name__} ended without a response")
        return response


class BaseAdvisor(Advisor):
    """An advisor that only changes the question before, or the answer after."""

    def before(self, request: ChatRequest) -> ChatRequest:
        """Change the question."""
        return request

    def after(self, response: ChatResponse) -> ChatResponse:
        """Change the finished answer; of a stream only text that is added at its end still reaches the client."""
        return response

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`."""
        response = await chain.proceed(self.before(request), emit)
        changed = self.after(response)
        text, before = changed.message.text, response.message.text
        if len(text) > len(before) and text.startswith(before):
            await emit(TextDelta(text[len(before) :]))
        return changed


class SandboxNoticeAdvisor(Advisor):
    """Says so under every answer that rests on a sandbox's invented data.

    It stands inside the memory, so that what is kept of the conversation says so, too.
    """

    order = 210
    record_name = "app.chat.advisors.SandboxNoticeAdvisor"
    notice = "\n\n【演示数据，并非真实结果 / Sandbox data, not real】"

    def applies(self, request: ChatRequest) -> bool:
        """See :meth:`Advisor.applies`."""
        return any(tool.metadata.sandbox for tool in request.tools)

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`."""
        response = await chain.proceed(request, emit)
        if not (_invented_before(request) or any(each.sandbox for each in response.executions)):
            return response
        await emit(TextDelta(self.notice))
        return response.with_text(response.message.text + self.notice)


def _invented_before(request: ChatRequest) -> bool:
    """Whether a turn that paused was given invented data before that."""
    if request.paused is None:
        return False
    last = max((place for place, each in enumerate(request.messages) if isinstance(each, UserMessage)), default=0)
    results = (each.responses for each in request.messages[last:] if isinstance(each, ToolResponseMessage))
    return any(each.sandbox for responses in results for each in responses)
