"""What was said in a conversation before: kept whole turns at a time, within a window."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from pydantic_core import from_json, to_json

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.records import from_records, to_records, turn_summary
from toolchat.chat.request import ChatRequest, Emit
from toolchat.errors import SessionBusy
from toolchat.messages import AssistantMessage, Message, SystemMessage, ToolResponseMessage, UserMessage, immutable
from toolchat.models.base import ChatResponse
from toolchat.state.base import Lock, LockLost, StateStore, decoding
from toolchat.state.locks import Hold, Locks
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.results import truncate

__all__ = ["ChatMemory", "MemoryAdvisor", "MemoryWindow", "OpenTurn", "Turn", "estimate_size", "estimate_tokens"]


@immutable
class Turn:
    """A question, the tool rounds if kept, and the answer; never a part of that. Iterates over its messages."""

    messages: tuple[Message, ...]
    trace: str = ""
    """What :func:`turn_summary` says of the answer. Shown to the user; the model is never given it."""
    records: Sequence[Mapping[str, Any]] = field(default=(), repr=False, compare=False)
    """As it was kept, and is kept again; empty for one that is new."""
    size: int = field(init=False, repr=False, compare=False)
    """As :func:`estimate_size` counts it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", estimate_size(self.messages))

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)


@dataclass(frozen=True, slots=True)
class MemoryWindow:
    """How much of a conversation the model is given again; the oldest turns go first, and whole."""

    max_messages: int = 40
    max_tokens: int = 8000
    """As :func:`estimate_tokens` counts them."""
    tool_rounds: bool = False
    """Keep tool calls and their results, too; a turn that is larger than the window is kept without them.

    A question and answer that would not fit even then are kept with their middles left out, so that one long answer
    does not make the model forget the whole conversation.
    """

    def kept(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """What of a finished turn is worth keeping; reasoning never is."""
        if self.tool_rounds and self.holds(whole := _without_reasoning(messages)):
            return whole
        short = _without_reasoning(_without_tool_rounds(messages))
        return short if estimate_size(short) <= self.max_tokens else tuple(map(self._shortened, short))

    def _shortened(self, message: Message) -> Message:
        # A text takes as many characters as tokens at most; a quarter for each leaves half of the window to others.
        if isinstance(message, UserMessage | AssistantMessage):
            return replace(message, text=truncate(message.text, max(self.max_tokens // 4, 16)))
        return message

    def holds(self, messages: Sequence[Message]) -> bool:
        """Whether so many messages are within the bounds."""
        return len(messages) <= self.max_messages and estimate_size(messages) <= self.max_tokens

    def fit(self, turns: Sequence[Turn], running: Sequence[Message] = ()) -> tuple[Turn, ...]:
        """The newest turns that fit beside the running one, which is never cut."""
        if not turns:
            return ()
        count, tokens = len(running), estimate_size(running)
        fitting: list[Turn] = []
        for turn in reversed(turns):
            count, tokens = count + len(turn.messages), tokens + turn.size
            if count > self.max_messages or tokens > self.max_tokens:
                break
            fitting.append(turn)
        return tuple(reversed(fitting))


class ChatMemory:
    """Keeps conversations in the state store; one turn of a conversation at a time."""

    def __init__(
        self, store: StateStore, locks: Locks, window: MemoryWindow | None = None, *, ttl: float = 86400
    ) -> None:
        self._store = store
        self._locks = locks
        self.window = window or MemoryWindow()
        self._ttl = ttl

    @property
    def active(self) -> int:
        """Conversations with a turn that runs or waits in this process."""
        return len(self._locks)

    async def turns(self, conversation: str) -> tuple[Turn, ...]:
        """The kept turns, oldest first; none for a conversation that is not known.

        Raises:
            StoreUnavailable: the store cannot be reached, or what it holds cannot be read.
        """
        return _turns(await self._store.get(_key(conversation)))

    def open_turn(self, conversation: str) -> "TurnOpening":
        """Begin a turn, for an ``async with``; a second one of the same conversation waits, here and on every replica.

        Raises:
            SessionBusy: it waited too long, or too many wait already; as the block begins, like the other.
            StoreUnavailable: as :meth:`turns`.
        """
        return TurnOpening(self, self._locks.hold(_key(conversation)))

    async def keep(self, turns: Sequence[Turn], lock: Lock) -> None:
        """Replace the kept turns of a conversation, and end its turn.

        Raises:
            SessionBusy: the lock was lost to another request, whose turn stands.
            StoreUnavailable: nothing was kept.
        """
        value = to_json([each.records or _records(each) for each in turns])
        try:
            await self._locks.save_and_release(lock, value, ttl=self._ttl)
        except LockLost:
            raise SessionBusy("another request took the session over; this answer was not kept") from None

    async def forget(self, conversation: str, *also: str, then: Callable[[], Awaitable[object]] | None = None) -> bool:
        """Forget a conversation and what else is kept under the given keys; whether there was anything.

        Args:
            conversation: the conversation.
            also: keys of the state store.
            then: awaited before the next turn can begin.

        Raises:
            SessionBusy: a turn is running, and did not end in time, or took the lock over; nothing was forgotten.
            StoreUnavailable: not all of it was forgotten.
        """
        async with self._locks.hold(_key(conversation)) as lock:
            try:
                forgotten = await self._store.delete(_key(conversation), *also, lock=lock)
            except LockLost:
                raise SessionBusy("another request took the session over; nothing was forgotten") from None
            if then is not None:
                await then()
            return forgotten


class TurnOpening:
    """Gives an :class:`OpenTurn` for as long as the block runs."""

    __slots__ = ("_hold", "_memory")

    def __init__(self, memory: ChatMemory, hold: Hold) -> None:
        self._memory, self._hold = memory, hold

    async def __aenter__(self) -> "OpenTurn":
        lock = await self._hold.__aenter__()
        try:
            return OpenTurn(self._memory, _turns(lock.value), lock)
        except BaseException:
            await self._hold.__aexit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        await self._hold.__aexit__()


@immutable
class OpenTurn:
    """A turn that is being answered."""

    memory: ChatMemory
    before: tuple[Turn, ...]
    lock: Lock

    def history(self, running: Sequence[Message]) -> tuple[Message, ...]:
        """What the model is given of the turns before, beside the running one."""
        return tuple(chain.from_iterable([turn.messages for turn in self.memory.window.fit(self.before, running)]))

    async def keep(self, messages: Sequence[Message], trace: str = "") -> None:
        """Add the finished turn, and let the next one begin; raises as :meth:`ChatMemory.keep`."""
        window = self.memory.window
        turn = Turn(window.kept(messages), trace)
        await self.memory.keep((*window.fit(self.before, turn.messages), turn), self.lock)


def estimate_tokens(text: str) -> int:
    """About what a tokenizer of today makes of a text: a Chinese character each, four Latin letters together."""
    if text.isascii():
        return (len(text) + 3) // 4
    wide = (len(text.encode("utf-8", "replace")) - len(text)) // 2
    return wide + (len(text) - wide + 3) // 4


def estimate_size(messages: Sequence[Message]) -> int:
    """About how many tokens a conversation has, where nobody has counted them."""
    return sum([_tokens(message) for message in messages])


def _tokens(message: Message) -> int:
    if isinstance(message, ToolResponseMessage):
        return sum([estimate_tokens(response.text) for response in message.responses])
    tokens = estimate_tokens(message.text)
    if isinstance(message, AssistantMessage) and message.tool_calls:
        tokens += sum([estimate_tokens(call.arguments) for call in message.tool_calls])
    return tokens


def _without_reasoning(messages: Sequence[Message]) -> tuple[Message, ...]:
    return tuple([AssistantMessage(m.text, m.tool_calls) if isinstance(m, AssistantMessage) else m for m in messages])


def _without_tool_rounds(messages: Sequence[Message]) -> tuple[Message, ...]:
    return (*[message for message in messages if isinstance(message, UserMessage)], messages[-1])


def _records(turn: Turn) -> list[dict[str, Any]]:
    # The trace stands with the answer, where an older version of the service looks past it; as a text, since every
    # question of the conversation reads and writes it, and only those who look at the conversation want to know more.
    records = to_records(turn.messages)
    if turn.trace:
        records[-1]["trace"] = turn.trace
    return records


def _turns(value: bytes | None) -> tuple[Turn, ...]:
    with decoding("the conversation cannot be read; DELETE it to begin anew"):
        return tuple(map(_turn, from_json(value))) if value else ()


def _turn(records: Sequence[Mapping[str, Any]]) -> Turn:
    messages, trace = from_records(records), records[-1].get("trace", "")
    if not isinstance(trace, str):
        raise TypeError(trace)
    return Turn(messages, trace, records)


def _key(conversation: str) -> str:
    return f"memory:{conversation}"


class MemoryAdvisor(Advisor):
    """Gives the model the turns before, and keeps the turn once it has its answer.

    It stands outside the tool loop, so that a turn is kept whole or not at all: one that fails, is cancelled or waits
    for approval leaves the conversation as it was. A turn that goes on after approval is kept at its end. An answer
    that the provider's moderation cut is not kept: given again, it would have every later question refused, too.
    """

    order = 200
    record_name = "app.chat.memory_advisor.MemoryAdvisor"

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
                trace = turn_summary(response, chain.model.provider, spent)
                await turn.keep((*response.history[begin:], response.message), trace)
            return response


def _is_worth_keeping(response: ChatResponse) -> bool:
    return not response.has_tool_calls and response.finish_reason != "content_filter"


def _with_history(request: ChatRequest, turn: OpenTurn) -> tuple[int, ChatRequest]:
    """The request with the turns before, and where in it the running turn begins."""
    messages = request.messages
    if request.resume is not None:
        return max(i for i, message in enumerate(messages) if isinstance(message, UserMessage)), request
    system = [message for message in messages if isinstance(message, SystemMessage)]
    running = [message for message in messages if not isinstance(message, SystemMessage)]
    before = (*system, *turn.history(running))
    return len(before), request.with_messages((*before, *running))
