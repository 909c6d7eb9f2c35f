"""Where the todo lists of the conversations are kept."""

from collections.abc import Sequence

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from app.settings import Settings
from app.state_store.base import StateStore
from app.tools.todo.items import TodoItem

__all__ = ["TodoLists"]

_ITEMS = TypeAdapter(tuple[TodoItem, ...])


class TodoLists:
    """One list for each conversation, in the state store; kept as long as a conversation is after its last change.

    Beside it stands how many rounds of tool calls the conversation has had since. Every operation raises
    ``StoreUnavailable`` when the store cannot be reached.
    """

    def __init__(self, store: StateStore, settings: Settings) -> None:
        self._store = store
        self._ttl = settings.session_ttl

    async def get(self, conversation_id: str) -> tuple[TodoItem, ...]:
        """A conversation's list; empty when it has none."""
        try:
            return _ITEMS.validate_json(await self._store.get(f"todo:{conversation_id}") or b"[]")
        except ValidationError:
            return ()

    async def put(self, conversation_id: str, items: Sequence[TodoItem]) -> None:
        """Replace a conversation's list; an empty one is forgotten."""
        key = f"todo:{conversation_id}"
        if items:
            await self._store.put(key, to_json(items), ttl=self._ttl)
        else:
            await self._store.delete(key)

    async def rounds(self, conversation_id: str) -> int:
        """Rounds of tool calls since the list was last updated, or since the last reminder."""
        value = await self._store.get(f"todo-rounds:{conversation_id}") or b""
        return int(value) if value.isdigit() else 0

    async def put_rounds(self, conversation_id: str, rounds: int) -> None:
        """Keep the number of rounds."""
        await self._store.put(f"todo-rounds:{conversation_id}", b"%d" % rounds, ttl=self._ttl)
