"""Work within a span of its own; it tells its figures itself, and this is called only where traces are on."""

from collections.abc import Callable, Coroutine, Sequence
from time import perf_counter
from typing import Any, Protocol, TypeVar

from app.observability import conventions
from app.observability.spans import Span, current_span
from app.observability.telling import outcome_of
from app.observability.told import Answered, Finished, Sent
from toolchat.messages import Message, ToolCall

__all__ = ["agent_run", "tool_run", "upstream_asked"]


class _Status(Protocol):
    status: int


_AnsweredT = TypeVar("_AnsweredT", bound=Answered)
_FinishedT = TypeVar("_FinishedT", bound=Finished)
_SentT = TypeVar("_SentT", bound=Sent)
_StatusT = TypeVar("_StatusT", bound=_Status)


async def agent_run(
    parent: Span, provider: str, model: str, messages: Sequence[Message], run: Coroutine[Any, Any, _AnsweredT]
) -> _AnsweredT:
    """Have a question answered."""
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


def tool_run(call: ToolCall, run: Coroutine[Any, Any, _FinishedT]) -> Coroutine[Any, Any, _FinishedT]:
    """Have a tool called; in a span only where one is recorded."""
    parent = current_span.get()
    return run if parent is None or not parent.trace.is_sampled else _tool_run(parent, call, run)


async def _tool_run(parent: Span, call: ToolCall, run: Coroutine[Any, Any, _FinishedT]) -> _FinishedT:
    span = conventions.tool(parent, call, perf_counter()).enter()
    finished, outcome = None, ""
    try:
        finished = await run
        return finished
    except BaseException as error:
        outcome = outcome_of(error)
        raise
    finally:
        span.leave()
        conventions.tool_ended(span, call, finished, outcome, perf_counter())


async def upstream_asked(
    parent: Span, upstream: str, request: _SentT, ask: Callable[[_SentT, str], Coroutine[Any, Any, _StatusT]]
) -> _StatusT:
    """Have a request sent to an upstream, which is told of the trace."""
    span = conventions.upstream(parent, upstream, request, perf_counter())
    outcome = "cancelled"
    try:
        response = await ask(request.with_lines((span or parent).lines), upstream)
        outcome = str(response.status)
        return response
    except BaseException as error:
        outcome = outcome_of(error)
        raise
    finally:
        if span is not None:
            conventions.upstream_ended(span, outcome, perf_counter())
