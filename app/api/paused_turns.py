"""Paused turns as plain records: nothing but names and JSON, so that any replica can go on with them."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, from_json, to_json

from app.chat.advisors import Advisor
from app.chat.message_records import from_records, sendable, to_records
from app.chat.tool_calling_advisor import APPROVAL_REQUIRED
from app.chat_models.base import ChatOptions, ChatResponse
from app.errors import PartMissing, PauseImpossible
from app.messages import AssistantMessage, Usage
from app.tool_calling.callback import ToolCallback
from app.tool_calling.context import ToolContext
from app.tool_calling.events import ToolCallFinished
from app.tool_calling.resolver import ToolCallbackResolver

__all__ = ["PausedTurn", "PausedTurnRecords"]

_log = logging.getLogger(__name__)

_T = TypeVar("_T")
_EXECUTIONS = TypeAdapter(tuple[ToolCallFinished, ...])


@dataclass(frozen=True, slots=True)
class PausedTurn:
    """What a turn goes on with."""

    response: ChatResponse
    """The answer so far, with the context and the options of its question."""
    tools: tuple[ToolCallback, ...]
    advisors: tuple[Advisor, ...]
    """Those of this question, beside those that every question has."""


class PausedTurnRecords:
    """Writes paused turns down and reads them again.

    Tools and advisors are written as names. What would not be found again by its name is refused when the turn pauses,
    and not only when it is to go on.

    Args:
        resolver: finds tools by their names.
        advisors: every advisor that a question can be accompanied by; found by its class.
    """

    def __init__(self, resolver: ToolCallbackResolver, advisors: Iterable[Advisor]) -> None:
        self._resolver = resolver
        self._advisors = {_name(each): each for each in advisors}

    def written(self, paused: PausedTurn) -> bytes:
        """The record of a turn.

        Raises:
            PauseImpossible: a part of it cannot be written, or would not be found again.
        """
        for fault in self._faults(paused):
            _log.error("an answer cannot wait for approval", extra={"reason": fault})
            raise PauseImpossible(f"the answer needs an approval and cannot wait for it: {fault}")
        response = paused.response
        record = {
            "messages": to_records((*response.history, response.message)),
            "tools": [each.definition.name for each in paused.tools],
            "advisors": list(map(_name, paused.advisors)),
            "context": dict(response.context.values),
            "options": asdict(response.options),
            "so_far": _so_far(response.whole_turn()),
        }
        return to_json(record)

    def read(self, value: bytes) -> PausedTurn:
        """The turn of a record.

        Raises:
            PartMissing: it names a tool or an advisor that is not here, or another version has written it.
        """
        try:
            record = from_json(value)
            response = _response(record)
            tools = {name: self._resolver.resolve(name) for name in record["tools"]}
            advisors = {name: self._advisors.get(name) for name in record["advisors"]}
        except (KeyError, TypeError, ValueError) as error:
            raise _missing("what another version of the service has written") from error
        return PausedTurn(response, _all_of("tool", tools), _all_of("advisor", advisors))

    def _faults(self, paused: PausedTurn) -> Iterable[str]:
        for tool in paused.tools:
            found = self._resolver.resolve(tool.definition.name)
            if found is None or (found.owner, found.definition) != (tool.owner, tool.definition):
                yield f"the tool {tool.definition.name} is no folder's own, so it would not be found again"
        for advisor in paused.advisors:
            if self._advisors.get(_name(advisor)) is not advisor:
                yield f"the advisor {_name(advisor)} is no folder's own, so it would not be found again"
        for key, value in paused.response.context.values.items():
            if not _is_json(value):
                yield f"the context value {key} is not JSON"


def _so_far(turn: ChatResponse) -> dict[str, Any]:
    """What the turn has come to, for its trace; the results themselves are in its messages, too."""
    executions = tuple([replace(each, result=sendable(each.result)) for each in turn.executions])
    return {
        "usage": asdict(turn.usage),
        "rounds": turn.rounds,
        "executions": _EXECUTIONS.dump_python(executions, mode="json"),
    }


def _response(record: Mapping[str, Any]) -> ChatResponse:
    *history, message = from_records(record["messages"])
    if not isinstance(message, AssistantMessage):
        raise TypeError(message)
    context, options = ToolContext(record["context"]), ChatOptions(**record["options"])
    so_far = record.get("so_far", {})
    return ChatResponse(
        message,
        APPROVAL_REQUIRED,
        Usage(**so_far.get("usage", {})),
        "",
        so_far.get("rounds", 1),
        _EXECUTIONS.validate_python(so_far.get("executions", ())),
        tuple(history),
        context,
        options,
    )


def _name(advisor: Advisor) -> str:
    return f"{type(advisor).__module__}.{type(advisor).__qualname__}"


def _is_json(value: object) -> bool:
    """Whether a value comes back from JSON as it was: no object, tuple, date, NaN or lone surrogate does."""
    try:
        return bool(from_json(to_json(value)) == value)
    except (PydanticSerializationError, ValueError, RecursionError):
        return False


def _all_of(kind: str, found: Mapping[str, _T | None]) -> tuple[_T, ...]:
    for name, each in found.items():
        if each is None:
            raise _missing(f"the {kind} {name}")
    return tuple(each for each in found.values() if each is not None)


def _missing(what: str) -> PartMissing:
    return PartMissing(f"the answer goes on with {what}, which is not here; it goes on waiting")
