"""The window of a conversation: what of it is stored, and what of it the model receives."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolchat.chat.turns import Turn
from toolchat.messages import (
    AssistantMessage,
    Message,
    ToolResponseMessage,
    UserMessage,
    described,
    estimate_size,
    sendable,
)
from toolchat.tool_calling.results import truncate


@dataclass(frozen=True, slots=True)
class MemoryWindow:
    """How much of a conversation the model receives, and what of a turn is stored.

    A full window is cut to half, at a whole turn. Providers with a prompt cache charge little for the beginning that a
    request shares with an earlier one, and a window that lost a turn with each question would share nothing.
    """

    max_messages: int = 400
    max_tokens: int = 32_000
    """As :func:`estimate_tokens` counts them."""
    tool_rounds: bool = False
    """Store tool calls and their results, too, unless the turn is larger than the window: no model would get them."""

    def trim(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The part of a finished turn that is stored; its reasoning only with the tool rounds that led to it."""
        if self.tool_rounds and self.fits(messages):
            has_rounds = any(isinstance(each, ToolResponseMessage) for each in messages)
            return tuple([storable(each, keep_extra=has_rounds) for each in messages])
        return tuple(map(storable, _texts(messages)))

    def shorten(self, turn: Turn) -> Turn:
        """A stored turn as the model receives it, the same with every question.

        A turn that is larger than the window loses its tool rounds. If its texts alone are larger, each loses its
        middle, so that one long answer does not push the whole conversation out.
        """
        if turn.size <= self.max_tokens and len(turn.messages) <= self.max_messages:
            return turn
        texts = _texts(turn.messages)
        if estimate_size(texts) > self.max_tokens:
            # A character is at most one token: the texts get half together, half is left to other turns.
            limit = max(self.max_tokens // (2 * len(texts)), 16)
            texts = tuple([_shortened(each, limit) for each in texts])
        return replace(turn, messages=tuple(map(storable, texts)))

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


def _texts(messages: Sequence[Message]) -> tuple[Message, ...]:
    # Without any of its tool rounds: providers reject a call without its result, so none is dropped alone.
    return (*[each for each in messages if isinstance(each, UserMessage)], messages[-1])


def _shortened(message: Message, limit: int) -> Message:
    if isinstance(message, UserMessage | AssistantMessage):
        return replace(message, text=truncate(message.text, limit))
    return message


def storable(message: Message, *, keep_extra: bool = False) -> Message:
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
