"""Chat memory: the stored turns of a session, and the window of them that the model receives."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.request import ChatRequest, Emit
from toolchat.chat.session_records import dump_turn, load_turn, turn_summary
from toolchat.errors import ContextTooLong, SessionBusy, StoreUnavailable
from toolchat.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolResponseMessage,
    UserMessage,
    described,
    estimate_size,
    immutable,
    sendable,
    turn_start,
)
from toolchat.models.base import ChatResponse
from toolchat.state.base import RECORD_VERSION, Lock, LockLost, RecordVersion, StateStore, Write, decoding
from toolchat.state.locks import Hold, Locks
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.results import truncate

TURN_ID = "toolchat.turn_id"
"""The context value that identifies a turn which may be answered again after a crash: it is stored once."""
REPLACED_TURNS = "toolchat.replaced_turns"
"""Key of a request's context: how many of the newest turns the question and its answer replace."""
NEW_CONVERSATION = "toolchat.new_conversation"
"""Key of a request's context: nobody has asked for the conversation, so it need not be stored if the store is away."""
MAX_TITLE = 80
"""Characters of a conversation's title."""
_MAX_SAVED_BYTES = 16 * 1024 * 1024
_UNREADABLE = "the conversation cannot be read; DELETE it to begin anew"
current_lock: ContextVar[Lock | None] = ContextVar("conversation_lock", default=None)
"""The lock of the conversation whose turn is being answered; ``None`` outside of a turn."""


@immutable
class Turn:
    """A user message, optionally its tool rounds, and the answer; always stored whole. Iterates over its messages."""

    messages: tuple[Message, ...]
    summary: str = ""
    """As :func:`turn_summary` writes it: for the user, never sent to the model."""
    record: bytes = field(default=b"", repr=False, compare=False)
    """The stored JSON, written back as it is."""
    identifier: str = ""
    """The value of :data:`TURN_ID`, if the application sets it."""
    size: int = field(init=False, repr=False, compare=False)
    """As :func:`estimate_size` counts it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", estimate_size(self.messages))

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)


@dataclass(frozen=True, slots=True)
class MemoryWindow:
    """How much of a conversation is stored and sent to the model.

    A full window is cut to half, at a whole turn. Providers with a prompt cache charge little for the beginning that a
    request shares with an earlier one, and a window that lost a turn with each question would share nothing.
    """

    max_messages: int = 400
    max_tokens: int = 32_000
    """As :func:`estimate_tokens` counts them."""
    tool_rounds: bool = False
    """Store tool calls and their results, too; a turn that is larger than the window is stored without them.

    If the question and the answer alone are larger, both are truncated in the middle, so that one long answer does not
    push the whole conversation out.
    """

    def trim(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The part of a finished turn that is stored; its reasoning only with the tool rounds that led to it."""
        if self.tool_rounds and self.fits(messages):
            has_rounds = any(isinstance(each, ToolResponseMessage) for each in messages)
            return tuple([_storable(each, keep_extra=has_rounds) for each in messages])
        # Without any of its tool rounds: providers reject a call without its result, so none is dropped alone.
        short = tuple(map(_storable, _without_tool_rounds(messages)))
        return short if estimate_size(short) <= self.max_tokens else tuple(map(self._truncate, short))

    def _truncate(self, message: Message) -> Message:
        # A character is at most one token: question and answer get a quarter each, half is left to other turns.
        if isinstance(message, UserMessage | AssistantMessage):
            return replace(message, text=truncate(message.text, max(self.max_tokens // 4, 16)))
        return message

    def fits(self, messages: Sequence[Message]) -> bool:
        """Whether the messages are within the bounds."""
        return len(messages) <= self.max_messages and estimate_size(messages) <= self.max_tokens

    def select(self, earlier: tuple[Turn, ...], running: Sequence[Message]) -> tuple[Turn, ...]:
        """The earlier turns to send or to store with the running one, which is never cut.

        All if they fit beside it, else the newest that do and fill no more than half a window.
        """
        count, tokens = sum([len(each.messages) for each in earlier]), sum([each.size for each in earlier])
        messages_left, tokens_left = self.max_messages - len(running), self.max_tokens - estimate_size(running)
        if count > messages_left or tokens > tokens_left:
            messages_left = min(messages_left, self.max_messages // 2)
            tokens_left = min(tokens_left, self.max_tokens // 2)
        for place, oldest in enumerate(earlier):
            if count <= messages_left and tokens <= tokens_left:
                return earlier[place:]
            count, tokens = count - len(oldest.messages), tokens - oldest.size
        return ()


@immutable
class Conversation:
    """What is known of a stored conversation without its turns, which are lines of the log beside it."""

    turns: int
    """Stored turns."""
    first: int = 0
    """The place of the first turn that the model may receive."""
    title: str = ""
    """The beginning of its first question."""
    approval: str = ""
    """The id of the newest turn of it that paused for approval."""
    mark: str = ""
    """Differs whenever the turns differ."""
    version: RecordVersion = RECORD_VERSION


_CONVERSATION = TypeAdapter(Conversation)


class ChatMemory:
    """Stores conversations in the state store; a conversation has one open turn at a time.

    All turns are kept until the conversation expires: each is appended to the log of the conversation's value, so that
    what a question writes does not depend on the length of its conversation.

    Args:
        store: the state store.
        locks: the locks of the conversations.
        window: what of a conversation the model receives.
        ttl: seconds for which a conversation is stored after its last turn.
        lists: names the lists of the store that a conversation goes to the top of with each turn.
    """

    def __init__(
        self,
        store: StateStore,
        locks: Locks,
        window: MemoryWindow | None = None,
        *,
        ttl: float = 86400,
        lists: Callable[[str], tuple[str, ...]] = lambda _: (),
    ) -> None:
        self._store = store
        self._locks = locks
        self.window = window or MemoryWindow()
        self._ttl = ttl
        self._lists = lists
        self._saved: OrderedDict[str, tuple[Conversation, tuple[Turn, ...]]] = OrderedDict()
        """What this process saved last, by key: the next question need not read and parse it."""
        self._saved_bytes = 0

    @property
    def active(self) -> int:
        """Conversations whose turn runs or waits in this process."""
        return len(self._locks)

    async def turns(self, conversation: str) -> tuple[Turn, ...]:
        """All stored turns, oldest first; none for an unknown conversation.

        Raises:
            StoreUnavailable: the store cannot be reached, or its value cannot be read.
        """
        key = _key(conversation)
        found, turns = _loaded(await self._store.get(key))
        return turns or (await self._logged(key, 0) if found.turns else ())

    async def newest(self, name: str, limit: int) -> list[tuple[str, Conversation, float]]:
        """The newest conversations of a list, with the time of their last turn in seconds since 1970.

        Raises as :meth:`turns`.
        """
        found = await self._store.listed(name, limit=limit)
        return [(key.removeprefix(_key("")), _loaded(value)[0], at) for key, value, at in found]

    async def note_approval(self, conversation: str, messages: Sequence[Message], approval: str) -> None:
        """Note that a turn waits for approval, with its messages; during the turn. Raises as :meth:`save`."""
        key = _key(conversation)
        found, earlier = _loaded(await self._store.get(key))
        if not earlier:  # a conversation of the first format is left as it is until its next turn is stored
            noted = replace(found, approval=approval, title=found.title or _title(messages))
            await self._write(current_lock.get(), self._entry(key, noted))

    async def load(self, key: str, value: bytes | None) -> tuple[Conversation, tuple[Turn, ...]]:
        """The conversation of a stored value and the turns of its window; raises as :meth:`turns`."""
        found, turns = _loaded(value)
        saved, known = self._saved.get(key, (None, ()))
        if saved is not None and saved.mark == found.mark:  # else another process may have stored a turn since
            return found, known
        return found, turns or (await self._logged(key, found.first) if found.turns else ())

    def open_turn(self, conversation: str) -> "TurnOpening":
        """Open a turn with ``async with``; another one of the same conversation waits, also on other replicas.

        Raises:
            SessionBusy: it waited too long, or too many wait already. Raised as the block is entered, like the other.
            StoreUnavailable: as :meth:`turns`.
        """
        return TurnOpening(self, self._locks.hold(_key(conversation)))

    async def save(self, opened: "OpenTurn", turn: Turn) -> None:
        """Append a turn to its conversation and release the lock.

        Both happen in one step of the store, which checks the lock's fence: a process that stalled until its lock
        expired cannot overwrite the turn of the one that took over.

        Raises:
            SessionBusy: the lock was lost to another request, whose turn remains.
            StoreUnavailable: nothing was stored.
        """
        key, place = opened.lock.key, len(opened.earlier) if opened.is_unlogged else opened.place
        window = (*self.window.select(opened.earlier, turn.messages), turn)
        found = replace(
            opened.conversation,
            turns=place + 1,
            first=place + 1 - len(window),
            title=opened.conversation.title or _title((opened.earlier or (turn,))[0].messages),
            mark=secrets.token_hex(8),
        )
        # A conversation of the first format, whose turns were its value, gets its log now.
        earlier = opened.earlier if opened.is_unlogged else ()
        lines = [*enumerate(each.record for each in earlier), (place, turn.record)]
        writes = [self._entry(key, found, place=at, line=record) for at, record in lines]
        await self._write(opened.lock, *writes, opened.lock.release)
        self._locks.released(opened.lock)
        self._discard_saved(key)
        self._saved[key] = found, window
        self._saved_bytes += sum([len(each.record) for each in window])
        while self._saved_bytes > _MAX_SAVED_BYTES:
            self._discard_saved(next(iter(self._saved)))

    def _entry(self, key: str, found: Conversation, **log: Any) -> Write:
        return Write(
            key, _CONVERSATION.dump_json(found), self._ttl, lists=self._lists(key.removeprefix(_key(""))), **log
        )

    async def _write(self, lock: Lock | None, *writes: Write) -> None:
        try:
            await self._store.commit_under(lock, writes, "save turn")
        except LockLost:
            raise SessionBusy("another request took the session over; this answer was not stored") from None

    async def _logged(self, key: str, first: int) -> tuple[Turn, ...]:
        with decoding(_UNREADABLE):
            return tuple([_load_turn(from_json(line)) for line in await self._store.read_log(key, first)])

    def _discard_saved(self, key: str) -> None:
        _, turns = self._saved.pop(key, (None, ()))
        self._saved_bytes -= sum([len(each.record) for each in turns])

    async def delete(self, conversation: str, *also: str, then: Callable[[], Awaitable[object]] | None = None) -> bool:
        """Delete a conversation and other values; returns whether there was anything.

        Args:
            conversation: the conversation.
            also: other keys of the state store.
            then: awaited before the next turn can open.

        Raises:
            SessionBusy: a running turn did not end in time or took the lock over; nothing was deleted.
            StoreUnavailable: the deletion is incomplete.
        """
        async with self._locks.hold(_key(conversation)) as lock:
            self._discard_saved(lock.key)
            try:
                deleted = await self._store.delete(_key(conversation), *also, lock=lock)
            except LockLost:
                raise SessionBusy("another request took the session over; nothing was deleted") from None
            if then is not None:
                token = current_lock.set(lock)
                try:
                    await then()
                finally:
                    current_lock.reset(token)
            return deleted


class TurnOpening:
    """Context manager that holds the conversation's lock and yields an :class:`OpenTurn`."""

    __slots__ = ("_hold", "_memory", "_token")

    def __init__(self, memory: ChatMemory, hold: Hold) -> None:
        self._memory, self._hold = memory, hold

    async def __aenter__(self) -> "OpenTurn":
        lock = await self._hold.__aenter__()
        try:
            found, earlier = await self._memory.load(lock.key, lock.value)
            turn = OpenTurn(self._memory, found, earlier, found.first + len(earlier), lock)
        except BaseException:
            await self._hold.__aexit__()
            raise
        # What tools and the service store for the conversation during the turn carries the same lock.
        self._token = current_lock.set(lock)
        return turn

    def __aexit__(self, *_: object) -> Coroutine[None, None, None]:
        current_lock.reset(self._token)
        return self._hold.__aexit__()


@immutable
class OpenTurn:
    """A turn that is being answered."""

    memory: ChatMemory
    conversation: Conversation
    earlier: tuple[Turn, ...]
    """The turns of its window."""
    place: int
    """The place of the turn in the conversation."""
    lock: Lock

    @property
    def is_unlogged(self) -> bool:
        """Whether the conversation has the first format."""
        return bool(self.earlier) and not self.conversation.turns

    def replacing(self, count: int, identifier: str) -> "OpenTurn":
        """The turn without the newest earlier ones, which it replaces, unless it has been stored already."""
        if not count or self._is_stored(identifier):
            return self
        kept = self.earlier[: max(len(self.earlier) - count, 0)]
        return replace(self, earlier=kept, place=max(self.place - count, 0))

    def _is_stored(self, identifier: str) -> bool:
        return bool(identifier) and any(each.identifier == identifier for each in self.earlier)

    def history(self, running: Sequence[Message]) -> tuple[Message, ...]:
        """The messages of earlier turns that the model receives beside the running turn."""
        selected = self.memory.window.select(self.earlier, running)
        return tuple(chain.from_iterable([each.messages for each in selected]))

    async def save(self, messages: Sequence[Message], summary: str = "", identifier: str = "") -> None:
        """Store the finished turn and let the next one open, unless a turn of that id has been stored before.

        Raises as :meth:`ChatMemory.save`.
        """
        if self._is_stored(identifier):
            return
        trimmed = self.memory.window.trim(messages)
        turn = Turn(trimmed, summary, to_json(dump_turn(trimmed, summary, identifier)), identifier)
        await self.memory.save(self, turn)


class MemoryAdvisor(Advisor):
    """Adds the earlier turns to a request, and stores the turn when it is answered.

    Its order is outside the tool loop, so a turn is stored whole or not at all: one that fails, is cancelled or waits
    for approval leaves the conversation unchanged; a resumed turn is stored when it ends. An answer that ended for
    an unknown reason is not stored, nor one that moderation cut: every later request would be refused as well.
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
        async with AsyncExitStack() as stack:
            try:
                opened = await stack.enter_async_context(self._memory.open_turn(conversation))
            except StoreUnavailable:
                if not request.context.get(NEW_CONVERSATION):
                    raise
                return await chain.proceed(request, emit)
            identifier = request.context.get(TURN_ID, "")
            turn = opened.replacing(request.context.get(REPLACED_TURNS, 0), identifier)
            begin, turn, response = await _answer(request, turn, chain, emit)
            if not response.has_tool_calls and response.finish_reason not in ("content_filter", "incomplete"):
                duration = (time.perf_counter() - began) * 1000
                summary = turn_summary(response, chain.model.provider, duration)
                messages = (*response.history[begin:], response.message)
                with suppress(*((StoreUnavailable,) if request.context.get(NEW_CONVERSATION) else ())):
                    await turn.save(messages, summary, identifier)
            return response


async def _answer(
    request: ChatRequest, turn: OpenTurn, chain: AdvisorChain, emit: Emit
) -> tuple[int, OpenTurn, ChatResponse]:
    """The answer, where its turn begins, and the earlier turns that were left: fewer, if the model takes no more."""
    while True:
        begin, asked = _with_history(request, turn)
        try:
            return begin, turn, await chain.proceed(asked, emit)
        except ContextTooLong as error:
            if error.has_run or not turn.earlier:
                raise
        turn = replace(turn, earlier=turn.earlier[(len(turn.earlier) + 1) // 2 :])


def _with_history(request: ChatRequest, turn: OpenTurn) -> tuple[int, ChatRequest]:
    """The request with the earlier turns, and the index of the running turn's first message."""
    messages = request.messages
    if request.resume is not None:
        # The history was added before the turn paused: only find where the running turn begins.
        return turn_start(messages), request
    system = [message for message in messages if isinstance(message, SystemMessage)]
    running = [message for message in messages if not isinstance(message, SystemMessage)]
    before = (*system, *turn.history(running))
    return len(before), request.with_messages((*before, *running))


def _storable(message: Message, *, keep_extra: bool = False) -> Message:
    """A message as it is read again: without its images and, unless it is kept, what some providers demand back."""
    if isinstance(message, ToolResponseMessage):
        stored = [replace(each, text=sendable(described(each)), images=()) for each in message.responses]
        return ToolResponseMessage(tuple(stored))
    if isinstance(message, UserMessage) and message.images:
        return UserMessage(sendable(described(message)))
    text = sendable(message.text)
    if isinstance(message, AssistantMessage) and message.extra:
        return AssistantMessage(text, message.tool_calls, message.extra if keep_extra else {})
    return message if text is message.text else replace(message, text=text)


def _without_tool_rounds(messages: Sequence[Message]) -> tuple[Message, ...]:
    return (*[message for message in messages if isinstance(message, UserMessage)], messages[-1])


def _loaded(value: bytes | None) -> tuple[Conversation, tuple[Turn, ...]]:
    """A conversation; its turns only in the first format, where they were the value."""
    with decoding(_UNREADABLE):
        if value is None:
            return Conversation(0), ()
        if value.startswith(b"["):
            return Conversation(0), tuple(map(_load_turn, from_json(value)))
        return _CONVERSATION.validate_json(value), ()


def _load_turn(records: Sequence[Mapping[str, Any]]) -> Turn:
    return Turn(*load_turn(records), to_json(records), str(records[-1].get("turn_id", "")))


def _title(messages: Sequence[Message]) -> str:
    text = next((each.text for each in messages if isinstance(each, UserMessage)), "")
    line = sendable(" ".join(text[: 8 * MAX_TITLE].split()))
    return line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1]}…"


def _key(conversation: str) -> str:
    return f"memory:{conversation}"
