"""A write that is asked for twice happens once (draft-ietf-httpapi-idempotency-key-header)."""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

from pydantic import TypeAdapter

from app.chat.advisors import Advisor, AdvisorChain
from app.chat.request import ChatRequest, Emit
from app.chat_models.base import ChatResponse, TextDelta
from app.errors import IdempotencyConflict, SessionBusy, StoreUnavailable, ValidationFailed
from app.messages import AssistantMessage, Usage
from app.state_store.base import StateStore
from app.state_store.locks import Locks
from app.tool_calling.events import ToolCallFinished, ToolCallStarted
from app.tools.alarms.alarms import AlarmStore

__all__ = ["IdempotencyStore", "OnceAdvisor", "Wish"]

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
        """What the wish is known by; says neither the owner nor the key."""
        return _digest(f"{self.owner}\n{self.key}")


@dataclass(frozen=True, slots=True)
class _Entry:
    question: str
    answer: _Answer | None = None
    """``None`` while the first request runs, and for ever when its process died."""


_ENTRY = TypeAdapter(_Entry)


class IdempotencyStore:
    """The answers to wishes, in the state store. Every operation raises ``StoreUnavailable``."""

    def __init__(self, store: StateStore, alarms: AlarmStore, *, ttl: float = 86400) -> None:
        self._store = store
        self._alarms = alarms
        self._locks = Locks(store, wait=0)
        self._ttl = ttl

    async def find(self, wish: Wish) -> ChatResponse | None:
        """The answer that a wish was given; ``None`` when there is none yet.

        Raises:
            ValidationFailed: the key was used with another question.
        """
        value = await self._store.get(_key(wish))
        if value is None:
            return None
        entry = _ENTRY.validate_json(value)
        if entry.question != _digest(wish.question):
            raise ValidationFailed("Idempotency-Key: was used with another question; use a new key")
        return ChatResponse(*entry.answer) if entry.answer else None

    async def what_was_set(self, wish: Wish) -> ChatResponse | None:
        """The answer to a wish that has set an alarm and come to no other."""
        alarms = await self._alarms.set_by(wish.name)
        times = ", ".join(each.at.isoformat(timespec="seconds") for each in alarms)
        text = f"闹钟已设置 / alarm set: {times}. 首次回答没有完成 / the first answer was not completed."
        return ChatResponse(AssistantMessage(text), "stop", Usage(), "") if alarms else None

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

    async def give_up(self, wish: Wish) -> None:
        """Keep what a wish has set that came to no answer; where that is nothing, its key is free again."""
        if answer := await self.what_was_set(wish):
            await self.keep(wish, answer)
        else:
            await self._store.delete(_key(wish))


class OnceAdvisor(Advisor):
    """Answers a wish once; every further time it repeats the answer, and neither model nor tool is asked.

    A question that fails after it has set an alarm, or whose process dies then, is not asked again: its key repeats
    what was set.

    Args:
        store: where the answers are.
        wish: what is asked for.
        known: its answer, where there is one.
    """

    order = -2000

    def __init__(self, store: IdempotencyStore, wish: Wish, known: ChatResponse | None) -> None:
        self._store = store
        self._wish = wish
        self._known = known

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`; raises as :meth:`IdempotencyStore.find` and :meth:`IdempotencyStore.alone`."""
        known = self._known
        if known is None:
            async with self._store.alone(self._wish):
                known = await self._store.find(self._wish) or await self._store.what_was_set(self._wish)
                if known is None:
                    return await self._first(request, chain, emit)
        return await _replayed(known, emit)

    async def _first(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        await self._store.keep(self._wish)
        try:
            answer = await chain.proceed(request, emit)
        except BaseException:
            with suppress(StoreUnavailable):
                await self._store.give_up(self._wish)
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
