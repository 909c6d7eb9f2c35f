"""Repair of broken tool calls: the model writes calls with invalid JSON again, before they count as calls."""

from dataclasses import replace

from pydantic import BaseModel

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.request import ChatRequest, Emit
from toolchat.messages import AssistantMessage, ToolCall, ToolResponse, ToolResponseMessage
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.errors import ToolArgumentsError, ToolExecutionError
from toolchat.tool_calling.results import truncate
from toolchat.tool_calling.schema import input_of_function

_RULES = (
    "write the call again with strict JSON (RFC 8259): one object, keys and texts in double quotes, line breaks, tabs "
    "and other control characters in texts escaped, no comma behind the last entry, no comments"
)
_SHOWN_CHARS = 400
_NOT_RUN = ToolExecutionError(
    "not run, because another call of the same message was broken", kind="not-run", hint="send it again"
)


class _AnyObject(BaseModel, extra="allow"): ...


def _any_object(value: _AnyObject) -> None: ...


_INPUT = input_of_function(_any_object, "any")
"""Parses arguments as every tool does, small repairs included, and accepts any object."""


class ToolCallRepairAdvisor(Advisor):
    """Answers a message that has broken arguments and calls the model again, so that the loop sees valid JSON only.

    Its order is inside the tool loop. No call of such a message runs; the model learns where each broken call breaks,
    and that the others wait. These exchanges are not part of the conversation; the response's usage and ``rounds``
    include them. A tool's own failure, and valid JSON that does not fit the tool's schema, are left to the loop.
    """

    order = 400

    def __init__(self, max_repairs: int = 3) -> None:
        self._max_repairs = max_repairs
        """Per model call; after that many the calls pass as they are, and each broken one fails."""

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        response = await chain.proceed(request, emit)
        usage, rounds = response.usage, response.rounds
        # Without tools the loop accepts no call, broken or not, so a repair would be in vain.
        may_call = request.tools and request.options.tool_choice != "none"
        for _ in range(self._max_repairs if may_call else 0):
            exchange = _exchange(response.message)
            if exchange is None:
                break
            request = replace(request, messages=(*request.messages, *exchange))
            response = await chain.proceed(request, emit)
            usage, rounds = usage + response.usage, rounds + response.rounds
        return replace(response, usage=usage, rounds=rounds, last_usage=response.usage)


def _exchange(message: AssistantMessage) -> tuple[AssistantMessage, ToolResponseMessage] | None:
    """A message with broken calls, and the results of its calls; ``None`` if no call is broken.

    The broken arguments stay as they are: every provider's mapping sends ``{}`` in their place.
    """
    faults = [_fault(call) for call in message.tool_calls]
    if not any(faults):
        return None
    results = [(fault or _NOT_RUN).as_result() for fault in faults]
    responses = [ToolResponse(call.id, call.name, text) for call, text in zip(message.tool_calls, results, strict=True)]
    return message, ToolResponseMessage(tuple(responses))


def _fault(call: ToolCall) -> ToolExecutionError | None:
    try:
        _INPUT.arguments(call.arguments)
    except ToolArgumentsError as error:
        message = f"{error.message}; what arrived: {truncate(call.arguments, _SHOWN_CHARS)}"
        return ToolExecutionError(message, kind=error.kind, hint=_RULES)
    return None
