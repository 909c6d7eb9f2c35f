"""The tool ``ask``: a question that the service answers with its own model and tools."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from app.api.approvals import PendingTurn
from app.api.dependencies import owned
from app.api.fast_router import MAX_QUERY_CHARS
from app.api.responses.active_request import ActiveRequest
from app.api.schemas import ChatAnswer
from app.api.service import ServiceState
from app.api.sessions import conversation_or_new
from app.protocols.mcp_server.consent import answers, can_ask, question
from app.protocols.mcp_server.exchange import Exchange
from app.protocols.mcp_server.results import ANSWER, Call, ResultFormat
from app.protocols.mcp_server.state_signing import StateSigner, not_handed_out, seal_of
from toolchat.chat.client import PromptSpec
from toolchat.chat.request import Approval
from toolchat.errors import NotFound
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.events import parse_arguments
from toolchat.tool_calling.schema import input_of_function

__all__ = ["ASK", "ask_prompt", "ask_tool", "asking_call"]


ASK = "ask"
"""The tool's name."""


class Asking(BaseModel):
    """What is asked."""

    model_config = ConfigDict(extra="forbid")

    question: Annotated[str, Field(description="The question", min_length=1, max_length=MAX_QUERY_CHARS)]
    tools: Annotated[list[str] | None, Field(description="Names of the tools to use; missing: all", max_length=50)] = (
        None
    )
    session_id: Annotated[
        str, Field(alias="sessionId", description="The conversation to go on with: session_id of an earlier answer")
    ] = ""


async def ask(asking: Asking) -> None:
    """Ask this service in plain words; it answers with its own chat model and its own tools."""


_INPUT = input_of_function(ask, ASK)


@cache
def ask_tool() -> Mapping[str, Any]:
    """The tool as hosts are shown it."""
    return {
        "name": ASK,
        "description": ask.__doc__,
        "inputSchema": _INPUT.schema,
        "outputSchema": ChatAnswer.model_json_schema(),
    }


def ask_prompt(service: ServiceState, arguments: Mapping[str, Any], context: Mapping[str, Any]) -> PromptSpec:
    """The question that the arguments put, in the conversation that they name, else in a new one.

    Raises:
        ToolArgumentsError: the arguments do not fit.
        ValidationFailed: there is no such tool, or the session id is none.
    """
    asking: Asking = _INPUT.arguments(to_json(arguments).decode())["asking"]
    offered, advisors = service.tools.for_conversation(asking.tools)
    values = {**context, CONVERSATION_ID: conversation_or_new(asking.session_id)}
    prompt = service.chat.prompt(asking.question).tools(*offered).tool_context(values)
    return prompt.advisors(service.memory_advisor, *advisors)


async def asking_call(
    service: ServiceState, exchange: Exchange, arguments: Mapping[str, Any], context: Mapping[str, Any]
) -> Call | bytes:
    """Get a question ready, or its answer that waited for the user and goes on.

    Returns:
        The call, or a result that asks the host once more, where it has brought no answer of its user.

    Raises:
        RpcError: the state that the host brings was not handed out for this call, or was used before.
        ToolArgumentsError: the arguments do not fit.
        ToolchatError: as :func:`ask_prompt`, or the state store cannot be reached.
    """
    prompt = ask_prompt(service, arguments, context)
    if not can_ask(exchange):
        return Call(prompt, ANSWER, tells=True)
    seal = await seal_of(service.store, owned(str(context.get("tenantId", ""))), ASK, arguments)
    state = exchange.message.params.get("requestState")
    if state is None:
        return Call(prompt, _AnswerOrQuestion(seal), tells=True)
    waiting = await _waiting(service, seal.identifier(state))
    calls = waiting.turn.response.message.tool_calls
    agreed = answers(exchange, len(calls))
    if agreed is None:
        shown = [(call.name, parse_arguments(call)) for call in calls]
        return question(shown, seal.state(waiting.identifier))
    approvals = {call.id: Approval(each) for call, each in zip(calls, agreed, strict=True)}
    return Call(waiting.prompt(service.chat, approvals), _AnswerOrQuestion(seal), tells=True, taken=waiting)


async def _waiting(service: ServiceState, identifier: str) -> PendingTurn:
    try:
        return await service.approvals.find(identifier)
    except NotFound:
        raise not_handed_out() from None


class _AnswerOrQuestion(ResultFormat):
    def __init__(self, seal: StateSigner) -> None:
        self._seal = seal

    def written(self, asked: ActiveRequest, response: ChatResponse) -> bytes:
        pending = asked.pending
        if pending is None:
            return ANSWER.written(asked, response)
        calls = [(call["name"], call["arguments"]) for call in pending["calls"]]
        return question(calls, self._seal.state(pending["id"]))
