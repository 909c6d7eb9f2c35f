"""The span of a whole chat request; called only while traces are on."""

from collections.abc import Coroutine, Sequence
from time import perf_counter
from typing import Any

from app.observability import conventions
from app.observability.observer import outcome_of
from app.observability.spans import Span
from toolchat.messages import Message
from toolchat.models.base import ChatResponse

__all__ = ["agent_run"]


async def agent_run(
    parent: Span, provider: str, model: str, messages: Sequence[Message], run: Coroutine[Any, Any, ChatResponse]
) -> ChatResponse:
    """Answer a chat request within a span."""
    span = conventions.agent(parent, provider, model, messages, perf_counter()).enter()
    response, outcome = None, "ok"
    try:
        response = await run
        return response
    except BaseException as error:
        outcome = outcome_of(error)
        raise
    finally:
        span.leave()
        conventions.answered(span, response, outcome, perf_counter())
