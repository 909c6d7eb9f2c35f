"""Advisors of the service: the notice about invented data, and the lock of a session during a manual execution."""

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.memory import ChatMemory
from toolchat.chat.request import ChatRequest, Emit
from toolchat.messages import ToolResponseMessage, turn_start
from toolchat.models.base import ChatResponse, TextDelta
from toolchat.tool_calling.context import CONVERSATION_ID


class SessionLockAdvisor(Advisor):
    """Holds the session's lock during a manual execution, so that no turn of the session runs at the same time."""

    # It has the memory's order, since it takes the memory's place.

    order = 200

    def __init__(self, memory: ChatMemory) -> None:
        self._memory = memory

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`; raises as :meth:`ChatMemory.open_turn`."""
        async with self._memory.open_turn(request.context.get(CONVERSATION_ID)):
            return await chain.proceed(request, emit)


class SandboxNoticeAdvisor(Advisor):
    """Adds a notice to every answer that rests on a sandbox's invented data."""

    # Its order is inside the memory, so that the stored conversation has the notice, too.

    order = 210
    notice = "\n\n【演示数据，并非真实结果 / Sandbox data, not real】"

    def applies(self, request: ChatRequest) -> bool:
        """See :meth:`Advisor.applies`."""
        return bool(request.tool_set.sandboxed)

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`."""
        response = await chain.proceed(request, emit)
        if not (_used_sandbox_before(request) or any(each.sandbox for each in response.executions)):
            return response
        await emit(TextDelta(self.notice))
        return response.with_text(response.message.text + self.notice)


def _used_sandbox_before(request: ChatRequest) -> bool:
    """Whether a resumed turn received invented data before it paused."""
    if request.resume is None:
        return False
    turn = request.messages[turn_start(request.messages) :]
    results = (each.responses for each in turn if isinstance(each, ToolResponseMessage))
    return any(each.sandbox for responses in results for each in responses)
