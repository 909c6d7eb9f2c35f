"""What happens around a question: a chain of advisors, the model at its end."""

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from app.chat.request import ChatRequest, Emit
from app.chat_models.base import ChatModel, ChatResponse, TextDelta

__all__ = ["Advisor", "AdvisorChain", "BaseAdvisor", "SandboxNoticeAdvisor"]


class Advisor(ABC):
    """Wraps a question; one method serves whole answers and streams alike."""

    order: int = 0
    """Lower is further out."""

    def applies(self, request: ChatRequest) -> bool:  # noqa: ARG002
        """Whether the question needs this advisor; asked once, before it begins."""
        return True

    @abstractmethod
    async def advise(self, request: ChatRequest, chain: "AdvisorChain", emit: Emit) -> ChatResponse:
        """Pass the question on by ``await chain.proceed(request, emit)``, as it is or changed, once or several times.

        ``emit`` tells the client what happens meanwhile; whole answers have an ``emit`` that tells nobody. Give
        another one down to see or change what comes from below.
        """


@dataclass(frozen=True, slots=True)
class AdvisorChain:
    """The advisors that are still to come, and the model behind them."""

    advisors: tuple[Advisor, ...]
    model: ChatModel

    @classmethod
    def of(cls, advisors: Iterable[Advisor], model: ChatModel) -> "AdvisorChain":
        """Order the advisors, outermost first."""
        return cls(tuple(sorted(advisors, key=lambda advisor: advisor.order)), model)

    def needed_for(self, request: ChatRequest) -> "AdvisorChain":
        """The chain without the advisors that do not apply to a question."""
        return AdvisorChain(tuple([each for each in self.advisors if each.applies(request)]), self.model)

    def copy_after(self, advisor: Advisor) -> "AdvisorChain":
        """The part of the chain behind one of its advisors."""
        return AdvisorChain(self.advisors[self.advisors.index(advisor) + 1 :], self.model)

    def proceed(self, request: ChatRequest, emit: Emit) -> Coroutine[Any, Any, ChatResponse]:
        """Hand the question to the next advisor, or to the model; may be called several times."""
        if not self.advisors:
            return self.model.respond(request.prompt(), emit)
        return self.advisors[0].advise(request, AdvisorChain(self.advisors[1:], self.model), emit)


class BaseAdvisor(Advisor):
    """An advisor that only changes the question before, or the answer after."""

    def before(self, request: ChatRequest) -> ChatRequest:
        """Change the question."""
        return request

    def after(self, response: ChatResponse) -> ChatResponse:
        """Change the finished answer; text that has been streamed is out already."""
        return response

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`."""
        return self.after(await chain.proceed(self.before(request), emit))


class SandboxNoticeAdvisor(Advisor):
    """Says so under every answer that rests on a sandbox's invented data."""

    order = -1000
    notice = "\n\n【演示数据，并非真实结果 / Sandbox data, not real】"

    def applies(self, request: ChatRequest) -> bool:
        """See :meth:`Advisor.applies`."""
        return any(tool.metadata.sandbox for tool in request.tools)

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`."""
        response = await chain.proceed(request, emit)
        if not any(each.sandbox and each.outcome == "ok" for each in response.executions):
            return response
        await emit(TextDelta(self.notice))
        return response.with_text(response.message.text + self.notice)
