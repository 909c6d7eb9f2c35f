"""Turns that end in calls of the client's tools, saved until the client sends the results.

A client sends back its own calls and results only. The service may have run tools of its own before, and if those were
missing, the model would call them again. So the complete turn is saved under an id that the client's calls share, and
restored wherever one of them comes back, in any order and in any turn. After an hour, or if the store is unavailable,
the conversation continues with the client's messages alone; no tool is run again except by the model's decision.
"""

import re
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, count, pairwise
from typing import NamedTuple

from pydantic_core import from_json, to_json

from toolchat.chat.session_records import dump_turn, load_turn
from toolchat.errors import StoreUnavailable
from toolchat.messages import AssistantMessage, Message, ToolResponse, ToolResponseMessage
from toolchat.models.base import ChatResponse
from toolchat.service.api.dependencies import belonging_to, scoped_key
from toolchat.service.protocols.messages import turn_starts
from toolchat.state.base import StateStore, decoding
from toolchat.tool_calling.context import CONVERSATION_ID

SAVED_TURN_TTL = 3600
_SAVED_ID = re.compile(r"(call_kept_[0-9a-f]{24})(?:_\d{1,3})?")
"""The id of a call: the id of its turn, and for the second call and later ones a number."""


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

    def with_results(self, added: Iterable[ToolResponse]) -> "_Turn":
        """Add results, in the order of the calls; providers reject others, and calls without a result."""
        by_id = {each.id: each for each in (*added, *self.results)}
        calls = tuple(call for call in self.calls.tool_calls if call.id in by_id)
        return _Turn(self.earlier, replace(self.calls, tool_calls=calls), tuple(by_id[call.id] for call in calls))


async def save_turn(
    store: StateStore, response: ChatResponse, client_tools: frozenset[str], identifier: str = ""
) -> ChatResponse:
    """Save the turn of an answer that calls the client's tools, if the client does not see all of it, and name it."""
    if not any(call.name in client_tools for call in response.message.tool_calls):
        return response
    turn = _finished_turn(response, client_tools)
    if not identifier and _is_known(turn, client_tools):
        return response
    # A model's own ids are not unique: two conversations may both have a call_1.
    saved_id = f"call_kept_{identifier or secrets.token_hex(12)}"
    ids = (f"{saved_id}_{number}" if number else saved_id for number in count())
    calls = tuple(replace(call, id=next(ids)) if call.name in client_tools else call for call in turn.calls.tool_calls)
    renamed = replace(turn.calls, tool_calls=calls)
    with suppress(StoreUnavailable):
        messages = turn._replace(calls=renamed).messages()
        lists = belonging_to(response.context.get(CONVERSATION_ID) or "")
        await store.put(_key(saved_id), to_json(dump_turn(messages, "")), ttl=SAVED_TURN_TTL, lists=lists)
    return replace(response, message=renamed)


async def restore_turns(store: StateStore, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Replace the client's view of each turn by the saved turn, if there is one."""
    if not [each for each in messages if isinstance(each, AssistantMessage) and _saved_ids(each)]:
        return messages
    starts = turn_starts(messages)
    restored = [*messages[: starts[0]]]
    # Without the store the client's own messages still make a valid conversation.
    with suppress(StoreUnavailable):
        for start, end in pairwise((*starts, len(messages))):
            restored += await _restored(store, messages[start:end])
        return tuple(restored)
    return messages


async def _restored(store: StateStore, messages: Sequence[Message]) -> Sequence[Message]:
    """Restore the last saved state of one turn, and add the results that the client has sent since."""
    saved = [(saved_id, index) for index, each in enumerate(messages) for saved_id in _saved_ids(each)]
    value = await store.get(_key(saved[-1][0])) if saved else None
    if value is None:
        return messages
    end = saved[-1][1] + 2  # after the results, which follow the calls
    # All results before it, because a client may have split a message with several calls.
    results = chain.from_iterable(map(_responses, messages[:end]))
    with decoding("the turn cannot be read"):
        turn = _saved_turn(load_turn(from_json(value))[0])
    return (*turn.with_results(results).messages(), *messages[end:])


def _finished_turn(response: ChatResponse, client_tools: frozenset[str]) -> _Turn:
    message, history = response.message, response.history[turn_starts(response.history)[-1] :]
    if all(call.name in client_tools for call in message.tool_calls):
        return _Turn(tuple(history), message, ())
    # The last round has called tools of the service, too: the history ends with its message and their results.
    *earlier, _, results = history
    return _Turn(tuple(earlier), message, _responses(results))


def _saved_turn(messages: Sequence[Message]) -> _Turn:
    index, calls = [(index, each) for index, each in enumerate(messages) if isinstance(each, AssistantMessage)][-1]
    return _Turn(tuple(messages[:index]), calls, _responses(messages[-1]))


def _responses(message: Message) -> tuple[ToolResponse, ...]:
    return tuple(message.responses) if isinstance(message, ToolResponseMessage) else ()


def _is_known(turn: _Turn, client_tools: frozenset[str]) -> bool:
    """Whether the client sends the whole turn back: it calls the client's tools only, and has no provider data."""
    answers = [each for each in (*turn.earlier, turn.calls) if isinstance(each, AssistantMessage)]
    return not any(
        each.extra or any(call.extra or call.name not in client_tools for call in each.tool_calls) for each in answers
    )


def _saved_ids(message: Message) -> list[str]:
    """The ids of the saved turns whose calls a message has."""
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    return [found[1] for call in calls if (found := _SAVED_ID.fullmatch(call.id))]


def saved_turn_id(call_id: str) -> str:
    """The identifier of the turn that a call belongs to; empty if the turn was not saved."""
    found = _SAVED_ID.fullmatch(call_id)
    return found[1].removeprefix("call_kept_") if found else ""


def _key(identifier: str) -> str:
    return f"openai-calls:{scoped_key(identifier)}"
