"""Todo lists: their items, rules and text form, and the store with one list per conversation."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from toolchat import RECORD_VERSION, RecordVersion, StateStore, ToolExecutionError
from toolchat.service import ConversationState, Settings

MAX_TODOS = 20
MAX_TEXT_CHARS = 500
MAX_ID_CHARS = 64
NO_TODOS = "No todos."

Status = Literal["pending", "in_progress", "completed"]

_STATUSES: tuple[Status, ...] = get_args(Status)
_MARKERS: dict[Status, str] = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
_JOINER = "\u200d"
"""Invisible, but part of many an emoji."""


def _folded(value: Any) -> Any:
    """Put a text on one line; a line break could imitate another item of the list."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    # Control and formatting characters could hide a part of the line from the user.
    visible = "".join(each for each in value if each.isprintable() or each.isspace() or each == _JOINER)
    return " ".join(visible.split())


_Line = Annotated[str, BeforeValidator(_folded)]


class TodoEntry(BaseModel):
    """One item of the list."""

    model_config = ConfigDict(
        extra="ignore", coerce_numbers_to_str=True, json_schema_extra={"required": ["id", "text", "status"]}
    )

    id: _Line = Field(default_factory=str, description="Id of the item, such as 1")
    text: _Line = Field(default_factory=str, description="What is to be done, on one line")
    status: _Line = Field(default_factory=str, description="How far it is", json_schema_extra={"enum": list(_STATUSES)})


@dataclass(frozen=True, slots=True)
class TodoItem:
    """One item of a list."""

    id: str
    text: str
    status: Status
    version: RecordVersion = RECORD_VERSION

    def to_dict(self) -> dict[str, str]:
        """Return the item as clients see it."""
        return {"id": self.id, "text": self.text, "status": self.status}


def todo_items(entries: Sequence[TodoEntry]) -> tuple[TodoItem, ...]:
    """Validate a whole list.

    A missing id is the item's place from 1, a missing status is ``pending``; statuses may be in any case.

    Raises:
        ToolExecutionError: too many items, an invalid item, a duplicate id, or more than one item in progress
            (``invalid-todos``).
    """
    if len(entries) > MAX_TODOS:
        raise _refusal(f"Max {MAX_TODOS} todos allowed")
    items = tuple(_item(entry, entry.id or str(place)) for place, entry in enumerate(entries, start=1))
    for item_id, times in Counter(each.id for each in items).items():
        if times > 1:
            raise _refusal(f"Item {item_id}: {times} items have this id")
    if sum(each.status == "in_progress" for each in items) > 1:
        raise _refusal("Only one task can be in_progress at a time")
    return items


def completed(items: Sequence[TodoItem]) -> int:
    """Return the number of completed items."""
    return sum(each.status == "completed" for each in items)


def rendered(items: Sequence[TodoItem]) -> str:
    """Render the list as text: a line for each item, and one with the number of completed items."""
    if not items:
        return NO_TODOS
    lines = [f"{_MARKERS[each.status]} #{each.id}: {each.text}" for each in items]
    return "\n".join([*lines, f"({completed(items)}/{len(items)} completed)"])


def is_rendering(text: str) -> bool:
    """Return whether a tool's result is a list from :func:`rendered` rather than an error."""
    return text.startswith((NO_TODOS, *_MARKERS.values()))


def _item(entry: TodoEntry, item_id: str) -> TodoItem:
    if len(item_id) > MAX_ID_CHARS:
        raise _refusal(f"Item {item_id[:MAX_ID_CHARS]}...: an id may have {MAX_ID_CHARS} characters")
    if not entry.text:
        raise _refusal(f"Item {item_id}: text required")
    if len(entry.text) > MAX_TEXT_CHARS:
        raise _refusal(f"Item {item_id}: a text may have {MAX_TEXT_CHARS} characters, not {len(entry.text)}")
    wanted = entry.status.lower() or "pending"
    status = next((each for each in _STATUSES if each == wanted), None)
    if status is None:
        raise _refusal(f"Item {item_id}: invalid status '{wanted[:MAX_ID_CHARS]}'", "use " + ", ".join(_STATUSES))
    return TodoItem(item_id, entry.text, status)


def _refusal(message: str, hint: str | None = None) -> ToolExecutionError:
    return ToolExecutionError(message, kind="invalid-todos", hint=hint)


_ITEMS = TypeAdapter(tuple[TodoItem, ...])


class TodoLists:
    """The todo lists in the state store, one for each conversation, with the session's lifetime.

    The store also counts the rounds of tool calls since the last update. Every operation raises ``StoreUnavailable`` if
    the store cannot be reached; one that changes something raises ``SessionBusy`` if another request has taken the
    conversation over.
    """

    def __init__(self, store: StateStore, settings: Settings) -> None:
        self._lists = ConversationState(store, "todo", ttl=settings.session_ttl)
        self._rounds = ConversationState(store, "todo-rounds", ttl=settings.session_ttl)

    async def get(self, conversation_id: str) -> tuple[TodoItem, ...]:
        """Return a conversation's list; empty if it has none, or an unreadable one."""
        try:
            return _ITEMS.validate_json(await self._lists.get(conversation_id) or b"[]")
        except ValidationError:
            return ()

    async def put(self, conversation_id: str, items: Sequence[TodoItem]) -> None:
        """Replace a conversation's list; an empty list is deleted."""
        await self._lists.put(conversation_id, _ITEMS.dump_json(tuple(items)) if items else b"")

    async def rounds(self, conversation_id: str) -> int:
        """Return the rounds of tool calls since the last update or reminder."""
        value = await self._rounds.get(conversation_id)
        return int(value) if value.isdigit() else 0

    async def put_rounds(self, conversation_id: str, rounds: int) -> None:
        """Store the number of rounds."""
        await self._rounds.put(conversation_id, b"%d" % rounds)
