"""Turns that end in calls of the client's tools, saved until the client sends the results.

A client sends back its own calls and results only. The service may have run tools of its own before, and if those were
missing, the model would call them again. So the complete turn is saved under the id of the client's first call, and
restored when that id comes back. After an hour, or if the store is unavailable, the conversation continues with the
client's messages alone; no tool is run again except by the model's decision.
"""

import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from pydantic_core import from_json, to_json

from app.api.dependencies import scoped_key
from app.protocols.openai.requests import turn_start
from toolchat.chat.records import from_records, to_records
from toolchat.errors import StoreUnavailable
from toolchat.messages import AssistantMessage, Message, ToolCall, ToolResponse, ToolResponseMessage
from toolchat.models.base import ChatResponse
from toolchat.state.base import StateStore

__all__ = ["restore_turn", "save_turn"]

SAVED_TURN_TTL = 3600
_SAVED_ID = re.compile("call_kept_[0-9a-f]{24}")


class _Turn(NamedTuple):
    """A turn whose last round calls tools of the client, and possibly tools of the service."""

    earlier: tuple[Message, ...]
    """The messages of the rounds before."""
    calls: AssistantMessage
    """The assistant message of the last round."""
    results: tuple[ToolResponse, ...]
    """The results of that round so far."""

    def messages(self) -> tuple[Message, ...]:
        """The turn as consecutive messages."""
        return (*self.earlier, self.calls, *([ToolResponseMessage(self.results)] if self.results else []))

    def with_results(self, added: Sequence[ToolResponse]) -> "_Turn":
        """Add results, in the order of the calls: providers reject a round whose results are split or reordered."""
        by_id = {each.id: each for each in (*self.results, *added)}
        return self._replace(results=tuple(by_id[call.id] for call in self.calls.tool_calls if call.id in by_id))


async def save_turn(store: StateStore, response: ChatResponse, client_tools: frozenset[str]) -> ChatResponse:
    """Save the turn of an answer that calls the client's tools, unless the client will send all of it back.

    Args:
        store: the state store.
        response: the answer.
        client_tools: the names of the client's tools.

    Returns:
        The answer; if its turn was saved, the calls of the client's tools have new ids.
    """
    if not any(call.name in client_tools for call in response.message.tool_calls):
        return response
    turn = _finished_turn(response, client_tools)
    if _is_known(turn, client_tools):
        return response
    # A model's own ids are not unique: two conversations may both have a call_1.
    renamed = replace(turn.calls, tool_calls=tuple(_renamed(call, client_tools) for call in turn.calls.tool_calls))
    first = next(call.id for call in renamed.tool_calls if call.name in client_tools)
    with suppress(StoreUnavailable):
        messages = turn._replace(calls=renamed).messages()
        await store.put(_key(first), to_json(to_records(messages)), ttl=SAVED_TURN_TTL)
    return replace(response, message=renamed)


async def restore_turn(store: StateStore, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Replace the client's view of the last turn by the saved turn, if there is one."""
    start = turn_start(messages)
    # Only within the running turn: of earlier turns the model needs the answers only.
    saved = [index for index in range(start, len(messages)) if _saved_id(messages[index])]
    if not saved:
        return messages
    index = saved[-1]
    # Without the store the client's own messages still make a valid conversation.
    with suppress(StoreUnavailable):
        if value := await store.get(_key(_saved_id(messages[index]))):
            turn = _saved_turn(from_records(from_json(value)))
            results, later = _split_results(messages[index + 1 :])
            return (*messages[:start], *turn.with_results(results).messages(), *later)
    return messages


def _finished_turn(response: ChatResponse, client_tools: frozenset[str]) -> _Turn:
    message, history = response.message, response.history[turn_start(response.history) :]
    if all(call.name in client_tools for call in message.tool_calls):
        return _Turn(tuple(history), message, ())
    # The last round has called tools of the service, too: the history ends with its message and their results.
    *earlier, _, results = history
    return _Turn(tuple(earlier), message, _responses(results))


def _saved_turn(messages: Sequence[Message]) -> _Turn:
    index = max(index for index, each in enumerate(messages) if isinstance(each, AssistantMessage))
    calls = messages[index]
    if not isinstance(calls, AssistantMessage):
        raise TypeError(calls)
    results, _ = _split_results(messages[index + 1 :])
    return _Turn(tuple(messages[:index]), calls, results)


def _split_results(messages: Sequence[Message]) -> tuple[tuple[ToolResponse, ...], Sequence[Message]]:
    """The results that follow a message with calls, and the messages after them."""
    return _responses(messages[0]) if messages else (), messages[1:]


def _responses(message: Message) -> tuple[ToolResponse, ...]:
    return tuple(message.responses) if isinstance(message, ToolResponseMessage) else ()


def _renamed(call: ToolCall, client_tools: frozenset[str]) -> ToolCall:
    return replace(call, id=f"call_kept_{secrets.token_hex(12)}") if call.name in client_tools else call


def _is_known(turn: _Turn, client_tools: frozenset[str]) -> bool:
    """Whether the client sends the whole turn back: it calls the client's tools only, and has no provider data."""
    answers = [each for each in (*turn.earlier, turn.calls) if isinstance(each, AssistantMessage)]
    return not any(
        each.extra or any(call.extra or call.name not in client_tools for call in each.tool_calls) for each in answers
    )


def _saved_id(message: Message) -> str:
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    return calls[0].id if calls and _SAVED_ID.fullmatch(calls[0].id) else ""


def _key(identifier: str) -> str:
    return f"openai-calls:{scoped_key(identifier)}"
