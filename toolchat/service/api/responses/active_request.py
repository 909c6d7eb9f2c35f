"""An active request: a question while it is being answered."""

import time
from collections.abc import Coroutine, Mapping
from math import inf
from typing import Any

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import Scope

from toolchat.chat.client import PromptSpec
from toolchat.chat.request import Emit
from toolchat.errors import DeadlineExceeded, ToolchatError
from toolchat.models.base import ChatResponse
from toolchat.models.resilience import ModelTimeouts
from toolchat.service.access.authentication import APPROVAL_HEADER
from toolchat.service.access.principals import ALL_TOOLS, current_request_caller
from toolchat.service.access.quotas import QuotaReservation
from toolchat.service.api.approval_records import link_to, words_about
from toolchat.service.api.approvals import ConsentAdvisor, PendingTurn
from toolchat.service.api.body_limits import connection_of
from toolchat.service.api.dependencies import session_of
from toolchat.service.api.paths import path_below_root
from toolchat.service.api.service import ServiceState, model_label
from toolchat.service.observability import tracing
from toolchat.service.observability.logs import hashed
from toolchat.service.observability.metrics import OTHER
from toolchat.service.observability.observer import current_request
from toolchat.service.request_state import state_of
from toolchat.tool_calling.caller import current_caller
from toolchat.tool_calling.context import CONVERSATION_ID

_READING_SECONDS = 1
"""Seconds after the deadline in which a client can still read the error."""


class ActiveRequest:
    """A question while it is being answered."""

    notice = ""
    """The text that asks for an approval; empty if none is needed. A stream ends with it."""

    def __init__(
        self, request: Request, service: ServiceState, prompt: PromptSpec, taken: PendingTurn | None = None
    ) -> None:
        self.service, self._taken, self._state = service, taken, state_of(request.scope)
        if taken is not None:  # it resumes for the person who asked, also if another one decides
            current_caller.set(taken.caller)
            self._state.outlives_client = bool(taken.asked.roles)
        self.reservation = QuotaReservation()
        """The quota that it uses; set when it has a slot."""
        self.prompt, self._consent = _with_consent(service, prompt, taken, door_of(request.scope) if taken else "")
        if self._state.background is not None:
            self.prompt = self._state.background.prompt(self.prompt)
        conversation: str | None = prompt.request.context.get(CONVERSATION_ID)
        self.session = session_of(conversation) if conversation else None
        self.request_id = self._state.request_id
        self._state.form = self._state.form or OTHER  # from here on the request counts as a question
        self._summary = self._state.summary
        if self.session:
            self._summary["session"] = hashed(self.session)
        self._scope = request.scope
        self._connection = connection_of(request.scope)
        self._started = time.perf_counter()

    @property
    def has_model(self) -> bool:
        """Whether a model answers; false if a single tool is run."""
        return self.prompt.client is not self.service.manual_client

    @property
    def pending(self) -> Mapping[str, Any] | None:
        """The approval that the answer waits for, if any: its id, its seconds, and the calls."""
        return self._consent.pending

    @property
    def confirmation(self) -> Mapping[str, Any] | None:
        """The approval that the answer's client can decide about, if any."""
        pending = self._consent.pending
        return None if pending is None or _waits_for_another(pending) else pending

    def headers(self, response: ChatResponse | None = None) -> dict[str, str]:
        """The headers of the answer as far as they are known; a stream's go out before there is a ``response``."""
        headers = {"Vary": "Accept", **self.reservation.headers}
        if self.has_model:
            # With CHAT_FALLBACKS another model than the configured one may have answered.
            answered_by = current_request.get().answered_by
            headers["X-Chat-Model"] = model_label(*answered_by) if answered_by else self.service.model_label
            if response is not None:
                headers["X-Finish-Reason"] = response.finish_reason
        if self.session:
            headers["X-Session-ID"] = self.session
        if sandboxed := self.prompt.request.tool_set.sandboxed:
            headers["X-Sandbox"] = ", ".join(name for name in sandboxed if name.isascii()) or "true"
        if self.pending:
            headers["X-Approval-ID"] = self.pending["id"]
        return headers

    def complete(self) -> Coroutine[Any, Any, ChatResponse]:
        return self._answer(self.prompt.call().response())

    def stream(self, emit: Emit) -> Coroutine[Any, Any, ChatResponse]:
        """The complete answer; its events go to ``emit``. Raises as :meth:`complete`."""
        return self._answer(self.prompt.stream().response(emit))

    async def _answer(self, answering: Coroutine[Any, Any, ChatResponse]) -> ChatResponse:
        running = self._run(answering)
        if tracing.observer is not None and tracing.observer.is_recorded() and self.has_model:
            # Without the notice below: no trace has the token of an approval link.
            model, asked, session = (
                self.prompt.client.model,
                self.prompt.request.messages,
                self._summary.get("session", ""),
            )
            running = tracing.observer.run_agent(model.provider, model.name, asked, session, running)
        response = await running
        if self._consent.pending is None:
            return response
        self.notice = await self._ask_for_approval(self._consent.pending)
        return response.with_text("\n\n".join(filter(None, (response.message.text, self.notice))))

    async def _run(self, answering: Coroutine[Any, Any, ChatResponse]) -> ChatResponse:
        limit = self.service.settings.request_timeout
        if self._connection is not None:
            # The deadline below ends the work; this ends the connection of a client that does not read its answer.
            self._connection.abort_after(limit + _READING_SECONDS)
        # As asyncio.timeout, at two thirds of the cost.
        late = "the question was not answered within {:g} s"
        with ModelTimeouts(deadline=inf, idle=limit, error=lambda: DeadlineExceeded(late.format(limit))):
            response = await self._outcome_of(answering)
        calls = [
            {"name": each.call.name[:64], "outcome": each.error_kind or "ok", "ms": each.duration_ms}
            for each in response.executions
        ]
        self._summary |= {"rounds": response.rounds, "tool_calls": calls}
        return response

    async def _outcome_of(self, answering: Coroutine[Any, Any, ChatResponse]) -> ChatResponse:
        """The answer; what comes of a decision is noted for those who are not its client."""
        taken = self._taken
        if taken is None:
            return await answering
        try:
            response = await answering
        except BaseException as error:
            if self._consent.has_claimed:
                failure = error.detail if isinstance(error, ToolchatError) else "the answer was interrupted"
                await self.service.approvals.note_outcome(taken, failure=failure)
            raise
        text = response.executions[0].result if taken.turn.is_direct else response.message.text
        following = self._consent.pending["id"] if self._consent.pending else ""
        await self.service.approvals.note_outcome(taken, answer=text, approval=following)
        return response

    async def _ask_for_approval(self, pending: dict[str, Any]) -> str:
        """The text that asks people for an approval; a model learns only that it cannot decide."""
        # The link has a token if people see the answer in the page of another program, whose key they do not have. A
        # person who has decided with a token gets the next one in the answer.
        state, identifier = self._state, pending["id"]
        names = ", ".join(call["name"] for call in pending["calls"])
        if state.for_model:
            return f"A person must decide about {names}"
        if _waits_for_another(pending):  # a link would be for who asked
            return f"Waiting: {words_about(pending['calls'])}"
        token, is_by_token = "", APPROVAL_HEADER in Headers(scope=self._scope) and not state.outlives_client
        if is_by_token or state.in_chat_page:
            token = await self.service.approvals.tokens.issue(identifier, pending["expires_in"])
        if is_by_token:
            pending["token"] = token
        address = self._scope["app"].state.access.own_address(self._scope)
        link = link_to(address, identifier, token)
        return f"To approve or reject {names} within {pending['expires_in'] / 60:g} minutes, open {link}"

    def document(self, response: ChatResponse) -> dict[str, Any]:
        document = answer_document(response, self.service.chat.model.provider)
        document["duration_ms"] = round((time.perf_counter() - self._started) * 1000, 3)
        document["request_id"] = self.request_id
        if self.session:
            document["session_id"] = self.session
        return document | ({"approval": self._consent.pending} if self._consent.pending else {})


def answer_document(response: ChatResponse, provider: str) -> dict[str, Any]:
    """An answer with its turn summary; ``provider`` is used if the response does not name its own."""
    return {
        "answer": response.message.text,
        "model": {"provider": response.provider or provider, "name": response.model},
        "finish_reason": response.finish_reason,
        "rounds": response.rounds,
        "tool_calls": [each.to_dict() for each in response.executions],
        "usage": response.usage.to_dict(),
    }


def _with_consent(
    service: ServiceState, prompt: PromptSpec, taken: PendingTurn | None, door: str
) -> tuple[PromptSpec, ConsentAdvisor]:
    """Restrict a prompt to the caller's tools, and add the advisor that saves the turn if it needs an approval."""
    principal = current_request_caller().principal
    if principal.tools != ALL_TOOLS:
        prompt = prompt.filter_tools(principal.may_use)
    consent = ConsentAdvisor(service.approvals, prompt, taken, door)
    # An additional advisor means that this question builds an advisor chain of its own, so it is added only if the turn
    # can pause: if a tool needs approval, or if a tool module's advisor may offer one. The memory offers no tools.
    can_pause = bool(prompt.request.tool_set.guarded) or prompt.own_advisors not in ((), (service.memory_advisor,))
    return (prompt.advisors(consent) if can_pause or taken else prompt), consent


def _waits_for_another(pending: Mapping[str, Any]) -> bool:
    return any("approver" in call for call in pending["calls"])


def door_of(scope: Scope) -> str:
    """By which way a request decides: the path of its route, a link, or standard input."""
    if "path" not in scope:
        return "stdio"
    if APPROVAL_HEADER in Headers(scope=scope):
        return "link"
    path = path_below_root(scope)
    first = f"/{path.split('/')[1]}" if path.startswith("/") else path
    return first if first in ("/approvals", "/tools") else path[:64]
