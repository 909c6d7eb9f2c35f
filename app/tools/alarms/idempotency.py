"""A write that is asked for twice happens once (draft-ietf-httpapi-idempotency-key-header)."""

import hashlib
import time
from collections import OrderedDict
from dataclasses import dataclass

from app.chat.advisors import Advisor, AdvisorChain
from app.chat.request import ChatRequest, Emit
from app.chat_models.base import ChatResponse, TextDelta
from app.errors import IdempotencyConflict, Overloaded, ValidationFailed
from app.messages import AssistantMessage, Usage
from app.tool_calling.events import ToolCallStarted
from app.tools.alarms.alarms import AlarmOrder

__all__ = ["IdempotencyStore", "OnceAdvisor"]

_Key = tuple[str, str]


@dataclass(slots=True)
class _Entry:
    question: str
    expires_at: float
    answer: ChatResponse | None = None
    """``None`` while the first request still runs."""


class IdempotencyStore:
    """Answers by owner and key, in this process; bounded in number and time, the oldest finished ones give way."""

    def __init__(self, *, ttl: float = 86400, limit: int = 1000) -> None:
        self._ttl = ttl
        self._limit = limit
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()

    def find(self, key: _Key, question: str) -> ChatResponse | None:
        """The answer that was given under a key; ``None`` when the key is new.

        Raises:
            ValidationFailed: the key was used with another question.
            IdempotencyConflict: the first request under the key still runs.
        """
        entry = self._entries.get(key)
        if entry is None or (entry.answer is not None and entry.expires_at < time.monotonic()):
            return None
        if entry.question != _digest(question):
            raise ValidationFailed("Idempotency-Key: was used with another question; use a new key")
        if entry.answer is None:
            raise IdempotencyConflict("the first request with this Idempotency-Key still runs", retry_after=1)
        return entry.answer

    def begin(self, key: _Key, question: str) -> None:
        """Reserve a key that :meth:`find` did not find.

        Raises:
            Overloaded: every entry belongs to a request that still runs.
        """
        self._entries.pop(key, None)
        if len(self._entries) >= self._limit:
            oldest = next((each for each, entry in self._entries.items() if entry.answer is not None), None)
            if oldest is None:
                raise Overloaded("too many requests with an Idempotency-Key are running", retry_after=1)
            del self._entries[oldest]
        self._entries[key] = _Entry(_digest(question), time.monotonic() + self._ttl)

    def end(self, key: _Key, answer: ChatResponse | None) -> None:
        """Keep the answer of a key; without one nothing has happened, and the key is free again."""
        if answer is None:
            self._entries.pop(key, None)
        else:
            self._entries[key].answer = answer


class OnceAdvisor(Advisor):
    """Answers a question once per key; every further time it repeats the answer, and neither model nor tool is asked.

    A question that fails after it has set an alarm is not asked again: its key then repeats what was set.
    """

    order = -2000

    def __init__(self, store: IdempotencyStore, key: _Key, question: str, order: AlarmOrder) -> None:
        self._store = store
        self._key = key
        self._question = question
        self._order = order

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`; raises as :meth:`IdempotencyStore.find` and :meth:`IdempotencyStore.begin`."""
        known = self._store.find(self._key, self._question)
        if known is not None:
            return await _replayed(known, emit)
        self._store.begin(self._key, self._question)
        answer: ChatResponse | None = None
        try:
            answer = await chain.proceed(request, emit)
            return answer
        finally:
            self._store.end(self._key, answer or self._what_was_set())

    def _what_was_set(self) -> ChatResponse | None:
        if not self._order.alarms:
            return None
        times = ", ".join(each.at.isoformat(timespec="seconds") for each in self._order.alarms)
        text = f"闹钟已设置 / alarm set: {times}. 首次回答没有完成 / the first answer was not completed."
        return ChatResponse(AssistantMessage(text), "stop", Usage(), "")


async def _replayed(answer: ChatResponse, emit: Emit) -> ChatResponse:
    for execution in answer.executions:
        await emit(ToolCallStarted(execution.call, execution.round))
        await emit(execution)
    await emit(TextDelta(answer.message.text))
    return answer


def _digest(question: str) -> str:
    return hashlib.sha256(question.encode()).hexdigest()
