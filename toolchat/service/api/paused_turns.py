"""Paused turns as records: everything that a turn needs to resume, at any replica and in a later version."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, from_json, to_json

from toolchat.chat.advisors.base import Advisor
from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED
from toolchat.chat.memory_window import storable
from toolchat.chat.session_records import from_records, to_records
from toolchat.errors import CannotPause, DependencyMissing
from toolchat.messages import AssistantMessage, Message, Usage, UserMessage, sendable, turn_start
from toolchat.models.base import ChatOptions, ChatResponse
from toolchat.state.base import RECORD_VERSION, check_version
from toolchat.tool_calling.callback import ToolCallback, ToolCallbackResolver
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.events import ToolCallFinished

_log = logging.getLogger(__name__)

_T = TypeVar("_T")
_EXECUTIONS = TypeAdapter(tuple[ToolCallFinished, ...])


@dataclass(frozen=True, slots=True)
class PausedTurn:
    """Everything that a paused turn needs to resume."""

    response: ChatResponse
    """The answer so far, with the tool context and the options of its question."""
    tools: tuple[ToolCallback, ...]
    advisors: tuple[Advisor, ...]
    """The advisors of this question, in addition to those of the chat client."""
    is_direct: bool = False
    """Whether no model asked for the call, and none is asked about its result."""

    @property
    def question(self) -> str:
        """The question whose answer waits; empty if its message has no text."""
        return next((each.text for each in self.running if isinstance(each, UserMessage)), "")

    @property
    def running(self) -> Sequence[Message]:
        """The messages of this turn, without those of earlier turns; the first is the question."""
        return self.response.history[turn_start(self.response.history) :]


class PausedTurnCodec:
    """Converts paused turns to records and back, with their tools and advisors by name."""

    # One that could not be found by its name is refused when the turn pauses: later, the error would come after the
    # user has decided.

    def __init__(self, resolver: ToolCallbackResolver, advisors: Iterable[Advisor]) -> None:
        self._resolver = resolver
        self._advisors = {each.record_name: each for each in advisors}

    def dump(self, paused: PausedTurn) -> dict[str, Any]:
        for fault in self._faults(paused):
            _log.error("an answer cannot wait for approval", extra={"reason": fault})
            raise CannotPause(f"the answer needs an approval and cannot wait for it: {fault}")
        # Without images, which may be megabytes: the rounds that have seen them are over.
        history = tuple([storable(each, keep_extra=True) for each in paused.response.history])
        return turn_record(replace(paused.response, history=history)) | {
            "tools": [each.definition.name for each in paused.tools],
            "advisors": [each.record_name for each in paused.advisors],
            "is_direct": paused.is_direct,
        }

    def load(self, value: bytes) -> PausedTurn:
        """Restore the turn of a record; raises ``DependencyMissing`` if this process lacks a part of it."""
        try:
            record = from_json(value)
            response = turn_of(record)
            tools = {name: self._resolver.resolve(name) for name in record["tools"]}
            advisors = {name: self._advisors.get(name) for name in record["advisors"]}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise missing("a record of another version of the service") from error
        return PausedTurn(response, _all_of("tool", tools), _all_of("advisor", advisors), record["is_direct"])

    def described(self, name: str, roles: Collection[str]) -> dict[str, Any]:
        """What a tool does, empty if this process lacks it, and whether those who decide may change its arguments."""
        found = self._resolver.resolve(name)
        may_edit = not roles or (found is not None and found.metadata.approver_may_edit)
        return {"description": found.definition.description if found else "", "may_edit": may_edit}

    def _faults(self, paused: PausedTurn) -> Iterable[str]:
        for tool in paused.tools:
            found = self._resolver.resolve(tool.definition.name)
            # The same name is not enough: another tool of that name must not run in its place.
            if found is None or (found.owner, found.definition) != (tool.owner, tool.definition):
                yield f"the tool {tool.definition.name} belongs to no tool module, so it could not be found again"
        for advisor in paused.advisors:
            if self._advisors.get(advisor.record_name) is not advisor:
                yield f"the advisor {advisor.record_name} belongs to no tool module, so it could not be found again"
        for key, value in paused.response.context.values.items():
            if not _is_json(value):
                yield f"the context value {key} is not JSON"


def turn_record(response: ChatResponse) -> dict[str, Any]:
    turn = response.whole_turn()
    executions = tuple([replace(each, result=sendable(each.result), images=()) for each in turn.executions])
    return {
        "version": RECORD_VERSION,
        "messages": to_records((*response.history, response.message)),
        "context": dict(response.context.values),
        "approvers": dict(response.approvers),
        "options": asdict(response.options),
        "so_far": {
            "usage": asdict(turn.usage),
            "rounds": turn.rounds,
            "executions": _EXECUTIONS.dump_python(executions, mode="json"),
        },
    }


def turn_of(record: Mapping[str, Any]) -> ChatResponse:
    """The turn of a record; ``StoreUnavailable`` if a newer version of the service wrote it."""
    check_version(record["version"])
    *history, message = from_records(record["messages"])
    if not isinstance(message, AssistantMessage):
        raise TypeError(message)
    context = ToolContext(record["context"])
    options = ChatOptions(**record["options"])
    so_far = record["so_far"]
    return ChatResponse(
        message,
        APPROVAL_REQUIRED,
        Usage(**so_far["usage"]),
        "",
        so_far["rounds"],
        _EXECUTIONS.validate_python(so_far["executions"]),
        tuple(history),
        context,
        options,
        approvers=record.get("approvers", {}),
    )


def _is_json(value: object) -> bool:
    """Whether a value survives JSON unchanged; objects, tuples, dates, NaN and lone surrogates do not."""
    try:
        return bool(from_json(to_json(value)) == value)
    except (PydanticSerializationError, ValueError, RecursionError):
        return False


def _all_of(kind: str, found: Mapping[str, _T | None]) -> tuple[_T, ...]:
    for name, each in found.items():
        if each is None:
            raise missing(f"the {kind} {name}")
    return tuple(each for each in found.values() if each is not None)


def missing(what: str) -> DependencyMissing:
    """The error for a turn that waits for something which this process lacks."""
    return DependencyMissing(f"the answer needs {what}, which this process lacks; the answer keeps waiting")
