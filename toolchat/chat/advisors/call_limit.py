"""Bounds the tool calls of a whole conversation."""

from dataclasses import replace

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.request import ChatEvent, ChatRequest, Emit
from toolchat.models.base import ChatResponse
from toolchat.state.base import StateStore
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.events import ToolCallFinished

__all__ = ["ConversationCallLimit", "call_count_key"]


def call_count_key(conversation: str) -> str:
    """Under which key the number of a conversation's calls is kept."""
    return f"tool-calls:{conversation}"


class ConversationCallLimit(Advisor):
    """Leaves a question as many tool calls as its conversation has left; what goes beyond is refused like any limit.

    It stands inside the memory, whose lock lets one question of a conversation run at a time, so that none is counted
    twice. A call counts when it has ended, also in a question that fails afterwards; one that was refused does not.
    """

    order = 260
    record_name = "app.chat.call_limit_advisor.ConversationCallLimit"

    def __init__(self, store: StateStore, most: int, *, ttl: float) -> None:
        self._store = store
        self._most = most
        self._ttl = ttl

    def applies(self, request: ChatRequest) -> bool:
        """See :meth:`Advisor.applies`."""
        return bool(request.tools and request.context.get(CONVERSATION_ID))

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`.

        Raises:
            StoreUnavailable: the number cannot be read or kept.
        """
        key = call_count_key(str(request.context.get(CONVERSATION_ID)))
        value = await self._store.get(key) or b"0"
        before = made = int(value) if value.isdigit() else 0

        async def counted(event: ChatEvent) -> None:
            nonlocal made
            made += isinstance(event, ToolCallFinished) and event.error_kind != "limit"
            await emit(event)

        given = request.options.max_tool_calls
        left = max(self._most - before, 0)
        options = replace(request.options, max_tool_calls=left if given is None else min(given, left))
        try:
            return await chain.proceed(replace(request, options=options), counted)
        finally:
            if made != before:
                await self._store.put(key, b"%d" % made, ttl=self._ttl)
