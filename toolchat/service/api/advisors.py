"""Advisors of the service: the notice about invented data, the lock of a session, and the limit of its calls."""

from dataclasses import replace

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.memory import ChatMemory, current_lock
from toolchat.chat.request import ChatEvent, ChatRequest, Emit
from toolchat.errors import SessionBusy
from toolchat.messages import ToolResponseMessage, turn_start
from toolchat.models.base import ChatResponse, TextDelta
from toolchat.service.access.principals import session_ttl
from toolchat.service.api.dependencies import belonging_to
from toolchat.state.base import LockLost, StateStore
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.events import ToolCallFinished


class SessionLockAdvisor(Advisor):
    """Holds the session's lock during a manual execution, so that no turn of the session runs at the same time."""

    # It has the memory's order, since it takes the memory's place.

    order = 200

    def __init__(self, memory: ChatMemory) -> None:
        self._memory = memory

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        async with self._memory.open_turn(request.context.get(CONVERSATION_ID)):
            return await chain.proceed(request, emit)


class SandboxNoticeAdvisor(Advisor):
    """Adds a notice to every answer that rests on a sandbox's invented data."""

    # Its order is inside the memory, so that the stored conversation has the notice, too.

    order = 210
    notice = "\n\n【演示数据，并非真实结果 / Sandbox data, not real】"

    def applies(self, request: ChatRequest) -> bool:
        return bool(request.tool_set.sandboxed)

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
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


class ConversationState:
    """One value for each conversation, in the state store, deleted with it."""

    # A process may stall during a turn for so long that its lock expires and another request of the conversation is
    # answered. So each change carries the lock of the turn: what comes too late is refused, as the turn itself will be.

    def __init__(self, store: StateStore, kind: str, *, ttl: float) -> None:
        self._store = store
        self._kind = kind
        self._ttl = ttl

    def key(self, conversation: str) -> str:
        """The key of a conversation's value in the state store."""
        return f"{self._kind}:{conversation}"

    async def get(self, conversation: str) -> bytes:
        """The value; empty if there is none. Raises ``StoreUnavailable``."""
        return await self._store.get(self.key(conversation)) or b""

    async def put(self, conversation: str, value: bytes) -> None:
        """Store the value; an empty one is deleted."""
        key, lock = self.key(conversation), current_lock.get()
        try:
            if value:
                await self._store.put(
                    key, value, ttl=session_ttl(self._ttl), lock=lock, lists=belonging_to(conversation)
                )
            else:
                await self._store.delete(key, lock=lock)
        except LockLost:
            raise SessionBusy("another request took the session over; this one changed nothing") from None


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
        return bool(request.tools and request.context.get(CONVERSATION_ID))

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
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
