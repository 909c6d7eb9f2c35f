"""The turns of a conversation, and what is stored of the conversation beside them."""

from collections.abc import Iterator, Sequence
from dataclasses import field

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from toolchat.chat.session_records import dump_turn, load_turn
from toolchat.messages import Message, UserMessage, estimate_size, immutable, sendable
from toolchat.state.base import RECORD_VERSION, RecordVersion, decoding

MAX_TITLE = 80
"""Characters of a conversation's title."""
_UNREADABLE = "the conversation cannot be read; DELETE it to begin anew"


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

    @classmethod
    def recorded(cls, messages: tuple[Message, ...], summary: str = "", identifier: str = "") -> "Turn":
        """A turn with its record."""
        return cls(messages, summary, to_json(dump_turn(messages, summary, identifier)), identifier)

    @classmethod
    def load(cls, record: bytes) -> "Turn":
        """The turn of a record.

        Raises:
            StoreUnavailable: another program or a newer version wrote it.
        """
        with decoding(_UNREADABLE):
            records = from_json(record)
            return cls(*load_turn(records), record, str(records[-1].get("turn_id", "")))


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

    @classmethod
    def load(cls, value: bytes | None) -> "Conversation":
        """The conversation of a stored value, without turns if there is none; raises as :meth:`Turn.load`."""
        with decoding(_UNREADABLE):
            return _CONVERSATION.validate_json(value) if value is not None else cls(0)

    def dump(self) -> bytes:
        """The value to store."""
        return _CONVERSATION.dump_json(self)


_CONVERSATION = TypeAdapter(Conversation)


def title_of(messages: Sequence[Message]) -> str:
    """The title of a conversation that begins with these messages."""
    text = next((each.text for each in messages if isinstance(each, UserMessage)), "")
    line = sendable(" ".join(text[: 8 * MAX_TITLE].split()))
    return line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1]}…"
