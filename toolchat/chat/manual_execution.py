"""One tool call that a person asks for: it goes the way of a model's call, and no model is asked."""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.client import ChatClient, PromptSpec
from toolchat.chat.memory import ChatMemory
from toolchat.chat.request import Approval, ChatEvent, ChatRequest, Emit
from toolchat.errors import ValidationFailed
from toolchat.messages import AssistantMessage, ToolCall, Usage
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, Prompt
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.errors import ToolArgumentsError
from toolchat.tool_calling.events import EmitToolCall, ToolCallEvent, ToolCallFinished, silent

__all__ = ["SessionLockAdvisor", "asked_by_hand", "run_by_hand", "without_model"]


class NoModel(ChatModel):
    """Stands where the model would: it has asked for the call, and has nothing to say about the result."""

    provider = name = "nobody"

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:  # noqa: ARG002
        return ChatResponse(AssistantMessage("done"), "stop", Usage(), self.name, rounds=0)


class SessionLockAdvisor(Advisor):
    """Runs a call between two questions of its conversation, never during one; stands where the memory does."""

    order = 200

    def __init__(self, memory: ChatMemory) -> None:
        self._memory = memory

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`; raises as :meth:`ChatMemory.open_turn`."""
        async with self._memory.open_turn(request.context.get(CONVERSATION_ID)):
            return await chain.proceed(request, emit)


def asked_by_hand(
    client: ChatClient,
    tool: ToolCallback,
    arguments: Mapping[str, Any],
    context: Mapping[str, Any] | None = None,
) -> PromptSpec:
    """Put one call together as a question whose model has asked for it, and whose user has consented.

    The response has the call under ``executions``, and nothing else that is worth showing. Advisors around the loop are
    given a request without messages.

    Args:
        client: its advisors, the loop among them, bound and run the call; its model is not asked.
        tool: the tool.
        arguments: what a model would write, as an object.
        context: values for the tool behind the model's back.

    Raises:
        ValidationFailed: the arguments do not fit the tool's schema; the detail is what a model would be told.
    """
    call = ToolCall(f"hand_{secrets.token_hex(8)}", tool.definition.name, _checked(tool, arguments))
    values = client.default_context.with_values(context or {})
    asking = AssistantMessage(tool_calls=(call,))
    request = ChatRequest((), (tool,), values, paused=asking, approvals={call.id: Approval(True)})
    return PromptSpec(without_model(client), request)


def without_model(client: ChatClient) -> ChatClient:
    """The client for calls by hand alone; who makes many gives this one instead of the client with a model."""
    return client if isinstance(client.model, NoModel) else replace(client, model=NoModel())


async def run_by_hand(
    client: ChatClient,
    tool: ToolCallback,
    arguments: Mapping[str, Any],
    context: Mapping[str, Any] | None = None,
    emit: EmitToolCall = silent,
) -> ToolCallFinished:
    """Run one tool once, as a model's call would be; ``emit`` is told of the call alone. Arguments as above.

    Raises:
        ValidationFailed: as :func:`asked_by_hand`; nothing was run.
        ToolFailed: the tool failed, and the service is set up to end a question then; else the outcome says so.
    """

    async def of_the_call(event: ChatEvent) -> None:
        if isinstance(event, ToolCallEvent):
            await emit(event)

    response = await asked_by_hand(client, tool, arguments, context).stream().response(of_the_call)
    return response.executions[0]


def _checked(tool: ToolCallback, arguments: Mapping[str, Any]) -> str:
    try:
        text = to_json(dict(arguments), inf_nan_mode="constants").decode()
        tool.check(text)
    except ToolArgumentsError as error:
        raise ValidationFailed(error.message) from error
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise ValidationFailed("the arguments cannot be written as JSON") from error
    return text
