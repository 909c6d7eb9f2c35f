"""The tool ``ask``: the service answers a question with its own chat model and tools."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from app.api.approvals import PendingTurn
from app.api.dependencies import scoped_key
from app.api.fast_router import MAX_QUERY_CHARS
from app.api.responses.active_request import ActiveRequest
from app.api.schemas import ChatAnswer
from app.api.service import ServiceState
from app.api.sessions import conversation_or_new, conversation_prompt
from app.protocols.mcp_server.consent import call_digest, can_ask, consent_request, decisions, invalid_state
from app.protocols.mcp_server.jsonrpc import Exchange
from app.protocols.mcp_server.tools import ANSWER, Call, ResultFormat
from toolchat.chat.client import PromptSpec
from toolchat.chat.request import Approval
from toolchat.errors import NotFound
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.events import parse_arguments
from toolchat.tool_calling.schema import input_of_function

__all__ = ["ASK", "ask_tool", "prepare_question"]

ASK = "ask"
"""The tool's name."""


class AskArguments(BaseModel):
    """The arguments of the tool."""

    model_config = ConfigDict(extra="forbid")

    question: Annotated[str, Field(description="The question", min_length=1, max_length=MAX_QUERY_CHARS)]
    tools: Annotated[list[str] | None, Field(description="Names of the tools to use; missing: all", max_length=50)] = (
        None
    )
    session_id: Annotated[
        str, Field(alias="sessionId", description="Continues the conversation of an earlier answer: its session_id")
    ] = ""


async def ask(arguments: AskArguments) -> None:
    """Ask this service a question in natural language; it answers with its own chat model and its own tools."""


_INPUT = input_of_function(ask, ASK)


@cache
def ask_tool() -> Mapping[str, Any]:
    """The tool's listing, without annotations."""
    return {
        "name": ASK,
        "description": ask.__doc__,
        "inputSchema": _INPUT.schema,
        "outputSchema": ChatAnswer.model_json_schema(),
    }


async def prepare_question(
    service: ServiceState, exchange: Exchange, arguments: Mapping[str, Any], context: Mapping[str, Any]
) -> Call | bytes:
    """Prepare a call of ``ask``: a new question, or a paused answer that the user has decided about.

    The ``requestState`` of a paused answer is its id and the digest of the call. It is not signed: the id is random
    and belongs to the principal, who could only deceive itself with another digest.

    Returns:
        The call, or the result that asks the host again because a decision is missing.

    Raises:
        RpcError: the host's state was not issued for this call, or was used before.
        ToolArgumentsError: the arguments are invalid.
        ValidationFailed: a tool does not exist, or the session id is invalid.
        StoreUnavailable: the state store cannot be reached.
    """
    prompt = _prompt(service, arguments, context)
    if not can_ask(exchange):
        return Call(prompt, ANSWER, reports_progress=True)
    form = _AnswerOrConsentRequest(call_digest(scoped_key(str(context.get("tenantId", ""))), ASK, arguments))
    state = exchange.message.params.get("requestState")
    if state is None:
        return Call(prompt, form, reports_progress=True)
    pending = await _pending_turn(service, form.read_state(state))
    calls = pending.turn.response.message.tool_calls
    decided = decisions(exchange, len(calls))
    if decided is None:
        return form.request_consent(pending.identifier, [(call.name, parse_arguments(call)) for call in calls])
    approvals = {call.id: Approval(each) for call, each in zip(calls, decided, strict=True)}
    return Call(pending.prompt(service.chat, approvals), form, reports_progress=True, taken=pending)


def _prompt(service: ServiceState, arguments: Mapping[str, Any], context: Mapping[str, Any]) -> PromptSpec:
    asked: AskArguments = _INPUT.arguments(to_json(arguments).decode())["arguments"]
    offered, advisors = service.tools.for_conversation(asked.tools)
    conversation = conversation_or_new(asked.session_id)
    return conversation_prompt(service, asked.question, conversation, tools=offered, advisors=advisors, context=context)


async def _pending_turn(service: ServiceState, identifier: str) -> PendingTurn:
    try:
        return await service.approvals.find(identifier)
    except NotFound:
        raise invalid_state() from None


class _AnswerOrConsentRequest(ResultFormat):
    """The answer, or a request for consent if the answer pauses for approval."""

    def __init__(self, digest: str) -> None:
        self._digest = digest

    def render(self, active: ActiveRequest, response: ChatResponse) -> bytes:
        """See :meth:`BufferedFormat.render`."""
        pending = active.pending
        if pending is None:
            return ANSWER.render(active, response)
        return self.request_consent(pending["id"], [(call["name"], call["arguments"]) for call in pending["calls"]])

    def request_consent(self, identifier: str, calls: list[tuple[str, Any]]) -> bytes:
        return consent_request(calls, f"{identifier}.{self._digest}")

    def read_state(self, state: object) -> str:
        """The id of the paused turn in a state; raises :class:`RpcError` for the state of another call."""
        identifier, _, digest = state.partition(".") if isinstance(state, str) else ("", "", "")
        if digest != self._digest:
            raise invalid_state()
        return identifier
