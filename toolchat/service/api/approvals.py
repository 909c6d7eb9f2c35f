"""Turns that wait for approval: saved, shown to those who may decide, and claimed once by one of them."""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import to_json

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED
from toolchat.chat.client import ChatClient, PromptSpec
from toolchat.chat.manual_execution import without_model
from toolchat.chat.memory import ChatMemory, current_lock
from toolchat.chat.request import Approval, ChatRequest, Emit
from toolchat.errors import Forbidden, NotFound, SessionBusy, StoreUnavailable, ValidationFailed
from toolchat.models.base import ChatResponse
from toolchat.service.access.principals import ASK, Principal, RequestCaller, current_request_caller
from toolchat.service.api.approval_records import (
    ASKED,
    AlreadyDecided,
    ApprovalTokens,
    Asked,
    Decided,
    approval_not_found,
    decision_word,
    iso,
    link_to,
    lists_of,
    read_decided,
    read_waiting,
)
from toolchat.service.api.approval_webhook import DECIDED, REQUESTED, ApprovalWebhook
from toolchat.service.api.audit import AuditTrail, log, records_of
from toolchat.service.api.dependencies import parts_of
from toolchat.service.api.paused_turns import PausedTurn, PausedTurnCodec
from toolchat.service.observability import metrics
from toolchat.state.base import Committed, StateStore, Write
from toolchat.tool_calling.callback import ToolCallback, arguments_fault, required_approver
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.events import parse_arguments

Checks = Mapping[str, Sequence[bytes | None]]


@dataclass(frozen=True, slots=True)
class PendingTurn:
    """A paused turn that was found in the store."""

    turn: PausedTurn
    record: bytes
    asked: Asked
    decider: RequestCaller
    """Who found it, to decide about it."""
    caller: RequestCaller
    """For whom it resumes: who asked, with the rights of now."""

    def prompt(self, chat: ChatClient, approvals: Mapping[str, Approval]) -> PromptSpec:
        """The prompt that resumes the turn, given the decisions by call id; a call without one is rejected."""
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
    """Stores paused turns: any replica finds them for those who may see them, and exactly one claims each."""

    def __init__(
        self, store: StateStore, codec: PausedTurnCodec, audit: AuditTrail, memory: ChatMemory | None = None
    ) -> None:
        self.ttl = 600.0
        """Seconds in which who asked can decide."""
        self.approver_ttl = 86_400.0
        """Seconds in which somebody else can decide, and for which it is then shown what was decided."""
        self.tokens = ApprovalTokens(store)
        """Tokens with which people decide who have no key."""
        self.webhook: ApprovalWebhook | None = None
        """Tells of approvals that somebody else decides; set by the service, if it has one."""
        self.audit = audit
        self.known: Callable[[Principal], Principal | None] = lambda principal: principal
        """A principal with its rights of now; replaced by the service, which knows the keys."""
        self._store, self._codec, self._memory = store, codec, memory

    async def save(self, turn: PausedTurn, identifier: str = "") -> Asked:
        """Save a paused turn of the current caller, under an id of 128 random bits unless one is given."""
        record = self._codec.dump(turn)
        ttl = self.approver_ttl if turn.response.approvers else self.ttl
        asked = asked_by_caller(turn, identifier or secrets.token_urlsafe(16), ttl)
        write = self._waiting(asked, to_json(record | {"asked": ASKED.dump_python(asked, mode="json")}))
        # One that has the id already was the first of several equal requests.
        keys = _key(asked.identifier), _decided_key(asked.identifier)
        free: dict[str, Sequence[bytes | None]] = dict.fromkeys(keys, (None,))
        fence = lock.fence if (lock := current_lock.get()) else {}
        saved = await self._commit(REQUESTED, asked, [write], {**free, **fence})
        if not saved.is_done:
            if not any(saved.found[key] for key in keys):
                raise SessionBusy("another request took the session over; this one changed nothing")
            return asked
        if asked.conversation and self._memory is not None and not turn.is_direct:
            await self._memory.note_approval(asked.conversation, turn.running, asked.identifier)
        metrics.APPROVALS.inc()
        return asked

    async def _commit(self, kind: str, asked: Asked, writes: list[Write], checks: Checks) -> Committed:
        """Write what became of an approval, and in the same step what the webhook tells of it."""
        told = [self.webhook.event(kind, asked.identifier)] if self.webhook and asked.roles else []
        return await self._store.commit([*writes, *told], checks=checks, name=kind)

    async def describe(self, kind: str, identifier: str, receiver: str, address: str) -> dict[str, Any] | None:
        """What an event of the webhook tells, with a link to decide; ``None`` if it is no longer so."""
        asked, record = await self._read(identifier)
        if asked is None or (record is not None) != (kind == REQUESTED):
            return None
        principal = Principal(receiver, roles=asked.roles, tenant=asked.tenant)
        data = self.document(asked, principal) | {"inbox": f"{address}/approvals"}
        if record is not None:
            token = await self.tokens.issue(identifier, max(asked.expires - time.time(), 1), principal)
            data["link"] = link_to(address, identifier, token)
        return data

    async def is_waiting(self, identifier: str) -> bool:
        return await self._store.get(_key(identifier)) is not None

    async def waits_in(self, conversation: str) -> bool:
        listed = [await self._store.listed(name, limit=100) for name in parts_of(conversation)]
        return any(key.startswith(_key("")) for each in listed for key, *_ in each)

    async def find(self, identifier: str, approvals: Mapping[str, Approval] | None = None) -> PendingTurn:
        """Find a paused turn without claiming it, and check that the decisions are its caller's and about its calls."""
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
        return PendingTurn(turn, record, asked, decider, caller)

    async def show(self, identifier: str) -> dict[str, Any]:
        """The document of an approval, whether it waits or was decided; raises ``NotFound``."""
        asked, record = await self._visible(identifier)
        if asked is None:
            raise approval_not_found()
        if record is not None:
            self._codec.load(record)
        return self.document(asked)

    async def claim(self, waiting: PendingTurn, approvals: Mapping[str, Approval], door: str = "") -> None:
        """Claim a turn that was found, so that its tools run once, and record the decisions."""
        asked, by = waiting.asked, waiting.decider.principal.name
        self._check_decider(asked, waiting.decider.principal)
        await self._check_changes(waiting, approvals)
        records = records_of(asked, approvals, by, door)
        decided = Decided(decision_word(approvals), by, door, time.time(), approvals)
        # Deleting the record is the claim: the store does it for exactly one replica.
        writes = [Write(_key(asked.identifier)), self._decided(asked, decided), *self.audit.writes(records)]
        checks = {_key(asked.identifier): (waiting.record,)}
        committing = asyncio.ensure_future(self._commit(DECIDED, asked, writes, checks))
        try:
            # Shielded: if it were cancelled, its result would be unknown. It is undone, to be decided again.
            outcome = await asyncio.shield(committing)
        except asyncio.CancelledError:
            with suppress(StoreUnavailable):
                if (await committing).is_done:
                    undone = [Write(each.key) for each in writes[1:]]
                    await self._store.commit([self._waiting(asked, waiting.record), *undone], name="undo")
            raise
        if not outcome.is_done:
            raise _absence((await self._visible(asked.identifier, waiting.decider.principal))[0])
        log(records)

    async def note_outcome(
        self, waiting: PendingTurn, *, answer: str = "", failure: str = "", approval: str = ""
    ) -> None:
        """Store what came of a decision, for those who are not the client of the resumed answer."""
        if waiting.asked.roles:
            with suppress(StoreUnavailable):  # the answer is there all the same
                asked, _ = await self._read(waiting.asked.identifier)
                if asked and asked.decided:
                    decided = replace(asked.decided, answer=answer, failure=failure, approval=approval)
                    await self._store.commit([self._decided(asked, decided)], name="put")

    def _check_decider(self, asked: Asked, principal: Principal) -> None:
        current = self.known(principal)
        if current is None or not asked.may_see(current):
            raise approval_not_found()
        if not asked.may_decide(current):
            raise asked.refusal()
        asker = self.known(asked.principal)
        if asker is None or ASK not in asker.roles:
            raise Forbidden("the key that asked was withdrawn, has expired or may not ask any more")

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

    async def _visible(self, identifier: str, principal: Principal | None = None) -> tuple[Asked | None, bytes | None]:
        """An approval and its record while it waits, if a principal may see it: by default the current one."""
        asked, record = await self._read(identifier)
        is_shown = asked and asked.may_see(principal or current_request_caller().principal)
        return (asked, record) if is_shown else (None, None)

    async def _read(self, identifier: str) -> tuple[Asked | None, bytes | None]:
        """An approval, and its record while it waits."""
        if (record := await self._store.get(_key(identifier))) is not None:
            return read_waiting(record), record
        decided = await self._store.get(_decided_key(identifier))
        return (None if decided is None else read_decided(decided)), None

    def document(self, asked: Asked, principal: Principal | None = None) -> dict[str, Any]:
        """An approval as a principal sees it, by default the current one."""
        document = asked.document(principal or current_request_caller().principal, time.time())
        return document | {"calls": [each | self._codec.described(each["name"], asked.roles) for each in asked.calls]}

    def _waiting(self, asked: Asked, record: bytes) -> Write:
        # Kept if somebody else has to see it first; who only confirms can ask again.
        left = max(asked.expires - time.time(), 1)
        return Write(_key(asked.identifier), record, left, is_kept=bool(asked.roles), lists=lists_of(asked))

    def _decided(self, asked: Asked, decided: Decided) -> Write:
        asked = replace(asked, decided=decided)
        ttl = self.approver_ttl if asked.roles else self.ttl
        return Write(_decided_key(asked.identifier), ASKED.dump_json(asked), ttl, lists=lists_of(asked))


def _absence(asked: Asked | None) -> NotFound:
    if asked is None or asked.decided is None:
        return approval_not_found()
    return AlreadyDecided(f"it was decided before: {asked.decided.decision} at {iso(asked.decided.at, 'seconds')}")


class ConsentAdvisor(Advisor):
    """Saves a turn that pauses, and claims a turn that resumes.

    Its order is inside the memory and directly outside the tool loop. Inside the memory the conversation is locked, so
    that no turn is saved while its conversation is deleted. Next to the loop everything that could refuse the request
    has run, so that a turn is claimed only if its tools run next. The tools are those before any advisor changed them,
    since the advisors change them again when the turn resumes.
    """

    order = 290

    def __init__(
        self, store: ApprovalStore, prompt: PromptSpec, taken: PendingTurn | None = None, door: str = ""
    ) -> None:
        self.pending: dict[str, Any] | None = None
        """The approval that the answer waits for: its id, its seconds, and the calls."""
        self.has_claimed = False
        """Whether the turn to resume was claimed."""
        self._store = store
        self._advisors = prompt.own_advisors
        # Tools that the client runs are not saved: the decision may come from another client, which does not have them.
        self._tools = prompt.request.tool_set.service_tools
        self._taken, self._door = taken, door

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        if self._taken and request.resume:
            await self._store.claim(self._taken, request.resume.approvals, self._door)
            self.has_claimed = True
            name = self._taken.decider.name
            signed = {call: replace(each, by=name) for call, each in request.resume.approvals.items()}
            request = replace(request, resume=replace(request.resume, approvals=signed))
        response = await chain.proceed(request, emit)
        if response.finish_reason == APPROVAL_REQUIRED:
            asked = await self._store.save(PausedTurn(response, self._tools, self._advisors))
            left = round(asked.expires - asked.at)
            self.pending = {"id": asked.identifier, "expires_in": left, "calls": asked.calls}
        return response


def asked_by_caller(turn: PausedTurn, identifier: str, ttl: float) -> Asked:
    caller, now = current_request_caller(), time.time()
    who = caller.principal, caller.client_key, caller.tenant
    paused = turn.response
    calls = [
        {"id": call.id, "name": call.name, "arguments": parse_arguments(call)}
        | ({"approver": role} if (role := paused.approvers.get(call.id)) else {})
        for call in paused.waiting_calls
    ]
    conversation = paused.context.get(CONVERSATION_ID) or ""
    return Asked(identifier, *who, conversation, turn.question, calls, now, now + ttl)


def _key(identifier: str) -> str:
    return f"approval:{identifier}"


def _decided_key(identifier: str) -> str:
    # Not the turn's own key: whoever deletes that one has claimed the turn.
    return f"approval-decided:{identifier}"
