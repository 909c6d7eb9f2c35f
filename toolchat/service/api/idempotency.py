"""Idempotency keys: a repeated request returns the first answer (draft-ietf-httpapi-idempotency-key-header)."""

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
from toolchat.service.api.dependencies import of_person, parts_of
from toolchat.state.base import RECORD_VERSION, Lock, LockLost, RecordVersion, StateStore, decoding
from toolchat.state.locks import Locks
from toolchat.tool_calling.events import ToolCallFinished, ToolCallStarted

_Answer = tuple[AssistantMessage, str, Usage, str, int, tuple[ToolCallFinished, ...]]
"""The stored part of a response: its first six fields."""


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A chat request with the idempotency key that its client sent."""

    owner: str
    key: str
    question: str
    conversation: str = ""
    """The conversation of the request, if it has one."""

    @property
    def name(self) -> str:
        """The request's name in the store, which reveals neither the owner nor the key."""
        # Blanks after a header's value do not belong to it (RFC 9110, section 5.5), but not every server strips them.
        return _digest(f"{self.owner}\n{self.key.rstrip(' ')}")


@dataclass(frozen=True, slots=True)
class _Entry:
    question: str
    answer: _Answer | None = None
    """``None`` while the first request runs, and for ever if its process died."""
    version: RecordVersion = RECORD_VERSION


_ENTRY = TypeAdapter(_Entry)


class IdempotencyStore:
    """Answers by idempotency key, in the state store. Every operation raises ``StoreUnavailable``."""

    # A request that started but stored no answer is not repeated, since its effects are unknown. A store that can find
    # them out overrides :meth:`check_incomplete` and :meth:`release`.

    def __init__(self, store: StateStore, *, ttl: float = 86400) -> None:
        self._store = store
        self._locks = Locks(store, wait=0)
        self._ttl = ttl

    async def find(self, idempotent: IdempotentRequest) -> ChatResponse | None:
        """The stored answer to a request; ``None`` if there is none yet."""
        entry = await self._entry(idempotent)
        if entry is None:
            return None
        if entry.question != _digest(idempotent.question):
            raise self.reused()
        return ChatResponse(*entry.answer) if entry.answer else None

    def reused(self) -> ToolchatError:
        """The error for a key that was used with another question."""
        return IdempotencyConflict("this Idempotency-Key was used for something else; use a new one", retryable=False)

    async def check_incomplete(self, idempotent: IdempotentRequest) -> ChatResponse | None:
        """The answer to a request that started earlier and stored no answer; ``None`` allows it to run."""
        if await self._entry(idempotent) is not None:
            detail = "the first request with this Idempotency-Key did not finish and may have taken effect"
            raise IdempotencyConflict(f"{detail}. Check, then retry with a new key.", retryable=False)
        return None

    @asynccontextmanager
    async def lock(self, idempotent: IdempotentRequest) -> AsyncGenerator[Lock, None]:
        """Hold the request's lock, so that one replica at a time answers it."""
        # A replica that stalls may lose it to another one. So each change carries the lock, and one that comes too late
        # raises ``LockLost``.
        async with AsyncExitStack() as stack:
            try:
                lock = await stack.enter_async_context(self._locks.hold(_key(idempotent)))
            except SessionBusy:
                raise _still_runs() from None
            yield lock

    async def save(self, idempotent: IdempotentRequest, lock: Lock, answer: ChatResponse | None = None) -> None:
        """Store that a request has started, or its answer."""
        entry = _Entry(_digest(idempotent.question))
        if (it := answer) is not None:
            stored = it.message, it.finish_reason, it.usage, it.model, it.rounds, it.executions
            entry = _Entry(entry.question, stored)
        lists = (*parts_of(idempotent.conversation), *of_person(idempotent.owner))
        await self._store.put(_key(idempotent), _ENTRY.dump_json(entry), ttl=self._ttl, lock=lock, lists=lists)

    async def release(self, idempotent: IdempotentRequest, lock: Lock, *, began: bool) -> None:
        """Free the key of a request that failed, unless one of its tools had started."""
        if not began:
            await self._store.delete(_key(idempotent), lock=lock)

    async def _entry(self, idempotent: IdempotentRequest) -> _Entry | None:
        value = await self._store.get(_key(idempotent))
        with decoding("the record of this key cannot be read"):
            return None if value is None else _ENTRY.validate_json(value)


class IdempotencyAdvisor(Advisor):
    """Answers a request once; repetitions get the stored answer without a model call or a tool call."""

    order = -2000

    def __init__(self, store: IdempotencyStore, idempotent: IdempotentRequest, known: ChatResponse | None) -> None:
        self._store = store
        self._idempotent = idempotent
        self._known = known

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        known = self._known
        if known is None:
            async with self._store.lock(self._idempotent) as lock:
                # Another replica may have answered between the caller's look-up and the lock.
                known = await self._store.find(self._idempotent)
                known = known or await self._store.check_incomplete(self._idempotent)
                if known is None:
                    return await self._answer(request, chain, emit, lock)
        return await _replay(known, emit)

    async def _answer(self, request: ChatRequest, chain: AdvisorChain, emit: Emit, lock: Lock) -> ChatResponse:
        began = False

        async def watch(event: ChatEvent) -> None:
            nonlocal began
            began = began or isinstance(event, ToolCallStarted)
            await emit(event)

        # Stored before anything runs: if this process dies, a repetition finds an entry without an answer and knows
        # that a tool may have run.
        try:
            await self._store.save(self._idempotent, lock)
        except LockLost:
            raise _still_runs() from None
        try:
            answer = await chain.proceed(request, watch)
        except BaseException:
            # No tool started, so nothing happened: the client may try again with the same key.
            with suppress(StoreUnavailable, LockLost):
                await self._store.release(self._idempotent, lock, began=began)
            raise
        # A request that has taken the lock over found the entry and did not run. So this is the only answer, although a
        # repeated request gets the error that the first one did not finish.
        with suppress(LockLost):
            await self._store.save(self._idempotent, lock, answer)
        return answer


async def _replay(answer: ChatResponse, emit: Emit) -> ChatResponse:
    for execution in answer.executions:
        await emit(ToolCallStarted(execution.call, execution.round))
        await emit(execution)
    await emit(TextDelta(answer.message.text))
    return answer


def _still_runs() -> IdempotencyConflict:
    return IdempotencyConflict("the first request with this Idempotency-Key still runs", retry_after=1)


def _key(idempotent: IdempotentRequest) -> str:
    return f"once:{idempotent.name}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
