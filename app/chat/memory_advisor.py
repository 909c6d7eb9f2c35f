"""Puts a conversation's memory before its next question, and the answer into it."""

import time

from app.chat.advisors import Advisor, AdvisorChain
from app.chat.memory import ChatMemory, OpenTurn
from app.chat.request import ChatRequest, Emit
from app.chat.trace import trace_of
from app.chat_models.base import ChatResponse
from app.messages import SystemMessage, UserMessage
from app.tool_calling.context import CONVERSATION_ID

__all__ = ["MemoryAdvisor"]


class MemoryAdvisor(Advisor):
    """Gives the model the turns before, and keeps the turn once it has its answer.

    It stands outside the tool loop, so that a turn is kept whole or not at all: one that fails, is cancelled or waits
    for approval leaves the conversation as it was. A turn that goes on after approval is kept at its end. An answer
    that the provider's moderation cut is not kept: given again, it would have every later question refused, too.
    """

    order = 200

    def __init__(self, memory: ChatMemory) -> None:
        self._memory = memory

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`.

        Raises:
            SessionBusy: another request of the conversation is being answered.
            StoreUnavailable: the memory cannot be read or written.
        """
        conversation = request.context.get(CONVERSATION_ID)
        if not conversation:
            raise AssertionError("a question with a memory needs a conversation id in its context")
        began = time.perf_counter()
        async with self._memory.open_turn(conversation) as turn:
            begin, request = _with_history(request, turn)
            response = await chain.proceed(request, emit)
            if _is_worth_keeping(response):
                spent = (time.perf_counter() - began) * 1000
                trace = trace_of(response, chain.model.provider, spent)
                await turn.keep((*response.history[begin:], response.message), trace)
            return response


def _is_worth_keeping(response: ChatResponse) -> bool:
    return not response.has_tool_calls and response.finish_reason != "content_filter"


def _with_history(request: ChatRequest, turn: OpenTurn) -> tuple[int, ChatRequest]:
    """The request with the turns before, and where in it the running turn begins."""
    messages = request.messages
    if request.paused is not None:
        return max(i for i, message in enumerate(messages) if isinstance(message, UserMessage)), request
    system = [message for message in messages if isinstance(message, SystemMessage)]
    running = [message for message in messages if not isinstance(message, SystemMessage)]
    before = (*system, *turn.history(running))
    return len(before), request.with_messages((*before, *running))
