"""A question that is being answered for one request, and its answer as a document."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastapi import Request

from app.api.approvals import pending_record
from app.api.problems import problem
from app.api.state import ServiceState
from app.chat.client import PromptSpec
from app.chat.tool_calling_advisor import APPROVAL_REQUIRED
from app.chat_models.base import ChatResponse
from app.errors import CLIENT_GONE, DeadlineExceeded, ToolchatError
from app.logs import hashed
from app.tool_calling.context import CONVERSATION_ID

__all__ = ["Asked", "answer_document", "usage_record"]


def answer_document(response: ChatResponse, provider: str) -> dict[str, Any]:
    """An answer with its whole trace, as a plain object."""
    return {
        "answer": response.message.text,
        "model": {"provider": provider, "name": response.model},
        "finish_reason": response.finish_reason,
        "rounds": response.rounds,
        "tool_calls": [each.as_record() for each in response.executions],
        "usage": usage_record(response),
    }


def usage_record(response: ChatResponse) -> dict[str, int]:
    """The tokens of all turns together."""
    usage = response.usage
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }


class Asked:
    """A question that is being answered for one request."""

    def __init__(self, request: Request, state: ServiceState, prompt: PromptSpec) -> None:
        self.state = state
        self.prompt = prompt
        self._state: dict[str, Any] = request.scope["state"]
        self.request_id: str = self._state["request_id"]
        self._summary: dict[str, Any] = self._state.setdefault("summary", {})
        self._started = time.perf_counter()
        self._approval: dict[str, Any] | None = None
        self.headers = {"Cache-Control": "no-store", "Vary": "Accept", "X-Chat-Model": state.model_label}
        self.session: str | None = prompt.request.context.get(CONVERSATION_ID)
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

    async def whole(self) -> ChatResponse:
        """The whole answer; raises :class:`DeadlineExceeded` and what ``CallSpec.response`` raises."""
        try:
            async with asyncio.timeout(self.state.settings.request_timeout):
                response = await self.prompt.call().response()
        except TimeoutError:
            raise self.too_late() from None
        return self.finished(response)

    def finished(self, response: ChatResponse) -> ChatResponse:
        """Keep an answer that waits for approval, and leave what the log line of the request says about it."""
        self._note(response)
        if response.finish_reason != APPROVAL_REQUIRED:
            return response
        store = self.state.approvals
        self._approval = pending_record(response, store.keep(response, self.prompt), store.ttl)
        names = ", ".join(call.name for call in response.message.tool_calls)
        waiting = f"Waiting for approval of {names}: POST /approvals/{self._approval['id']}"
        text = "\n\n".join(filter(None, (response.message.text, waiting)))
        return replace(response, message=replace(response.message, text=text))

    def too_late(self) -> DeadlineExceeded:
        """The error of a question that took too long."""
        return DeadlineExceeded(f"the question was not answered within {self.state.settings.request_timeout:g} s")

    def _note(self, response: ChatResponse) -> None:
        calls = [
            {"name": each.call.name[:64], "outcome": each.error_kind or "ok", "ms": each.duration_ms}
            for each in response.executions
        ]
        self._summary |= {"rounds": response.rounds, "tool_calls": calls}

    def failed(self, error: ToolchatError) -> Mapping[str, Any]:
        """Leave the error for the log line, and give its problem document."""
        self._state["outcome"] = error.code
        return problem(error, self.request_id)

    def document(self, response: ChatResponse) -> dict[str, Any]:
        """The answer's JSON document."""
        document = answer_document(response, self.state.chat.model.provider)
        document["duration_ms"] = round((time.perf_counter() - self._started) * 1000, 3)
        document["request_id"] = self.request_id
        if self.session:
            document["session_id"] = self.session
        return document | ({"approval": self._approval} if self._approval else {})
