"""Calls that the model of ``ask`` makes and the user must agree with: asked for as the host's own calls are."""

from collections.abc import Mapping
from typing import Any

from app.api.answering.asked import Asked
from app.api.approvals import WaitingTurn
from app.api.mcp.asking import ASK, ask_prompt
from app.api.mcp.consent import answers, can_ask, question
from app.api.mcp.exchange import Exchange
from app.api.mcp.results import ANSWER, Call, ResultFormat
from app.api.mcp.signing import Seal, not_handed_out, seal_of
from app.api.ownership import owned
from app.api.service import ServiceState
from app.chat.request import Approval
from app.chat_models.base import ChatResponse
from app.errors import NotFound
from app.tool_calling.events import parsed_arguments

__all__ = ["asking_call"]


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
        shown = [(call.name, parsed_arguments(call)) for call in calls]
        return question(shown, seal.state(waiting.identifier))
    approvals = {call.id: Approval(each) for call, each in zip(calls, agreed, strict=True)}
    return Call(waiting.prompt(service.chat, approvals), _AnswerOrQuestion(seal), tells=True, taken=waiting)


async def _waiting(service: ServiceState, identifier: str) -> WaitingTurn:
    try:
        return await service.approvals.find(identifier)
    except NotFound:
        raise not_handed_out() from None


class _AnswerOrQuestion(ResultFormat):
    def __init__(self, seal: Seal) -> None:
        self._seal = seal

    def written(self, asked: Asked, response: ChatResponse) -> bytes:
        pending = asked.pending
        if pending is None:
            return ANSWER.written(asked, response)
        calls = [(call["name"], call["arguments"]) for call in pending["calls"]]
        return question(calls, self._seal.state(pending["id"]))
