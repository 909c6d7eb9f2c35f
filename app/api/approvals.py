"""Turns that wait for the user's consent: kept, taken up once, and forgotten with their conversation."""

import asyncio
import secrets
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from app.api.ownership import owned
from app.api.paused_turns import PausedTurn, PausedTurnRecords
from app.chat.advisors import Advisor, AdvisorChain
from app.chat.client import ChatClient, PromptSpec
from app.chat.request import Approval, ChatRequest, Emit
from app.chat.tool_calling_advisor import APPROVAL_REQUIRED
from app.chat_models.base import ChatResponse
from app.errors import NotFound, StoreUnavailable, ValidationFailed
from app.state_store.base import StateStore
from app.tool_calling.context import CONVERSATION_ID
from app.tool_calling.events import parsed_arguments

__all__ = ["ApprovalStore", "ConsentAdvisor", "WaitingTurn"]

_IDENTIFIERS = TypeAdapter(list[str])
_LISTED = 100
"""Turns of one conversation that may wait; the oldest give way."""


@dataclass(frozen=True, slots=True)
class WaitingTurn:
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
        records: how they are written.
        ttl: seconds that a turn waits.
    """

    def __init__(self, store: StateStore, records: PausedTurnRecords, *, ttl: float = 600) -> None:
        self.ttl = ttl
        self.kept = 0
        """Turns that have paused at this process."""
        self._store = store
        self._records = records

    async def keep(self, turn: PausedTurn) -> str:
        """Keep a paused turn.

        Returns:
            The id by which it is taken up, 128 random bits.

        Raises:
            PauseImpossible: a part of it cannot be written down, or would not be found again.
        """
        record, identifier = self._records.written(turn), secrets.token_urlsafe(16)
        if conversation := turn.response.context.get(CONVERSATION_ID):
            await self._list(conversation, identifier)
        await self._store.put(_key(identifier), record, ttl=self.ttl)
        self.kept += 1
        return identifier

    async def find(self, identifier: str, decided: Collection[str] = ()) -> WaitingTurn:
        """Look a paused turn up, if the decisions are about its calls; it goes on waiting.

        Raises:
            NotFound: there is none of this id, it was taken up before, or its time is over.
            ValidationFailed: a decision is about a call that the turn does not have.
            PartMissing: this replica lacks a tool or an advisor of the turn.
        """
        record = await self._store.get(_key(identifier))
        if record is None:
            raise _nothing_waits()
        turn = self._records.read(record)
        waiting = [call.id for call in turn.response.message.tool_calls]
        if not set(decided) <= set(waiting):
            raise ValidationFailed(f"decisions: the calls that wait are {', '.join(waiting)}")
        return WaitingTurn(identifier, turn, record)

    async def take(self, waiting: WaitingTurn) -> None:
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

    async def forget(self, conversation: str) -> None:
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

    def __init__(self, store: ApprovalStore, advisors: Sequence[Advisor], taken: WaitingTurn | None = None) -> None:
        self.pending: dict[str, Any] | None = None
        """What a client is told of the answer when it waits."""
        self._store = store
        self._advisors = tuple(advisors)
        self._taken = taken

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`; raises as :meth:`ApprovalStore.take` and :meth:`ApprovalStore.keep`."""
        if self._taken:
            await self._store.take(self._taken)
        response = await chain.proceed(request, emit)
        is_paused = response.finish_reason == APPROVAL_REQUIRED
        # Whoever consents is not the one who offered tools of his own, and could not run them.
        tools = tuple(tool for tool in request.tools if not tool.metadata.run_by_caller)
        self.pending = await self._kept(PausedTurn(response, tools, self._advisors)) if is_paused else None
        return response

    async def _kept(self, turn: PausedTurn) -> dict[str, Any]:
        identifier = await self._store.keep(turn)
        return {"id": identifier, "expires_in": self._store.ttl, "calls": _shown(turn.response)}


def _shown(paused: ChatResponse) -> list[dict[str, Any]]:
    calls = paused.message.tool_calls
    return [{"id": call.id, "name": call.name, "arguments": parsed_arguments(call)} for call in calls]


def _nothing_waits() -> NotFound:
    return NotFound("no answer waits for approval under this id; it was decided before, or has expired")


def _key(identifier: str) -> str:
    """The key of a turn of the current caller; another one's turn of this id has another key."""
    return f"approval:{owned(identifier)}"


def _list_key(conversation: str) -> str:
    return f"approvals:{conversation}"
