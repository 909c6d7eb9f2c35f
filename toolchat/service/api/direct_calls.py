"""Calls of tools without a model that somebody else than the caller has to approve."""

import time
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from math import inf
from typing import Any

from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED
from toolchat.chat.client import PromptSpec
from toolchat.chat.request import Approval
from toolchat.errors import NotFound
from toolchat.messages import AssistantMessage, ToolCall, Usage
from toolchat.models.base import ChatResponse
from toolchat.service.access.principals import APPROVE, current_request_caller
from toolchat.service.api.approvals import ApprovalStore, asked_by_caller
from toolchat.service.api.audit import records_of
from toolchat.service.api.paused_turns import PausedTurn
from toolchat.tool_calling.callback import required_approver


@dataclass(frozen=True, slots=True)
class DirectCall:
    """A call of a tool without a model, and the role of who has to approve it."""

    prompt: PromptSpec
    call: ToolCall
    role: str | None
    """``None``: nobody; empty: the caller, by calling it."""

    @classmethod
    async def of(cls, prompt: PromptSpec) -> "DirectCall":
        """The call of a prompt from :func:`manual_request`."""
        if (resume := prompt.request.resume) is None:
            raise TypeError("the prompt is no manual execution")
        (tool,), (call,) = prompt.request.tools, resume.message.tool_calls
        return cls(prompt, call, await required_approver(tool, call.arguments, prompt.request.context))

    def may_run(self) -> bool:
        """Whether the caller has what the call requires, so that it may run at once."""
        principal = current_request_caller().principal
        return not self.role or bool(principal.name and {self.role, APPROVE} & principal.roles)

    async def wait(self, approvals: ApprovalStore, once: str, seconds: float = inf) -> dict[str, Any]:
        """Let the call wait for approval, or find the approval of the same call; returns its document."""
        identifier = _identifier(once)
        try:
            found = await approvals.show(identifier)
        except NotFound:
            await approvals.save(self._turn(), identifier)
            return await approvals.show(identifier)
        if "at" in found and time.time() - datetime.fromisoformat(found["at"]).timestamp() > seconds:
            return await self.wait(approvals, f"{once} {found['at']}", seconds)
        return found

    async def record(self, approvals: ApprovalStore, once: str, door: str) -> None:
        """Record that the caller has decided about it by itself."""
        asked = asked_by_caller(self._turn(), _identifier(once), approvals.ttl)
        decided = {each["id"]: Approval(True) for each in asked.calls}
        for record in records_of(asked, decided, asked.principal.name, door):
            await approvals.audit.record(record)

    def _turn(self) -> PausedTurn:
        request = self.prompt.request
        waiting = ChatResponse(
            AssistantMessage(tool_calls=(self.call,)),
            APPROVAL_REQUIRED,
            Usage(),
            "",
            context=request.context,
            options=request.options,
            approvers={self.call.id: self.role or ""},
        )
        return PausedTurn(waiting, request.tools, (), is_direct=True)


def _identifier(once: str) -> str:
    return sha256(f"direct\n{once}".encode()).hexdigest()[:32]
