"""What the service has run before a client's tool was called, kept for the client's next request.

A client sends back its own calls and their results, and knows of no others. So that the model does not ask again for
what it has been told, the whole turn is kept under the id of the client's call, and put in its place when that comes
back. Where it is no longer there, as after an hour, the conversation goes on as the client knows it: the model may
then ask again; nothing is run again by the service itself.
"""

import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from pydantic_core import from_json, to_json

from app.api.dependencies import scoped_key
from app.protocols.openai.requests import running_turn
from toolchat.chat.records import from_records, to_records
from toolchat.errors import StoreUnavailable
from toolchat.messages import AssistantMessage, Message, ToolCall, ToolResponse, ToolResponseMessage
from toolchat.models.base import ChatResponse
from toolchat.state.base import StateStore

__all__ = ["keep_calls", "restored"]

_TTL = 3600
_KEPT_ID = re.compile("call_kept_[0-9a-f]{24}")


async def keep_calls(store: StateStore, response: ChatResponse, theirs: frozenset[str]) -> ChatResponse:
    """Keep the turn of an answer that calls the client's tools, where the client does not know all of it.

    Args:
        store: where it is kept.
        response: the answer.
        theirs: the names of the client's tools.

    Returns:
        The answer; the calls that the client gets have new ids if it was kept.
    """
    turn = response.history[running_turn(response.history) :]
    message = response.message
    if not any(call.name in theirs for call in message.tool_calls) or _is_known(turn, message, theirs):
        return response
    # A model's own ids are not unique: two conversations may both have a call_1.
    renamed = replace(message, tool_calls=tuple(_renamed(call, theirs) for call in message.tool_calls))
    first = next(call.id for call in renamed.tool_calls if call.name in theirs)
    has_results = any(call.name not in theirs for call in message.tool_calls)
    whole = (*turn[:-2], renamed, turn[-1]) if has_results else (*turn, renamed)
    with suppress(StoreUnavailable):
        await store.put(_key(first), to_json(to_records(whole)), ttl=_TTL)
    return replace(response, message=renamed)


async def restored(store: StateStore, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Put the turn that was kept in the place of what the client knows of it."""
    begin = running_turn(messages)
    places = [n for n in range(begin, len(messages)) if _first_kept(messages[n])]
    if not places:
        return messages
    place = places[-1]
    with suppress(StoreUnavailable):
        if value := await store.get(_key(_first_kept(messages[place]))):
            return (*messages[:begin], *_joined(from_records(from_json(value)), messages[place + 1 :]))
    return messages


def _renamed(call: ToolCall, theirs: frozenset[str]) -> ToolCall:
    return replace(call, id=f"call_kept_{secrets.token_hex(12)}") if call.name in theirs else call


def _is_known(turn: Sequence[Message], message: AssistantMessage, theirs: frozenset[str]) -> bool:
    """Whether the client sends all of a turn back by itself: its own calls, and nothing that only providers know."""
    said = [*(each for each in turn if isinstance(each, AssistantMessage)), message]
    return not any(
        each.extra or any(call.extra or call.name not in theirs for call in each.tool_calls) for each in said
    )


def _joined(kept: Sequence[Message], after: Sequence[Message]) -> tuple[Message, ...]:
    """The kept turn, the client's results among those of the service, and what came after."""
    place = max(n for n, each in enumerate(kept) if isinstance(each, AssistantMessage))
    message = kept[place]
    responses: dict[str, ToolResponse] = {}
    for each in (*kept[place + 1 :], *after[:1]):
        responses |= {one.id: one for one in each.responses} if isinstance(each, ToolResponseMessage) else {}
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    results = ToolResponseMessage(tuple(responses[call.id] for call in calls if call.id in responses))
    return (*kept[: place + 1], results, *after[1:])


def _first_kept(message: Message) -> str:
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    return calls[0].id if calls and _KEPT_ID.fullmatch(calls[0].id) else ""


def _key(identifier: str) -> str:
    return f"openai-calls:{scoped_key(identifier)}"
