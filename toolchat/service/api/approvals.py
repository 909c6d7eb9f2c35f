"""Turns that pause for the user's approval: saved, claimed once, and deleted with their conversation."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED
from toolchat.chat.client import ChatClient, PromptSpec
from toolchat.chat.request import Approval, ChatRequest, Emit
from toolchat.chat.session_records import from_records, to_records
from toolchat.errors import CannotPause, DependencyMissing, NotFound, StoreUnavailable, ValidationFailed
from toolchat.messages import AssistantMessage, Message, Usage, UserMessage, sendable, turn_start
from toolchat.models.base import ChatOptions, ChatResponse
from toolchat.service.access.principals import current_request_caller
from toolchat.service.api.approval_tokens import AlreadyDecided, ApprovalTokens, approval_not_found
from toolchat.service.api.conversation_state import ConversationState
from toolchat.service.api.dependencies import scoped_key
from toolchat.service.observability import metrics
from toolchat.state.base import RECORD_VERSION, StateStore, check_version
from toolchat.tool_calling.callback import ToolCallback, ToolCallbackResolver, ToolSet, arguments_fault
from toolchat.tool_calling.caller import Caller
from toolchat.tool_calling.context import CONVERSATION_ID, ToolContext
from toolchat.tool_calling.events import ToolCallFinished, parse_arguments

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

    @property
    def running(self) -> Sequence[Message]:
        """The messages of this turn, without those of earlier turns; the first is the question."""
        return self.response.history[turn_start(self.response.history) :]


class PausedTurnCodec:
    """Converts paused turns to records and back.

    Tools and advisors are stored by name, because another replica or a later version resumes the turn. One that could
    not be found by its name is refused when the turn pauses: later, the error would come after the user has decided.

    Args:
        resolver: finds tools by name.
        advisors: all advisors that a question can have; found by ``record_name``.
    """

    def __init__(self, resolver: ToolCallbackResolver, advisors: Iterable[Advisor]) -> None:
        self._resolver = resolver
        self._advisors = {each.record_name: each for each in advisors}

    def dump(self, paused: PausedTurn) -> bytes:
        """Convert a turn to a record.

        Raises:
            CannotPause: a part of it cannot be stored, or could not be found by its name.
        """
        for fault in self._faults(paused):
            _log.error("an answer cannot wait for approval", extra={"reason": fault})
            raise CannotPause(f"the answer needs an approval and cannot wait for it: {fault}")
        record = {
            "tools": [each.definition.name for each in paused.tools],
            "advisors": [each.record_name for each in paused.advisors],
        }
        return to_json(record | turn_record(paused.response))

    def load(self, value: bytes) -> PausedTurn:
        """Restore the turn of a record.

        Raises:
            DependencyMissing: this process lacks a tool or an advisor, or the record is unreadable.
            StoreUnavailable: a newer version of the service paused the turn.
        """
        try:
            record = from_json(value)
            response = turn_of(record)
            tools = {name: self._resolver.resolve(name) for name in record["tools"]}
            advisors = {name: self._advisors.get(name) for name in record["advisors"]}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _missing("a record of another version of the service") from error
        return PausedTurn(response, _all_of("tool", tools), _all_of("advisor", advisors))

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
    """A paused turn without its tools and advisors as a JSON object."""
    return {
        "version": RECORD_VERSION,
        "messages": to_records((*response.history, response.message)),
        "context": dict(response.context.values),
        "tenant": response.context.caller.tenant,
        "options": asdict(response.options),
        "so_far": _so_far(response.whole_turn()),
    }


def turn_of(record: Mapping[str, Any]) -> ChatResponse:
    """The turn of a record; ``StoreUnavailable`` if a newer version of the service wrote it."""
    check_version(record["version"])
    *history, message = from_records(record["messages"])
    if not isinstance(message, AssistantMessage):
        raise TypeError(message)
    context = ToolContext(record["context"], caller=_caller(record["tenant"]))
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
    )


def _so_far(turn: ChatResponse) -> dict[str, Any]:
    """The turn so far, for its summary: usage, rounds and tool calls."""
    executions = tuple([replace(each, result=sendable(each.result)) for each in turn.executions])
    return {
        "usage": asdict(turn.usage),
        "rounds": turn.rounds,
        "executions": _EXECUTIONS.dump_python(executions, mode="json"),
    }


def _caller(tenant: str) -> Caller:
    """The caller of a resumed turn: the one who approves it, for the tenant of the question unless it has a key."""
    caller = current_request_caller()
    return caller if caller.principal.name else replace(caller, tenant=tenant)


def _is_json(value: object) -> bool:
    """Whether a value survives JSON unchanged; objects, tuples, dates, NaN and lone surrogates do not."""
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
    return DependencyMissing(f"the answer needs {what}, which this process lacks; the answer keeps waiting")


_IDENTIFIERS = TypeAdapter(list[str])
_MAX_PAUSED = 100
"""Paused turns of one conversation; beyond it the oldest are deleted."""


@dataclass(frozen=True, slots=True)
class PendingTurn:
    """A paused turn that was found in the store."""

    identifier: str
    turn: PausedTurn
    record: bytes

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The waiting calls, as the user sees them."""
        return _shown(self.turn.response)

    @property
    def question(self) -> str:
        """The question whose answer waits; empty if its message has no text."""
        return next((each.text for each in self.turn.running if isinstance(each, UserMessage)), "")

    def prompt(self, chat: ChatClient, approvals: Mapping[str, Approval]) -> PromptSpec:
        """The prompt that resumes the turn, given the decisions by call id; a call without one is rejected.

        Raises:
            ValidationFailed: arguments of a decision do not fit the tool; the turn keeps waiting.
        """
        tools = {each.definition.name: each for each in self.turn.tools}
        for call in self.turn.response.waiting_calls:
            decided, tool = approvals.get(call.id), tools.get(call.name)
            if not decided or decided.arguments is None or not tool:
                continue
            if fault := arguments_fault(tool, decided.arguments):
                raise ValidationFailed(f"decisions.{call.id}.arguments: {fault}") from fault
        return chat.resume(self.turn.response, approvals).tools(*self.turn.tools).advisors(*self.turn.advisors)


class ApprovalStore:
    """Stores paused turns: any replica finds them, and exactly one claims each.

    Every operation raises ``StoreUnavailable`` if the store cannot be reached.

    Args:
        store: the state store; its clock expires the records.
        codec: converts turns to records.
        ttl: seconds until a turn expires.
        on_saved: awaited with the conversation, the messages and the id of each turn that is saved.
    """

    def __init__(
        self,
        store: StateStore,
        codec: PausedTurnCodec,
        *,
        ttl: float = 600,
        on_saved: Callable[[str, Sequence[Message], str], Awaitable[None]] | None = None,
    ) -> None:
        self.ttl = ttl
        self._on_saved = on_saved
        self.tokens = ApprovalTokens(store, ttl=ttl)
        """Tokens with which people decide who have no key."""
        self._store = store
        self._lists = ConversationState(store, "approvals", ttl=ttl)
        self._codec = codec

    async def save(self, turn: PausedTurn) -> str:
        """Save a paused turn.

        Returns:
            The id that claims it, 128 random bits.

        Raises:
            CannotPause: see :meth:`PausedTurnCodec.dump`.
            SessionBusy: another request has taken the conversation over.
        """
        record, identifier = self._codec.dump(turn), secrets.token_urlsafe(16)
        await self._store.put(_key(identifier), record, ttl=self.ttl)
        if conversation := turn.response.context.get(CONVERSATION_ID):
            await self._list(conversation, identifier)
            if self._on_saved is not None:
                await self._on_saved(conversation, turn.running, identifier)
        metrics.APPROVALS.inc()
        return identifier

    async def is_waiting(self, identifier: str) -> bool:
        """Whether a turn of the current principal still waits under this id."""
        return await self._store.get(_key(identifier)) is not None

    async def waits_in(self, conversation: str) -> bool:
        """Whether a turn of this conversation waits."""
        return any([await self.is_waiting(each) for each in await self._listed(conversation)])

    async def find(self, identifier: str, decided: Collection[str] = ()) -> PendingTurn:
        """Find a paused turn without claiming it, and check that the decisions are about its calls.

        Raises:
            NotFound: the id does not exist or has expired; ``AlreadyDecided`` if it was used.
            ValidationFailed: a decision is about a call that the turn does not have.
            DependencyMissing: this replica lacks a tool or an advisor of the turn.
        """
        record = await self._store.get(_key(identifier))
        if record is None:
            raise await self._absence(identifier)
        turn = self._codec.load(record)
        waiting = [call.id for call in turn.response.waiting_calls]
        if not set(decided) <= set(waiting):
            raise ValidationFailed(f"decisions: the calls that wait are {', '.join(waiting)}")
        return PendingTurn(identifier, turn, record)

    async def claim(self, waiting: PendingTurn, approvals: Mapping[str, Approval]) -> None:
        """Claim a turn that was found, so that its tools run once; the approvals are told to whoever comes later.

        Deleting the record is the claim: the store deletes it for exactly one replica. If the request is cancelled in
        the meantime, the deletion is still awaited and the record restored, so that the user can decide again.

        Raises:
            NotFound: it has expired, or its conversation was deleted; ``AlreadyDecided`` if another request claimed it.
        """
        key = _key(waiting.identifier)
        deleting = asyncio.ensure_future(self._store.delete(key))
        try:
            # Shielded: if the deletion were cancelled, its result would be unknown.
            claimed = await asyncio.shield(deleting)
        except asyncio.CancelledError:
            with suppress(StoreUnavailable):
                if await deleting:
                    await self._store.put(key, waiting.record, ttl=self.ttl)
            raise
        if not claimed:
            raise await self._absence(waiting.identifier)
        with suppress(StoreUnavailable):  # the calls run all the same
            await self._store.put(_decided_key(waiting.identifier), _decision(approvals).encode(), ttl=self.ttl)

    async def _absence(self, identifier: str) -> NotFound:
        """The error for a turn that waits no longer, or never did."""
        decision = await self._store.get(_decided_key(identifier))
        return AlreadyDecided(f"it was decided before: {decision.decode()}") if decision else approval_not_found()

    async def delete(self, conversation: str) -> None:
        """Delete the paused turns of a conversation."""
        listed = await self._listed(conversation)
        await self._lists.put(conversation, b"")
        await self._store.delete(*map(_key, listed), *map(_decided_key, listed))

    async def _list(self, conversation: str, identifier: str) -> None:
        """List a saved turn under its conversation, with which it is deleted.

        If another request has taken the conversation over, the turn cannot be listed and is never found: its id was not
        sent yet.
        """
        listed = [*await self._listed(conversation), identifier]
        await self._lists.put(conversation, to_json(listed[-_MAX_PAUSED:]))
        await self._store.delete(*map(_key, listed[:-_MAX_PAUSED]))

    async def _listed(self, conversation: str) -> list[str]:
        try:
            return _IDENTIFIERS.validate_json(await self._lists.get(conversation) or b"[]")
        except ValidationError:  # the stored value is corrupt
            return []


class ConsentAdvisor(Advisor):
    """Saves a turn that pauses, and claims a turn that resumes.

    Its order is inside the memory and directly outside the tool loop. Inside the memory the conversation is locked, so
    that no turn is saved while its conversation is deleted. Next to the loop everything that could refuse the request
    has run, so that a turn is claimed only if its tools run next.

    Args:
        store: stores paused turns.
        advisors: the advisors of the question.
        tools: the tools of the question, before any advisor changed them: they are saved, and the advisors change them
            again when the turn resumes.
        taken: the turn to resume, if any.
    """

    order = 290

    def __init__(
        self,
        store: ApprovalStore,
        advisors: Sequence[Advisor],
        tools: ToolSet,
        taken: PendingTurn | None = None,
    ) -> None:
        self.pending: dict[str, Any] | None = None
        """The approval that the answer waits for: its id, its seconds, and the calls."""
        self._store = store
        self._advisors = tuple(advisors)
        # Tools that the client runs are not saved: the decision may come from another client, which does not have them.
        self._tools = tools.service_tools
        self._taken = taken

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`; raises as :meth:`ApprovalStore.claim` and :meth:`ApprovalStore.save`."""
        if self._taken:
            await self._store.claim(self._taken, request.resume.approvals if request.resume else {})
        response = await chain.proceed(request, emit)
        is_paused = response.finish_reason == APPROVAL_REQUIRED
        self.pending = await self._save(PausedTurn(response, self._tools, self._advisors)) if is_paused else None
        return response

    async def _save(self, turn: PausedTurn) -> dict[str, Any]:
        identifier = await self._store.save(turn)
        return {"id": identifier, "expires_in": self._store.ttl, "calls": _shown(turn.response)}


def _shown(paused: ChatResponse) -> list[dict[str, Any]]:
    calls = paused.waiting_calls
    return [{"id": call.id, "name": call.name, "arguments": parse_arguments(call)} for call in calls]


def _decision(approvals: Mapping[str, Approval]) -> str:
    """What was decided, and when: ``approved at 2026-11-24T09:30:00+00:00``."""
    approved = {each.approved for each in approvals.values()}
    word = "partly approved" if len(approved) > 1 else "approved" if True in approved else "rejected"
    return f"{word} at {datetime.now(UTC).isoformat(timespec='seconds')}"


def _key(identifier: str) -> str:
    """The key of a turn of the current principal; the same id of another principal has another key."""
    return f"approval:{scoped_key(identifier)}"


def _decided_key(identifier: str) -> str:
    # Not the turn's own key: whoever deletes that one has claimed the turn.
    return f"approval-decided:{scoped_key(identifier)}"
