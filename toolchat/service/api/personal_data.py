"""What is stored for a conversation or for a person, exported or deleted as a whole.

Whatever stores something adds it to the lists of ``belonging_to``; what is in them is found here, of whatever kind.
"""

from collections.abc import AsyncGenerator
from typing import Any

from pydantic_core import from_json

from toolchat.chat.memory import ChatMemory
from toolchat.service.api.background.records import BackgroundRecords
from toolchat.service.api.dependencies import of_person, parts_of, session_of
from toolchat.state.base import StateStore


async def delete_conversation(store: StateStore, memory: ChatMemory, conversation: str) -> None:
    """Delete a conversation with all that belongs to it."""
    parts = parts_of(conversation)
    # Before the session is locked, which a running question has locked itself.
    await BackgroundRecords(store).delete_unfinished(*parts)
    # While it is locked: an answer that paused in the meantime would survive its conversation.
    await memory.delete(conversation, *parts)


class PersonalData:
    """All that is stored for one principal, except for decisions about calls, whose record has to be kept."""

    # Every operation raises ``StoreUnavailable``.

    def __init__(self, store: StateStore, memory: ChatMemory, name: str) -> None:
        self._store, self._memory = store, memory
        self._sessions = f"sessions:{name}"
        self._parts = (*of_person(f"{name}/"), f"approvals-waiting:of:{name}", f"approvals-decided:of:{name}")

    async def export(self) -> AsyncGenerator[dict[str, Any], None]:
        """The stored values with their logs, each once."""
        seen = set[str]()
        for name in (self._sessions, *self._parts):
            async for key, value, at in self._store.newest(name):
                if key not in seen:
                    seen.add(key)
                    lines = await self._store.read_log(key)
                    yield {"kind": key.partition(":")[0], "id": session_of(key.partition(":")[2]), "at": at} | {
                        "value": _shown(value),
                        "log": list(map(_shown, lines)),
                    }

    async def delete(self) -> None:
        """Delete it all; raises as :func:`delete_conversation`."""
        await BackgroundRecords(self._store).delete_unfinished(*self._parts)
        async for key, *_ in self._store.newest(self._sessions):
            await delete_conversation(self._store, self._memory, key.partition(":")[2])
        await self._store.delete_listed(*self._parts)


def _shown(value: bytes) -> Any:
    try:
        return from_json(value)
    except ValueError:
        return value.decode(errors="replace")
