"""Chat memory: stores the turns of conversations, one open turn of a conversation at a time."""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import replace
from itertools import chain
from typing import Any

from toolchat.chat.memory_window import MemoryWindow
from toolchat.chat.turns import Conversation, Turn, title_of
from toolchat.errors import SessionBusy
from toolchat.messages import Message, immutable
from toolchat.state.base import Lock, LockLost, StateStore, Write
from toolchat.state.locks import Hold, Locks

_MAX_SAVED_BYTES = 16 * 1024 * 1024
current_lock: ContextVar[Lock | None] = ContextVar("conversation_lock", default=None)
"""The lock of the conversation whose turn is being answered; ``None`` outside of a turn."""


class ChatMemory:
    """Stores conversations in the state store; a conversation has one open turn at a time.

    All turns are kept until the conversation expires: each is appended to the log of the conversation's value, so that
    what a question writes does not depend on the length of its conversation.

    Args:
        store: the state store.
        locks: the locks of the conversations.
        window: what of a conversation the model receives.
        ttl: seconds for which a conversation is stored after its last turn, asked for each time.
        lists: names the lists of the store that a conversation goes to the top of with each turn.
    """

    def __init__(
        self,
        store: StateStore,
        locks: Locks,
        window: MemoryWindow | None = None,
        *,
        ttl: Callable[[], float] = lambda: 86400,
        lists: Callable[[str], tuple[str, ...]] = lambda _: (),
    ) -> None:
        self._store = store
        self._locks = locks
        self.window = window or MemoryWindow()
        self._ttl = ttl
        self._lists = lists
        self._saved: OrderedDict[str, tuple[bytes | None, Conversation, tuple[Turn, ...]]] = OrderedDict()
        """What this process saved last, by key, with its stored value: the next question need not read and parse it."""
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
        return (await self.page(conversation))[2]

    async def page(
        self, conversation: str, limit: int | None = None, before: int | None = None
    ) -> tuple[Conversation, int, tuple[Turn, ...]]:
        """The newest turns before a place, oldest first, and the place of the first; raises as :meth:`turns`."""
        key = _key(conversation)
        found = Conversation.load(await self._store.get(key))
        end = found.turns if before is None else min(before, found.turns)
        start = 0 if limit is None else max(end - limit, 0)
        return found, start, await self._logged(key, start, end - start) if end else ()

    async def newest(self, name: str, limit: int) -> list[tuple[str, Conversation, float]]:
        """The newest conversations of a list, with the time of their last turn in seconds since 1970.

        Raises as :meth:`turns`.
        """
        found = await self._store.listed(name, limit=limit)
        return [(key.removeprefix(_key("")), Conversation.load(value), at) for key, value, at in found]

    async def note_approval(self, conversation: str, messages: Sequence[Message], approval: str) -> None:
        """Note that a turn waits for approval, with its messages; during the turn. Raises as :meth:`save`."""
        key = _key(conversation)
        found = Conversation.load(await self._store.get(key))
        noted = replace(found, approval=approval, title=found.title or title_of(messages))
        await self._write(current_lock.get(), self._entry(key, noted))

    async def load(self, key: str, value: bytes | None) -> tuple[Conversation, tuple[Turn, ...]]:
        """The conversation of a stored value and the turns of its window; raises as :meth:`turns`."""
        saved = self._saved.get(key)
        if saved and saved[0] == value:  # else another process may have stored a turn since
            return saved[1:]
        found = Conversation.load(value)
        turns = await self._logged(key, found.first) if found.turns else ()
        return found, tuple(map(self.window.shorten, turns))

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
        key, place = opened.lock.key, opened.place
        short = self.window.shorten(turn)
        window = (*self.window.select(opened.earlier, short.messages), short)
        title, approval = opened.conversation.title or title_of(turn.messages), opened.conversation.approval
        found = Conversation(place + 1, place + 1 - len(window), title, approval, secrets.token_hex(8))
        entry = self._entry(key, found, place=place, line=turn.record)
        await self._write(opened.lock, entry, opened.lock.release)
        self._locks.released(opened.lock)
        self._discard_saved(key)
        self._saved[key] = entry.value, found, window
        self._saved_bytes += sum([len(each.record) for each in window])
        while self._saved_bytes > _MAX_SAVED_BYTES:
            self._discard_saved(next(iter(self._saved)))

    def _entry(self, key: str, found: Conversation, **log: Any) -> Write:
        return Write(key, found.dump(), self._ttl(), lists=self._lists(key.removeprefix(_key(""))), **log)

    async def _write(self, lock: Lock | None, *writes: Write) -> None:
        try:
            await self._store.commit_under(lock, writes, "save turn")
        except LockLost:
            raise SessionBusy("another request took the session over; this answer was not stored") from None

    async def _logged(self, key: str, first: int, limit: int | None = None) -> tuple[Turn, ...]:
        return tuple(map(Turn.load, await self._store.read_log(key, first, limit)))

    def _discard_saved(self, key: str) -> None:
        *_, turns = self._saved.pop(key, ((),))
        self._saved_bytes -= sum([len(each.record) for each in turns])

    async def delete(self, conversation: str, *lists: str) -> None:
        """Delete a conversation, and what is in these lists of the state store before the next turn can open.

        Raises:
            SessionBusy: a running turn did not end in time or took the lock over; nothing was deleted.
            StoreUnavailable: the deletion is incomplete.
        """
        async with self._locks.hold(_key(conversation)) as lock:
            self._discard_saved(lock.key)
            try:
                await self._store.delete(_key(conversation), lock=lock)
            except LockLost:
                raise SessionBusy("another request took the session over; nothing was deleted") from None
            await self._store.delete_listed(*lists)


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
    """The turns of its window, as the model receives them."""
    place: int
    """The place of the turn in the conversation."""
    lock: Lock

    def replacing(self, count: int, identifier: str) -> "OpenTurn":
        """The turn without the newest earlier ones, which it replaces, unless it has been stored already."""
        if not count or self._is_stored(identifier):
            return self
        kept = self.earlier[: max(len(self.earlier) - count, 0)]
        return OpenTurn(self.memory, self.conversation, kept, max(self.place - count, 0), self.lock)

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
        if not self._is_stored(identifier):
            stored = self.memory.window.trim(messages)
            await self.memory.save(self, Turn.recorded(stored, summary, identifier))


def _key(conversation: str) -> str:
    return f"memory:{conversation}"
