"""Turns that wait for the user's consent."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool
from pydantic_core import PydanticSerializationError, from_json, to_json

from app.chat.client import PromptSpec
from app.chat.request import Approval
from app.chat_models.base import ChatResponse
from app.errors import NotFound, ValidationFailed
from app.tool_calling.context import CONVERSATION_ID
from app.tool_calling.events import parsed_arguments

__all__ = ["ApprovalStore", "Decision", "Decisions", "PausedTurn", "pending_record"]


@dataclass(frozen=True, slots=True)
class PausedTurn:
    """What is needed to go on: the answer so far, and what the question was asked with."""

    response: ChatResponse
    prompt: PromptSpec
    expires_at: float
    paused_at: float = field(default_factory=time.time)
    """By the clock that the replicas share."""

    @property
    def conversation(self) -> str | None:
        """The conversation that the turn belongs to, if any."""
        conversation: str | None = self.prompt.request.context.get(CONVERSATION_ID)
        return conversation

    @property
    def size(self) -> int:
        """About how many bytes it keeps in memory."""
        return sum(len(repr(message)) for message in (*self.response.history, self.response.message))


class ApprovalStore:
    """Keeps paused turns for a while, in this process; each can be taken up once.

    Bounded in number, size and time: the oldest give way.
    """

    def __init__(self, *, ttl: float = 600, limit: int = 1000, max_bytes: int = 64 * 1024 * 1024) -> None:
        self.ttl = ttl
        self._limit = limit
        self._max_bytes = max_bytes
        self._bytes = 0
        self._turns: OrderedDict[str, PausedTurn] = OrderedDict()

    def __len__(self) -> int:
        """How many turns wait."""
        return len(self._turns)

    def keep(self, response: ChatResponse, prompt: PromptSpec) -> str:
        """Keep a paused turn.

        Returns:
            The id by which it is taken up, 128 random bits.
        """
        identifier = secrets.token_urlsafe(16)
        self.put_back(identifier, PausedTurn(response, prompt, time.monotonic() + self.ttl))
        return identifier

    def put_back(self, identifier: str, turn: PausedTurn) -> None:
        """Let a turn wait that was taken up, when nothing of it was run."""
        self._turns[identifier] = turn
        self._bytes += turn.size
        while len(self._turns) > self._limit or (self._bytes > self._max_bytes and len(self._turns) > 1):
            self._bytes -= self._turns.popitem(last=False)[1].size

    def take(self, identifier: str, decided: Collection[str] = ()) -> PausedTurn:
        """Take a paused turn up, if the decisions are about its calls.

        Raises:
            NotFound: there is none of this id, it was taken up before, or it has expired.
            ValidationFailed: a decision is about a call that the turn does not have; the turn goes on waiting.
        """
        turn = self._turns.get(identifier)
        if turn is None or turn.expires_at < time.monotonic():
            raise NotFound("no answer waits for approval under this id; it was decided before, or has expired")
        waiting = [call.id for call in turn.response.message.tool_calls]
        if not set(decided) <= set(waiting):
            raise ValidationFailed(f"decisions: the calls that wait are {', '.join(waiting)}")
        return self._remove(identifier)

    def forget(self, conversation: str) -> None:
        """Forget the turns of a conversation that wait."""
        for identifier, turn in list(self._turns.items()):
            if turn.conversation == conversation:
                self._remove(identifier)

    def _remove(self, identifier: str) -> PausedTurn:
        turn = self._turns.pop(identifier)
        self._bytes -= turn.size
        return turn


def _sendable(arguments: dict[str, Any]) -> dict[str, Any]:
    """Make sure that arguments can be sent on as JSON: no lone surrogate, no NaN, no endless nesting."""
    try:
        from_json(to_json(arguments, inf_nan_mode="constants"), allow_inf_nan=False)
    except (PydanticSerializationError, RecursionError) as error:
        raise ValueError("cannot be sent on as JSON") from error
    return arguments


class Decision(BaseModel):
    """A decision about one call."""

    model_config = ConfigDict(extra="forbid")

    approved: StrictBool
    reason: str = Field("", max_length=1000, description="Told to the model when the call is rejected")
    arguments: Annotated[dict[str, Any], AfterValidator(_sendable)] | None = Field(
        None, description="Replaces the model's arguments"
    )

    def as_approval(self) -> Approval:
        """The decision in the words of the chat."""
        return Approval(
            self.approved, self.reason, None if self.arguments is None else to_json(self.arguments).decode()
        )


class Decisions(BaseModel):
    """Decisions by call id; a call without one counts as rejected."""

    model_config = ConfigDict(extra="forbid")

    decisions: dict[str, Decision] = Field(max_length=200)


def pending_record(response: ChatResponse, identifier: str, ttl: float) -> dict[str, Any]:
    """What a client is told of an answer that waits for approval."""
    calls = [
        {"id": call.id, "name": call.name, "arguments": parsed_arguments(call)} for call in response.message.tool_calls
    ]
    return {"id": identifier, "expires_in": ttl, "calls": calls}
