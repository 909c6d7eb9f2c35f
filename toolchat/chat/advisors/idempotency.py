"""A write that is asked for twice happens once (draft-ietf-httpapi-idempotency-key-header)."""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

from pydantic import TypeAdapter

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.request import ChatEvent, ChatRequest, Emit
from toolchat.errors import IdempotencyConflict, SessionBusy, StoreUnavailable, ToolchatError
from toolchat.messages import AssistantMessage, Usage
from toolchat.models.base import ChatResponse, TextDelta
from toolchat.state.base import StateStore, decoding
from toolchat.state.locks import Locks
from toolchat.tool_calling.events import ToolCallFinished, ToolCallStarted

__all__ = ["IdempotencyAdvisor", "IdempotencyStore", "Wish"]

_Answer = tuple[AssistantMessage, str, Usage, str, int, tuple[ToolCallFinished, ...]]
"""What is told of a response again: its first six fields."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A question, and the key that its client has given it."""

    owner: str
    key: str
    question: str

    @property
    def name(self) -> str:
        """What the wish is known by; says neither the owner nor the key.

        Blanks behind a header's value do not belong to it (RFC 9110, section 5.5), and not every server takes them off.
        """
        return _digest(f"{self.owner}\n{self.key.rstrip(' ')}")


@dataclass(frozen=True, slots=True)
class _Entry:
    question: str
    answer: _Answer | None = None
    """``None`` while the first request runs, and for ever when its process died."""


_ENTRY = TypeAdapter(_Entry)


class IdempotencyStore:
    """The answers to wishes, in the state store. Every operation raises ``StoreUnavailable``.

    A wish that was begun and came to no answer is not tried again, since nobody knows what it has done. A store that
    can find that out says so by :meth:`unfinished` and :meth:`give_up`.
    """

    def __init__(self, store: StateStore, *, ttl: float = 86400) -> None:
        self._store = store
        self._locks = Locks(store, wait=0)
        self._ttl = ttl

    async def find(self, wish: Wish) -> ChatResponse | None:
        """The answer that a wish was given; ``None`` when there is none yet.

        Raises:
            ToolchatError: the key was used with another question; see :meth:`reused`.
        """
        entry = await self._entry(wish)
        if entry is None:
            return None
        if entry.question != _digest(wish.question):
            raise self.reused()
        return ChatResponse(*entry.answer) if entry.answer else None

    def reused(self) -> ToolchatError:
        """What a client is told whose key was used with another question."""
        return IdempotencyConflict("this Idempotency-Key was used for something else; use a new one", retryable=False)

    async def unfinished(self, wish: Wish) -> ChatResponse | None:
        """What to answer to a wish without an answer that nobody works on; ``None``: it is tried.

        Raises:
            IdempotencyConflict: it was begun, and may have done what it was to do.
        """
        if await self._entry(wish) is not None:
            detail = "the first request with this Idempotency-Key did not come to its end, and may have had its effect"
            raise IdempotencyConflict(f"{detail}; look, and use a new key to try again", retryable=False)
        return None

    @asynccontextmanager
    async def alone(self, wish: Wish) -> AsyncGenerator[None, None]:
        """See to it that a wish is worked on once at a time, at all replicas.

        Raises:
            IdempotencyConflict: it is being worked on.
        """
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self._locks.hold(_key(wish)))
            except SessionBusy:
                detail = "the first request with this Idempotency-Key still runs"
                raise IdempotencyConflict(detail, retry_after=1) from None
            yield

    async def keep(self, wish: Wish, answer: ChatResponse | None = None) -> None:
        """Note a wish, or its answer."""
        entry = _Entry(_digest(wish.question), _told(answer) if answer else None)
        await self._store.put(_key(wish), _ENTRY.dump_json(entry), ttl=self._ttl)

    async def give_up(self, wish: Wish, *, began: bool) -> None:
        """Forget a wish that came to no answer, so that its key is free again, unless a tool had begun to run."""
        if not began:
            await self._store.delete(_key(wish))

    async def _entry(self, wish: Wish) -> _Entry | None:
        value = await self._store.get(_key(wish))
        with decoding("what is kept under this key cannot be read"):
            return None if value is None else _ENTRY.validate_json(value)


class IdempotencyAdvisor(Advisor):
    """Answers a wish once; every further time it repeats the answer, and neither model nor tool is asked.

    Args:
        store: where the answers are.
        wish: what is asked for.
        known: its answer, where there is one.
    """

    order = -2000
    record_name = "app.chat.idempotency.IdempotencyAdvisor"

    def __init__(self, store: IdempotencyStore, wish: Wish, known: ChatResponse | None) -> None:
        self._store = store
        self._wish = wish
        self._known = known
        self._began = False

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`; raises as the store's methods."""
        known = self._known
        if known is None:
            async with self._store.alone(self._wish):
                known = await self._store.find(self._wish) or await self._store.unfinished(self._wish)
                if known is None:
                    return await self._first(request, chain, emit)
        return await _replayed(known, emit)

    async def _first(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        async def heard(event: ChatEvent) -> None:
            self._began = self._began or isinstance(event, ToolCallStarted)
            await emit(event)

        await self._store.keep(self._wish)
        try:
            answer = await chain.proceed(request, heard)
        except BaseException:
            with suppress(StoreUnavailable):
                await self._store.give_up(self._wish, began=self._began)
            raise
        await self._store.keep(self._wish, answer)
        return answer


async def _replayed(answer: ChatResponse, emit: Emit) -> ChatResponse:
    for execution in answer.executions:
        await emit(ToolCallStarted(execution.call, execution.round))
        await emit(execution)
    await emit(TextDelta(answer.message.text))
    return answer


def _told(answer: ChatResponse) -> _Answer:
    return answer.message, answer.finish_reason, answer.usage, answer.model, answer.rounds, answer.executions


def _key(wish: Wish) -> str:
    return f"once:{wish.name}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
