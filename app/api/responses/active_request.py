"""A question that is being answered for one request."""

import time
from collections.abc import Coroutine, Mapping
from math import inf
from typing import Any

from fastapi import Request

from app.access.principals import ALL_TOOLS, current_request_caller
from app.access.quotas import QuotaReservation
from app.api.approvals import ConsentAdvisor, PendingTurn
from app.api.body_limits import connection_of
from app.api.dependencies import session_of
from app.api.service import ServiceState, model_label
from app.observability.logs import hashed
from app.observability.request import current_request
from app.observability.series import OTHER
from app.observability.spans import current_span
from app.observability.traced import agent_run
from toolchat.chat.client import PromptSpec
from toolchat.chat.memory import estimate_size
from toolchat.chat.request import Emit
from toolchat.errors import CLIENT_GONE, DeadlineExceeded, ToolchatError
from toolchat.models.base import ChatResponse
from toolchat.models.resilience import ModelTimeouts
from toolchat.tool_calling.context import CONVERSATION_ID

__all__ = ["ActiveRequest", "answer_document"]


def answer_document(response: ChatResponse, provider: str) -> dict[str, Any]:
    """An answer with its whole trace; ``provider`` is the client's own, which may not have answered."""
    return {
        "answer": response.message.text,
        "model": {"provider": response.provider or provider, "name": response.model},
        "finish_reason": response.finish_reason,
        "rounds": response.rounds,
        "tool_calls": [each.to_dict() for each in response.executions],
        "usage": response.usage.to_dict(),
    }


_READING_SECONDS = 1
"""How long after the deadline a client may still read, if only that the answer was not ready in time."""


class ActiveRequest:
    """A question that is being answered for one request."""

    def __init__(
        self, request: Request, service: ServiceState, prompt: PromptSpec, taken: PendingTurn | None = None
    ) -> None:
        self.service = service
        principal = current_request_caller().principal
        if principal.tools != ALL_TOOLS:
            prompt = prompt.filter_tools(principal.may_use)
        self._consent = ConsentAdvisor(service.approvals, prompt.own_advisors, taken)
        may_pause = any(tool.metadata.requires_approval for tool in prompt.request.tools)
        # A further advisor means a chain of its own for this question: nearly all do without. Those of a folder may
        # offer tools that need consent; the memory does not.
        may_pause = may_pause or prompt.own_advisors not in ((), (service.memory_advisor,))
        self.prompt = prompt.advisors(self._consent) if may_pause or taken else prompt
        self._state: dict[str, Any] = request.scope["state"]
        self.request_id: str = self._state["request_id"]
        self._summary: dict[str, Any] = self._state.setdefault("summary", {})
        self._state.setdefault("form", OTHER)  # from here on it is a question
        self._connection = connection_of(request.scope)
        self._started = time.perf_counter()
        self.reservation = QuotaReservation()
        """What the question uses; set by whoever takes a place for it."""
        self.headers = {"Cache-Control": "no-store", "Vary": "Accept", "X-Chat-Model": service.model_label}
        conversation: str | None = prompt.request.context.get(CONVERSATION_ID)
        self.session = session_of(conversation) if conversation else None
        if self.session:
            self.headers["X-Session-ID"] = self.session
            self._summary["session"] = hashed(self.session)
        sandboxed = [tool.definition.name for tool in prompt.request.tools if tool.metadata.sandbox]
        if sandboxed:
            self.headers["X-Sandbox"] = ", ".join(name for name in sandboxed if name.isascii()) or "true"

    @property
    def client_is_gone(self) -> bool:
        """Whether the client left, so that nobody reads the answer."""
        return self._state.get("outcome") == CLIENT_GONE

    @property
    def pending(self) -> Mapping[str, Any] | None:
        """What waits for approval, when the answer does: its id, seconds, and calls."""
        return self._consent.pending

    @property
    def notice(self) -> str:
        """What the text of an answer that waits for approval says of that; a stream does not tell it before its end."""
        if self._consent.pending is None:
            return ""
        names = ", ".join(call["name"] for call in self._consent.pending["calls"])
        return f"Waiting for approval of {names}: POST /approvals/{self._consent.pending['id']}"

    def complete(self) -> Coroutine[Any, Any, ChatResponse]:
        """The whole answer; raises :class:`DeadlineExceeded` and what ``CallSpec.response`` raises."""
        return self._in_time(self.prompt.call().response())

    def stream(self, emit: Emit) -> Coroutine[Any, Any, ChatResponse]:
        """The same answer; ``emit`` is told what happens until then."""
        return self._in_time(self.prompt.stream().response(emit))

    def _in_time(self, answering: Coroutine[Any, Any, ChatResponse]) -> Coroutine[Any, Any, ChatResponse]:
        span, client = current_span.get(), self.prompt.client
        if span is None or not span.trace.is_sampled or client is self.service.manual_client:
            return self._bounded(answering)
        span.trace.conversation = self._summary.get("session", "")
        messages = self.prompt.request.messages
        return agent_run(span, client.model.provider, client.model.name, messages, self._bounded(answering))

    async def _bounded(self, answering: Coroutine[Any, Any, ChatResponse]) -> ChatResponse:
        limit = self.service.settings.request_timeout
        if self._connection is not None:
            self._connection.abort_after(limit + _READING_SECONDS)
        # As asyncio.timeout does it, at two thirds of the cost.
        with ModelTimeouts(deadline=inf, idle=limit, error=lambda: _too_late(limit)):
            response = await answering
        self._note(response)
        self.name_model()
        if self._consent.pending:
            self.headers["X-Approval-ID"] = self._consent.pending["id"]
            response = _waiting(response, self.notice)
        return response

    def name_model(self) -> None:
        """Say in the headers which model has answered, where it was not the first of several."""
        answered_by = current_request.get().answered_by
        if answered_by and "X-Chat-Model" in self.headers:
            self.headers["X-Chat-Model"] = model_label(*answered_by)

    def _note(self, response: ChatResponse) -> None:
        """Leave what the log line of the request says about the answer."""
        calls = [
            {"name": each.call.name[:64], "outcome": each.error_kind or "ok", "ms": each.duration_ms}
            for each in response.executions
        ]
        self._summary |= {"rounds": response.rounds, "tool_calls": calls}
        if self.reservation.counts_tokens:
            self.reservation.tokens = response.usage.total_tokens or estimate_size(
                (*response.history, response.message)
            )

    def record_error(self, error: ToolchatError) -> None:
        """Leave an error that is told within a stream for the log line of the request."""
        self._state["outcome"] = error.code

    def document(self, response: ChatResponse) -> dict[str, Any]:
        """The answer's JSON document."""
        document = answer_document(response, self.service.chat.model.provider)
        document["duration_ms"] = round((time.perf_counter() - self._started) * 1000, 3)
        document["request_id"] = self.request_id
        if self.session:
            document["session_id"] = self.session
        return document | ({"approval": self._consent.pending} if self._consent.pending else {})


def _too_late(limit: float) -> DeadlineExceeded:
    return DeadlineExceeded(f"the question was not answered within {limit:g} s")


def _waiting(response: ChatResponse, notice: str) -> ChatResponse:
    """An answer that waits for approval, and says in its text how it is decided."""
    return response.with_text("\n\n".join(filter(None, (response.message.text, notice))))
