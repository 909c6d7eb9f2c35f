"""A limit on the tool calls of a whole conversation."""

from dataclasses import replace

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.request import ChatEvent, ChatRequest, Emit
from toolchat.models.base import ChatResponse
from toolchat.service.api.conversation_state import ConversationState
from toolchat.state.base import StateStore
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.events import ToolCallFinished


class ConversationCallLimit(Advisor):
    """Gives each request the tool calls that its conversation has left; further calls are refused as by any limit."""

    # Its order is inside the memory, whose lock lets one request of a conversation run at a time: so reading and
    # writing the number needs no lock of its own. A call counts when it has finished, also if its request fails
    # afterwards; a refused call does not count.

    order = 260

    def __init__(self, store: StateStore, limit: int, *, ttl: float) -> None:
        self._counts = ConversationState(store, "tool-calls", ttl=ttl)
        self._limit = limit

    def applies(self, request: ChatRequest) -> bool:
        """See :meth:`Advisor.applies`."""
        return bool(request.tools and request.context.get(CONVERSATION_ID))

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`."""
        conversation = str(request.context.get(CONVERSATION_ID))
        value = await self._counts.get(conversation)
        before = count = int(value) if value.isdigit() else 0

        async def count_calls(event: ChatEvent) -> None:
            nonlocal count
            count += isinstance(event, ToolCallFinished) and event.error_kind != "limit"
            await emit(event)

        requested = request.options.max_tool_calls
        left = max(self._limit - before, 0)
        options = replace(request.options, max_tool_calls=left if requested is None else min(requested, left))
        try:
            return await chain.proceed(replace(request, options=options), count_calls)
        finally:
            if count != before:
                await self._counts.put(conversation, b"%d" % count)
