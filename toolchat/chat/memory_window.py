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
            return tuple([storable(each, keep_extra=has_rounds) for each in messages])
        # Without any of its tool rounds: providers reject a call without its result, so none is dropped alone.
        questions = [each for each in messages if isinstance(each, UserMessage)]
        short = tuple(map(storable, (*questions, messages[-1])))
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
