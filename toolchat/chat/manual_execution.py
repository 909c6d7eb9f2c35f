"""Manual tool execution: one tool call through the tool loop, without a model."""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from toolchat.chat.advisors.tool_loop import AnsweredModel
from toolchat.chat.client import ChatClient, PromptSpec
from toolchat.chat.request import Approval, ChatEvent, ChatRequest, Resume
from toolchat.errors import ValidationFailed
from toolchat.messages import AssistantMessage, ToolCall, Usage
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.callback import ToolCallback, arguments_fault
from toolchat.tool_calling.events import EmitToolCall, ToolCallEvent, ToolCallFinished, discard_event

_NO_MODEL = AnsweredModel(ChatResponse(AssistantMessage("done"), "stop", Usage(), "nobody", rounds=0))
"""Takes the model's place in a manual execution: ends the turn after the call."""


def manual_request(
    client: ChatClient,
    tool: ToolCallback,
    arguments: Mapping[str, Any],
    context: Mapping[str, Any] | None = None,
) -> PromptSpec:
    """Build the chat request that runs one tool.

    It looks like a turn that paused for this call and was approved, so that the call passes the same loop, limits and
    advisors as a model's call. Advisors around the loop see a request without messages; the response is useful for its
    ``executions`` only.
    """
    call = ToolCall(f"run_{secrets.token_hex(8)}", tool.definition.name, _checked(tool, arguments))
    values = client.default_context.with_values(context or {})
    # The loop runs the calls of a paused message without asking the model; see decide() in tool_loop.
    asking = AssistantMessage(tool_calls=(call,))
    request = ChatRequest((), tool.alone, values, resume=Resume(asking, {call.id: Approval(True)}, is_whole_turn=True))
    return PromptSpec(without_model(client), request)


def without_model(client: ChatClient) -> ChatClient:
    """Copy of the client for manual executions; keep it if there are many, to save a copy for each."""
    return client if client.model is _NO_MODEL else replace(client, model=_NO_MODEL)


async def run_tool_call(
    client: ChatClient,
    tool: ToolCallback,
    arguments: Mapping[str, Any],
    context: Mapping[str, Any] | None = None,
    emit: EmitToolCall = discard_event,
) -> ToolCallFinished:
    """Run one tool once, as if a model had called it; ``emit`` receives the call's events.

    The arguments are those of :func:`manual_request`.

    Raises:
        ValidationFailed: as :func:`manual_request`; nothing was run.
        ToolFailed: the tool failed and the client's manager has ``always_throw``; otherwise the outcome is ``error``.
    """

    async def emit_call_events(event: ChatEvent) -> None:
        if isinstance(event, ToolCallEvent):
            await emit(event)

    response = await manual_request(client, tool, arguments, context).stream().response(emit_call_events)
    return response.executions[0]


def _checked(tool: ToolCallback, arguments: Mapping[str, Any]) -> str:
    try:
        text = to_json(dict(arguments), inf_nan_mode="constants").decode()
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise ValidationFailed("the arguments cannot be written as JSON") from error
    if fault := arguments_fault(tool, text):
        raise ValidationFailed(fault.message) from fault
    return text
