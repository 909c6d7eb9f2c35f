"""Turns that wait for approval: saved, shown to those who may decide, and claimed once by one of them."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED
from toolchat.chat.client import ChatClient, PromptSpec
from toolchat.chat.manual_execution import without_model
from toolchat.chat.request import Approval, ChatRequest, Emit, Resume
from toolchat.errors import Forbidden, NotFound, StoreUnavailable, ValidationFailed
from toolchat.messages import Message
from toolchat.models.base import ChatResponse
from toolchat.service.access.principals import ASK, Principal, RequestCaller, current_request_caller
from toolchat.service.api.approval_inbox import lists_of
from toolchat.service.api.approval_records import (
    ASKED,
    Asked,
    Decided,
    decision_word,
    iso,
    read_decided,
    read_waiting,
)
from toolchat.service.api.approval_tokens import AlreadyDecided, ApprovalTokens, approval_not_found
from toolchat.service.api.audit import AuditTrail, log, records_of
from toolchat.service.api.conversation_state import ConversationState
from toolchat.service.api.paused_turns import PausedTurn, PausedTurnCodec
from toolchat.service.observability import metrics
from toolchat.state.base import StateStore, Write
from toolchat.tool_calling.callback import ToolCallback, ToolSet, arguments_fault, required_approver
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.events import parse_arguments

_IDENTIFIERS = TypeAdapter(list[str])
_DAY = 86_400.0
"""Seconds in which somebody else can decide, and for which it is then shown what was decided."""
_MAX_PAUSED = 100
"""Paused turns of one conversation; beyond it the oldest are deleted."""


@dataclass(frozen=True, slots=True)
class PendingTurn:
    """A paused turn that was found in the store."""

    identifier: str
    turn: PausedTurn
    record: bytes
    asked: Asked
    decider: RequestCaller
    """Who found it, to decide about it."""
    caller: RequestCaller
    """For whom it resumes: who asked, with the rights of now."""

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The waiting calls, as the user sees them."""
        return self.asked.calls

    def prompt(self, chat: ChatClient, approvals: Mapping[str, Approval]) -> PromptSpec:
        """The prompt that resumes the turn, given the decisions by call id; a call without one is rejected.

        Raises:
            ValidationFailed: arguments of a decision do not fit the tool; the turn keeps waiting.
        """
        for call_id, _, arguments, tool in self.changes(approvals):
            if fault := arguments_fault(tool, arguments):
                raise ValidationFailed(f"decisions.{call_id}.arguments: {fault}") from fault
        client = without_model(chat) if self.turn.is_direct else chat
        return client.resume(self.turn.response, approvals).tools(*self.turn.tools).advisors(*self.turn.advisors)

    def changes(self, approvals: Mapping[str, Approval]) -> list[tuple[str, str, str, ToolCallback]]:
        """The approved calls whose arguments a decision replaces: id, tool's name, new arguments and tool."""
        tools = {each.definition.name: each for each in self.turn.tools}
        return [
            (call.id, call.name, decided.arguments, tools[call.name])
            for call in self.turn.response.waiting_calls
            if (decided := approvals.get(call.id)) and decided.arguments is not None and call.name in tools
        ]


class ApprovalStore:
    """Stores paused turns: any replica finds them for those who may see them, and exactly one claims each.

    Every operation raises ``StoreUnavailable`` if the store cannot be reached.

    Args:
        store: the state store; its clock expires the records.
        codec: converts turns to records.
        ttl: seconds until a turn expires that who asked confirms; others have a day.
        audit: keeps the decisions.
        on_saved: awaited with the conversation, the messages and the id of each turn that is saved.
    """

    def __init__(
        self,
        store: StateStore,
        codec: PausedTurnCodec,
        *,
        ttl: float = 600,
        audit: AuditTrail | None = None,
        on_saved: Callable[[str, Sequence[Message], str], Awaitable[None]] | None = None,
    ) -> None:
        self.ttl = ttl
        self._on_saved = on_saved
        self.tokens = ApprovalTokens(store, ttl=ttl)
        """Tokens with which people decide who have no key."""
        self.audit = audit or AuditTrail(store)
        self.known: Callable[[Principal], Principal | None] = lambda principal: principal
        """A principal with its rights of now; replaced by the service, which knows the keys."""
        self._store = store
        self._lists = ConversationState(store, "approvals", ttl=max(ttl, _DAY))
        self._codec = codec

    async def save(self, turn: PausedTurn, identifier: str = "") -> Asked:
        """Save a paused turn of the current caller, under an id of 128 random bits unless one is given.

        Raises:
            CannotPause: see :meth:`PausedTurnCodec.dump`.
            SessionBusy: another request has taken the conversation over.
        """
        record = self._codec.dump(turn)
        ttl = _DAY if turn.response.approvers else self.ttl
        asked = asked_by_caller(turn, identifier or secrets.token_urlsafe(16), ttl)
        write = self._waiting(asked, to_json(record | {"asked": ASKED.dump_python(asked, mode="json")}))
        # One that has the id already was the first of several equal requests.
        keys = _key(asked.identifier), _decided_key(asked.identifier)
        free: dict[str, Sequence[bytes | None]] = dict.fromkeys(keys, (None,))
        if not (await self._store.commit([write], checks=free, name="put")).is_done:
            return asked
        if asked.conversation:
            await self._list(asked.conversation, asked.identifier)
            if self._on_saved is not None and not turn.is_direct:
                await self._on_saved(asked.conversation, turn.running, asked.identifier)
        metrics.APPROVALS.inc()
        return asked

    async def is_waiting(self, identifier: str) -> bool:
        """Whether a turn still waits under this id."""
        return await self._store.get(_key(identifier)) is not None

    async def waits_in(self, conversation: str) -> bool:
        """Whether a turn of this conversation waits."""
        return any([await self.is_waiting(each) for each in await self._listed(conversation)])

    async def find(self, identifier: str, approvals: Mapping[str, Approval] | None = None) -> PendingTurn:
        """Find a paused turn without claiming it, and check that the decisions are its caller's, and about its calls.

        Raises:
            NotFound: the id does not exist or has expired, or not for the caller; ``AlreadyDecided`` if it was used.
            ValidationFailed: a decision is about a call that the turn does not have.
            DependencyMissing: this replica lacks a tool or an advisor of the turn.
            ApprovalByAnother, Forbidden: see :meth:`claim`.
        """
        asked, record = await self._visible(identifier)
        if asked is None or record is None:
            raise _absence(asked)
        decider = current_request_caller()
        if approvals is not None:
            self._check_decider(asked, decider.principal)
        turn = self._codec.load(record)
        waiting = [call.id for call in turn.response.waiting_calls]
        if not set(approvals or ()) <= set(waiting):
            raise ValidationFailed(f"decisions: the calls that wait are {', '.join(waiting)}")
        caller = asked.caller(decider, self.known(asked.principal) or asked.principal)
        return PendingTurn(identifier, turn, record, asked, decider, caller)

    async def show(self, identifier: str) -> dict[str, Any]:
        """The document of an approval, whether it waits or was decided; raises ``NotFound``."""
        asked, record = await self._visible(identifier)
        if asked is None:
            raise approval_not_found()
        if record is not None:
            self._codec.load(record)
        return self.document(asked)

    async def claim(self, waiting: PendingTurn, approvals: Mapping[str, Approval], door: str = "") -> None:
        """Claim a turn that was found, so that its tools run once, and record the decisions.

        Deleting the record is the claim: the store does it for exactly one replica, in one step with the record of what
        was decided. If the request is cancelled in the meantime, the step is still awaited and undone, so that the turn
        can be decided again.

        Raises:
            ApprovalByAnother: the decision is somebody else's.
            Forbidden: who asked may not ask any more.
            NotFound: it has expired, or its conversation was deleted; ``AlreadyDecided`` if another request claimed it;
                or the caller has lost the role that it takes.
            ValidationFailed: the arguments were changed, which takes another decision.
        """
        asked, by = waiting.asked, waiting.decider.principal.name
        self._check_decider(asked, waiting.decider.principal)
        await self._check_changes(waiting, approvals)
        records = records_of(asked, approvals, by, door)
        decided = Decided(decision_word(approvals), by, door, time.time(), approvals)
        writes = [Write(_key(asked.identifier)), self._decided(asked, decided), *self.audit.writes(records)]
        checks = {_key(asked.identifier): (waiting.record,)}
        committing = asyncio.ensure_future(self._store.commit(writes, checks=checks, name="decide"))
        try:
            # Shielded: if it were cancelled, its result would be unknown.
            outcome = await asyncio.shield(committing)
        except asyncio.CancelledError:
            with suppress(StoreUnavailable):
                if (await committing).is_done:
                    undone = [Write(each.key) for each in writes[1:]]
                    await self._store.commit([self._waiting(asked, waiting.record), *undone], name="undo")
            raise
        if not outcome.is_done:
            raise _absence((await self._visible(asked.identifier))[0])
        log(records)

    async def note_outcome(
        self, waiting: PendingTurn, *, answer: str = "", failure: str = "", approval: str = ""
    ) -> None:
        """Store what came of a decision, for those who are not the client of the resumed answer."""
        if waiting.asked.roles:
            with suppress(StoreUnavailable):  # the answer is there all the same
                asked, _ = await self._visible(waiting.identifier)
                if asked and asked.decided:
                    decided = replace(asked.decided, answer=answer, failure=failure, approval=approval)
                    await self._store.commit([self._decided(asked, decided)], name="put")

    def _check_decider(self, asked: Asked, principal: Principal) -> None:
        """Check who decides, and for whom, by the rights of now."""
        current = self.known(principal)
        if current is None or not asked.may_see(current):
            raise approval_not_found()
        if not asked.may_decide(current):
            raise asked.refusal()
        asker = self.known(asked.principal)
        if asker is None or ASK not in asker.roles:
            raise Forbidden("the key or the token that asked is no longer valid, so nothing can run for it")

    async def _check_changes(self, waiting: PendingTurn, approvals: Mapping[str, Approval]) -> None:
        """Check that the decider may change the arguments, and is the one whom the changed ones require."""
        asked, principal = waiting.asked, waiting.decider.principal
        for call_id, name, arguments, tool in waiting.changes(approvals):
            if asked.roles and not tool.metadata.approver_may_edit:
                raise ValidationFailed(f"decisions.{call_id}.arguments: who approves {name} may not change them")
            role = await required_approver(tool, arguments, waiting.turn.response.context)
            changed = replace(asked, calls=[{"name": name, "approver": role}]) if role else asked
            if not changed.may_decide(principal):
                raise changed.refusal()

    async def _visible(self, identifier: str) -> tuple[Asked | None, bytes | None]:
        """An approval and its record while it waits, if the current principal may see it."""
        asked, record = None, await self._store.get(_key(identifier))
        if record is not None:
            asked = read_waiting(record)
        elif (decided := await self._store.get(_decided_key(identifier))) is not None:
            asked = read_decided(decided)
        if asked is None or not asked.may_see(current_request_caller().principal):
            return None, None
        return asked, record

    def document(self, asked: Asked) -> dict[str, Any]:
        """An approval as the current principal sees it."""
        document = asked.document(current_request_caller().principal, time.time())
        return document | {"calls": [each | self._codec.described(each["name"], asked.roles) for each in asked.calls]}

    def _waiting(self, asked: Asked, record: bytes) -> Write:
        # Kept if somebody else has to see it first; who only confirms can ask again.
        left = max(asked.expires - time.time(), 1)
        return Write(_key(asked.identifier), record, left, is_kept=bool(asked.roles), lists=lists_of(asked))

    def _decided(self, asked: Asked, decided: Decided) -> Write:
        asked = replace(asked, decided=decided)
        ttl = _DAY if asked.roles else self.ttl
        return Write(_decided_key(asked.identifier), ASKED.dump_json(asked), ttl, lists=lists_of(asked))

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


def _absence(asked: Asked | None) -> NotFound:
    """The error for a turn that waits no longer, or never did."""
    if asked is None or asked.decided is None:
        return approval_not_found()
    return AlreadyDecided(f"it was decided before: {asked.decided.decision} at {iso(asked.decided.at, 'seconds')}")


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
        door: by which way a decision has come.
    """

    order = 290

    def __init__(
        self,
        store: ApprovalStore,
        advisors: Sequence[Advisor],
        tools: ToolSet,
        taken: PendingTurn | None = None,
        door: str = "",
    ) -> None:
        self.pending: dict[str, Any] | None = None
        """The approval that the answer waits for: its id, its seconds, and the calls."""
        self.has_claimed = False
        """Whether the turn to resume was claimed."""
        self._store = store
        self._advisors = tuple(advisors)
        # Tools that the client runs are not saved: the decision may come from another client, which does not have them.
        self._tools = tools.service_tools
        self._taken, self._door = taken, door

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`; raises as :meth:`ApprovalStore.claim` and :meth:`ApprovalStore.save`."""
        if self._taken and request.resume:
            await self._store.claim(self._taken, request.resume.approvals, self._door)
            self.has_claimed = True
            request = replace(request, resume=_signed(request.resume, self._taken.decider.name))
        response = await chain.proceed(request, emit)
        is_paused = response.finish_reason == APPROVAL_REQUIRED
        self.pending = await self._save(PausedTurn(response, self._tools, self._advisors)) if is_paused else None
        return response

    async def _save(self, turn: PausedTurn) -> dict[str, Any]:
        asked = await self._store.save(turn)
        return {"id": asked.identifier, "expires_in": round(asked.expires - asked.at), "calls": asked.calls}


def _signed(resume: Resume, name: str) -> Resume:
    """The decisions with the name of who has made them."""
    return replace(resume, approvals={call: replace(each, by=name) for call, each in resume.approvals.items()})


def asked_by_caller(turn: PausedTurn, identifier: str, ttl: float) -> Asked:
    """The approval of a turn of the current caller."""
    caller, now = current_request_caller(), time.time()
    response = turn.response
    conversation = response.context.get(CONVERSATION_ID) or ""
    return Asked(
        identifier,
        caller.principal,
        caller.client_key,
        caller.tenant,
        conversation,
        turn.question,
        _shown(response),
        now,
        now + ttl,
    )


def _shown(paused: ChatResponse) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "name": call.name, "arguments": parse_arguments(call)}
        | ({"approver": role} if (role := paused.approvers.get(call.id)) else {})
        for call in paused.waiting_calls
    ]


def _key(identifier: str) -> str:
    return f"approval:{identifier}"


def _decided_key(identifier: str) -> str:
    # Not the turn's own key: whoever deletes that one has claimed the turn.
    return f"approval-decided:{identifier}"
