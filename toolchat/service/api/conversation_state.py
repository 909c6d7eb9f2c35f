"""Values that belong to a conversation, besides its turns: todo lists and numbers of calls."""

from toolchat.chat.memory import current_lock
from toolchat.errors import SessionBusy
from toolchat.service.access.principals import session_ttl
from toolchat.service.api.dependencies import belonging_to
from toolchat.state.base import LockLost, StateStore


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
