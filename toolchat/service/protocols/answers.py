"""What the answers of all wires share: their ids, their end, and what is saved and hidden."""

import time
from collections.abc import Mapping
from dataclasses import field
from random import getrandbits
from typing import Any, NamedTuple

from toolchat.messages import ToolCall, Usage, immutable
from toolchat.models.base import CUT, ChatResponse
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.responses.formats import AnswerFormat
from toolchat.service.protocols.partial_turns import save_turn


def new_identifier() -> str:
    """The part of a response's id behind its prefix: 24 hexadecimal digits."""
    return f"{getrandbits(96):024x}"


@immutable
class ResponseContext:
    """The parts of a request that shape its response."""

    model: str
    """The model's name in the request."""
    client_tools: frozenset[str] = frozenset()
    """Names of the tools that the client runs itself."""
    in_session: bool = True
    """Whether the client named the conversation, or may be told its id."""
    include_usage: bool = False
    reports_progress: bool = False
    """Whether a stream reports tool calls in Open WebUI's events."""
    identifier: str = field(default_factory=new_identifier)
    created: int = field(default_factory=lambda: int(time.time()))
    started: float = field(default_factory=time.perf_counter)

    def outcome(self, active: ActiveRequest, response: ChatResponse, *, has_text: bool = False) -> "Outcome":
        """What is left to write of an answer; ``has_text``: its text was streamed."""
        text = response.message.text
        if has_text:
            text = f"\n\n{active.notice}" if active.notice else ""
        reasoning = response.message.extra.get("reasoning_content") or response.message.extra.get("reasoning")
        return Outcome(
            text,
            reasoning if isinstance(reasoning, str) else "",
            tuple(call for call in response.message.tool_calls if call.name in self.client_tools),
            response.finish_reason if response.finish_reason in CUT else "",
            (self.client_tools and response.last_usage) or response.usage,
            {"approval": active.pending} if active.pending else {},
        )


class Outcome(NamedTuple):
    """The end of an answer, as each wire writes it in its own terms."""

    text: str
    """The text that was not streamed: all of it, or the notice of a pending approval."""
    reasoning: str
    """The model's reasoning in its last call, if the provider sends it."""
    calls: tuple[ToolCall, ...]
    """The calls that the client must run; those of the service's tools are hidden, or the client would run them too."""
    cut: str
    """Why the provider cut the answer, as a finish reason; empty for a complete one."""
    usage: Usage
    """The tokens of all model calls, or of the last one for an agent, which reads them as the size of its context."""
    approval: Mapping[str, Any]
    """The pending approval as a field of the answer, which is none of OpenAI's; empty without one."""


class SavedTurns(AnswerFormat):
    """Formats of clients with tools of their own: a turn that the client does not see as a whole is saved."""

    negotiated = False
    context: ResponseContext

    async def finish(self, active: ActiveRequest, response: ChatResponse) -> ChatResponse:
        names = self.context.client_tools
        return await save_turn(active.service.store, response, names) if names else response

    def headers(self, active: ActiveRequest, response: ChatResponse | None = None) -> dict[str, str]:
        """See :meth:`AnswerFormat.headers`; the session id is hidden if the client did not name the conversation."""
        headers = super().headers(active, response)
        if not self.context.in_session:
            headers.pop("X-Session-ID", None)
        return headers
