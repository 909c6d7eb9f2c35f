"""Calls of MCP hosts while they run: their context, their progress and their results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from mcp.server import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolchat.chat.client import PromptSpec
from toolchat.chat.request import ChatEvent, Emit
from toolchat.models.base import ChatResponse
from toolchat.service.api.approvals import PendingTurn
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.service import ServiceState
from toolchat.service.request_state import state_of
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.events import ToolCallFinished, ToolCallProgress, ToolCallStarted

Result = dict[str, Any]
"""A result as JSON; the SDK validates it and adds what its protocol version requires."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The HTTP request that an MCP request came in."""

    request: Request
    context: Mapping[str, Any]
    """Values for tools that the model does not see: the tenant, and the conversation if there is one."""


Context = ServerRequestContext[ServiceState, Origin]
"""What the SDK passes to a handler: the request and its client."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is ready to run."""

    prompt: PromptSpec
    render: Callable[[ActiveRequest, ChatResponse], Result]
    taken: PendingTurn | None = None
    """The paused turn that it resumes, if any."""


async def run_call(ctx: Context, origin: Origin, call: Call) -> Result:
    """Run a call within the limit of concurrent requests; report its progress if the client requests that."""
    active = ActiveRequest(origin.request, ctx.lifespan_context, call.prompt, call.taken)
    reports = "progress_token" in (ctx.meta or {})
    form = "text/event-stream" if reports else "application/json"
    state = state_of(origin.request.scope)
    state.form, state.answer_headers, state.for_model = form, active.headers, True
    async with active.service.admission.slot() as active.reservation:
        response = await (active.stream(_progress(ctx, active)) if reports else active.complete())
    return call.render(active, response)


def _progress(ctx: Context, active: ActiveRequest) -> Emit:
    """Report a tool's own progress; for ``ask``, the tools that run."""
    reached = -1.0  # the protocol requires that progress grows with every notification

    async def emit(event: ChatEvent) -> None:
        nonlocal reached
        progress = _of_question(event, reached) if active.has_model else _of_tool(event)
        if progress is not None and progress[0] > reached:
            reached = progress[0]
            await ctx.session.report_progress(*progress)

    return emit


def _of_tool(event: ChatEvent) -> tuple[float, float | None, str | None] | None:
    return (event.done, event.of, event.text) if isinstance(event, ToolCallProgress) else None


def _of_question(event: ChatEvent, reached: float) -> tuple[float, None, str] | None:
    """Count the events, because the total number of calls is unknown."""
    match event:
        case ToolCallStarted():
            message = f"{event.call.name} runs"
        case ToolCallProgress():
            message = str(event)
        case ToolCallFinished():
            message = f"{event.call.name} has ended" + (f": {event.error_kind}" if event.error_kind else "")
        case _:
            return None
    return max(reached, 0) + 1, None, message


def is_modern(ctx: Context) -> bool:
    """Whether the version is without a handshake: it has ``input_required``, and structured results of any type."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def error_result(error: ToolExecutionError) -> Result:
    """The result for a call that cannot run; the host's model can correct the call."""
    return {"content": [text_block(error.as_result())], "isError": True}


def text_block(text: str) -> dict[str, str]:
    """A text of a result."""
    return {"type": "text", "text": text}
