"""The tool ``ask``: the service answers a question with its own chat model and tools."""

from collections.abc import Mapping
from typing import Annotated, Any

from mcp_types import CallToolRequestParams
from pydantic import Field
from pydantic_core import to_json

from toolchat.chat.advisors.memory import NEW_CONVERSATION
from toolchat.chat.client import PromptSpec
from toolchat.chat.request import Approval
from toolchat.errors import NotFound
from toolchat.models.base import ChatResponse
from toolchat.service.api.approvals import PendingTurn
from toolchat.service.api.dependencies import scoped_key
from toolchat.service.api.fast_router import MAX_QUERY_CHARS
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.schemas import AnswerForModels
from toolchat.service.api.service import ServiceState
from toolchat.service.api.sessions import conversation_or_new, conversation_prompt
from toolchat.service.protocols.mcp_server.calls import Call, Context, Result, text_block
from toolchat.service.protocols.mcp_server.consent import (
    call_digest,
    can_ask,
    consent_request,
    decisions,
    invalid_state,
)
from toolchat.tool_calling.schema import input_of_function

ASK = "ask"
"""The tool's name."""


async def ask(
    question: Annotated[str, Field(description="The question", min_length=1, max_length=MAX_QUERY_CHARS)],
    tools: Annotated[
        list[str] | None, Field(description="Names of the tools to use; missing: all", max_length=50)
    ] = None,
    sessionId: Annotated[str, "Continues the conversation of an earlier answer: its session_id"] = "",
) -> None:
    """Ask this service a question in natural language; it answers with its own chat model and its own tools."""


_INPUT = input_of_function(ask, ASK)


ASK_TOOL: Result = {
    "name": ASK,
    "description": ask.__doc__,
    "inputSchema": _INPUT.schema,
    "outputSchema": AnswerForModels.model_json_schema(),
}
"""The tool's listing, without annotations."""


async def prepare_question(ctx: Context, params: CallToolRequestParams, context: Mapping[str, Any]) -> Call | Result:
    """A call of ``ask``, or the result that asks the host again because a decision about a paused answer is missing."""
    service = ctx.lifespan_context
    prompt = _prompt(service, params.arguments or {}, context)
    if not can_ask(ctx):
        return Call(prompt, _answer)
    digest = call_digest(scoped_key(str(context.get("tenantId", ""))), params)

    def answer_or_request(active: ActiveRequest, response: ChatResponse) -> Result:
        pending = active.confirmation
        return _consent_request(pending["id"], pending["calls"], digest) if pending else _answer(active, response)

    if params.request_state is None:
        return Call(prompt, answer_or_request)
    pending = await _pending_turn(service, params.request_state, digest)
    decided = decisions(params, len(pending.asked.calls))
    if decided is None:
        return _consent_request(pending.asked.identifier, pending.asked.calls, digest)
    calls = pending.turn.response.message.tool_calls
    approvals = {call.id: Approval(each) for call, each in zip(calls, decided, strict=True)}
    return Call(pending.prompt(service.chat, approvals), answer_or_request, pending)


def _prompt(service: ServiceState, arguments: Mapping[str, Any], context: Mapping[str, Any]) -> PromptSpec:
    asked = _INPUT.arguments(to_json(arguments).decode())
    offered, advisors = service.tools.for_conversation(asked.get("tools"))
    conversation = conversation_or_new(asked.get("sessionId", ""))
    if not asked.get("sessionId"):
        context = {**context, NEW_CONVERSATION: True}
    return conversation_prompt(
        service, asked["question"], conversation, tools=offered, advisors=advisors, context=context
    )


async def _pending_turn(service: ServiceState, state: str, digest: str) -> PendingTurn:
    # Not signed: the id is random and belongs to the principal, who could only deceive itself with another digest.
    identifier, _, own = state.partition(".")
    if own != digest:
        raise invalid_state()
    try:
        return await service.approvals.find(identifier)
    except NotFound:
        raise invalid_state() from None


def _answer(active: ActiveRequest, response: ChatResponse) -> Result:
    structure = active.document(response)
    structure.pop("approval", None)  # a model could decide by its id
    return {"content": [text_block(response.message.text)], "structuredContent": structure}


def _consent_request(identifier: str, calls: list[dict[str, Any]], digest: str) -> Result:
    return consent_request([(call["name"], call["arguments"]) for call in calls], f"{identifier}.{digest}")
