"""Turns that wait for the user's consent: kept, taken up once, and forgotten with their conversation."""

import asyncio
import logging
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from app.api.dependencies import scoped_key
from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.advisors.tool_calling import APPROVAL_REQUIRED
from toolchat.chat.client import ChatClient, PromptSpec
from toolchat.chat.records import from_records, sendable, to_records
from toolchat.chat.request import Approval, ChatRequest, Emit
from toolchat.errors import CannotPause, DependencyMissing, NotFound, StoreUnavailable, ValidationFailed
from toolchat.messages import AssistantMessage, Usage
from toolchat.models.base import ChatOptions, ChatResponse
from toolchat.state.base import StateStore
from toolchat.tool_calling.callback import ToolCallback, ToolCallbackResolver
from toolchat.tool_calling.context import CONVERSATION_ID, ToolContext
from toolchat.tool_calling.events import ToolCallFinished, parse_arguments

__all__ = ["ApprovalStore", "ConsentAdvisor", "PausedTurn", "PausedTurnCodec", "PendingTurn"]


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


class PausedTurnCodec:
    """Writes paused turns down and reads them again.

    Tools and advisors are written as names. What would not be found again by its name is refused when the turn pauses,
    and not only when it is to go on.

    Args:
        resolver: finds tools by their names.
        advisors: every advisor that a question can be accompanied by; found by its class.
    """

    def __init__(self, resolver: ToolCallbackResolver, advisors: Iterable[Advisor]) -> None:
        self._resolver = resolver
        self._advisors = {each.record_name: each for each in advisors}

    def dump(self, paused: PausedTurn) -> bytes:
        """The record of a turn.

        Raises:
            CannotPause: a part of it cannot be written, or would not be found again.
        """
        for fault in self._faults(paused):
            _log.error("an answer cannot wait for approval", extra={"reason": fault})
            raise CannotPause(f"the answer needs an approval and cannot wait for it: {fault}")
        response = paused.response
        record = {
            "messages": to_records((*response.history, response.message)),
            "tools": [each.definition.name for each in paused.tools],
            "advisors": [each.record_name for each in paused.advisors],
            "context": dict(response.context.values),
            "options": asdict(response.options),
            "so_far": _so_far(response.whole_turn()),
        }
        return to_json(record)

    def load(self, value: bytes) -> PausedTurn:
        """The turn of a record.

        Raises:
            DependencyMissing: it names a tool or an advisor that is not here, or another version has written it.
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
            if self._advisors.get(advisor.record_name) is not advisor:
                yield f"the advisor {advisor.record_name} is no folder's own, so it would not be found again"
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


def _missing(what: str) -> DependencyMissing:
    return DependencyMissing(f"the answer goes on with {what}, which is not here; it goes on waiting")


_IDENTIFIERS = TypeAdapter(list[str])
_LISTED = 100
"""Turns of one conversation that may wait; the oldest give way."""


@dataclass(frozen=True, slots=True)
class PendingTurn:
    """A paused turn, as it was found."""

    identifier: str
    turn: PausedTurn
    record: bytes

    @property
    def calls(self) -> list[dict[str, Any]]:
        """What the user is shown of the calls that wait."""
        return _shown(self.turn.response)

    def prompt(self, chat: ChatClient, approvals: Mapping[str, Approval]) -> PromptSpec:
        """What its answer goes on with, given the decisions by call id; a call without one counts as rejected."""
        return chat.resume(self.turn.response, approvals).tools(*self.turn.tools).advisors(*self.turn.advisors)


class ApprovalStore:
    """Keeps paused turns in the state store for a while; any replica finds them, and one takes each up.

    Every operation raises ``StoreUnavailable`` when the store cannot be reached.

    Args:
        store: where the records are; their time is the store's.
        codec: how they are written.
        ttl: seconds that a turn waits.
    """

    def __init__(self, store: StateStore, codec: PausedTurnCodec, *, ttl: float = 600) -> None:
        self.ttl = ttl
        self.saved = 0
        """Turns that have paused at this process."""
        self._store = store
        self._codec = codec

    async def save(self, turn: PausedTurn) -> str:
        """Keep a paused turn.

        Returns:
            The id by which it is taken up, 128 random bits.

        Raises:
            CannotPause: a part of it cannot be written down, or would not be found again.
        """
        record, identifier = self._codec.dump(turn), secrets.token_urlsafe(16)
        if conversation := turn.response.context.get(CONVERSATION_ID):
            await self._list(conversation, identifier)
        await self._store.put(_key(identifier), record, ttl=self.ttl)
        self.saved += 1
        return identifier

    async def find(self, identifier: str, decided: Collection[str] = ()) -> PendingTurn:
        """Look a paused turn up, if the decisions are about its calls; it goes on waiting.

        Raises:
            NotFound: there is none of this id, it was taken up before, or its time is over.
            ValidationFailed: a decision is about a call that the turn does not have.
            DependencyMissing: this replica lacks a tool or an advisor of the turn.
        """
        record = await self._store.get(_key(identifier))
        if record is None:
            raise _nothing_waits()
        turn = self._codec.load(record)
        waiting = [call.id for call in turn.response.message.tool_calls]
        if not set(decided) <= set(waiting):
            raise ValidationFailed(f"decisions: the calls that wait are {', '.join(waiting)}")
        return PendingTurn(identifier, turn, record)

    async def claim(self, waiting: PendingTurn) -> None:
        """Take a turn up that was found. Who is cancelled meanwhile leaves it waiting.

        Raises:
            NotFound: somebody else was faster, its time is over, or its conversation was forgotten.
        """
        key = _key(waiting.identifier)
        taking = asyncio.ensure_future(self._store.delete(key))
        try:
            taken = await asyncio.shield(taking)
        except asyncio.CancelledError:
            with suppress(StoreUnavailable):
                if await taking:
                    await self._store.put(key, waiting.record, ttl=self.ttl)
            raise
        if not taken:
            raise _nothing_waits()

    async def delete(self, conversation: str) -> None:
        """Forget the turns of a conversation that wait."""
        listed = await self._listed(conversation)
        await self._store.delete(*map(_key, listed), _list_key(conversation))

    async def _list(self, conversation: str, identifier: str) -> None:
        """Note that a turn of a conversation waits, before it does: what is not noted could not be forgotten."""
        listed = [*await self._listed(conversation), identifier]
        await self._store.put(_list_key(conversation), to_json(listed[-_LISTED:]), ttl=self.ttl)
        await self._store.delete(*map(_key, listed[:-_LISTED]))

    async def _listed(self, conversation: str) -> list[str]:
        try:
            return _IDENTIFIERS.validate_json(await self._store.get(_list_key(conversation)) or b"[]")
        except ValidationError:  # somebody has written over it
            return []


class ConsentAdvisor(Advisor):
    """Keeps a turn that pauses, and takes up the one that goes on.

    It stands inside the memory and right outside the tool loop: while the conversation is locked, so that a turn
    cannot be kept beyond its conversation, and after everything that could refuse it, so that a turn is taken up only
    when its tools run next.

    Args:
        store: where paused turns are.
        advisors: those of the question.
        taken: the turn that goes on, if one does.
    """

    order = 290

    def __init__(self, store: ApprovalStore, advisors: Sequence[Advisor], taken: PendingTurn | None = None) -> None:
        self.pending: dict[str, Any] | None = None
        """What a client is told of the answer when it waits."""
        self._store = store
        self._advisors = tuple(advisors)
        self._taken = taken

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`; raises as :meth:`ApprovalStore.claim` and :meth:`ApprovalStore.save`."""
        if self._taken:
            await self._store.claim(self._taken)
        response = await chain.proceed(request, emit)
        is_paused = response.finish_reason == APPROVAL_REQUIRED
        # Whoever consents is not the one who offered tools of his own, and could not run them.
        tools = tuple(tool for tool in request.tools if not tool.metadata.run_by_caller)
        self.pending = await self._kept(PausedTurn(response, tools, self._advisors)) if is_paused else None
        return response

    async def _kept(self, turn: PausedTurn) -> dict[str, Any]:
        identifier = await self._store.save(turn)
        return {"id": identifier, "expires_in": self._store.ttl, "calls": _shown(turn.response)}


def _shown(paused: ChatResponse) -> list[dict[str, Any]]:
    calls = paused.message.tool_calls
    return [{"id": call.id, "name": call.name, "arguments": parse_arguments(call)} for call in calls]


def _nothing_waits() -> NotFound:
    return NotFound("no answer waits for approval under this id; it was decided before, or has expired")


def _key(identifier: str) -> str:
    """The key of a turn of the current caller; another one's turn of this id has another key."""
    return f"approval:{scoped_key(identifier)}"


def _list_key(conversation: str) -> str:
    return f"approvals:{conversation}"
