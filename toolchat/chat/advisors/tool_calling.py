"""The one tool loop: ask the model, run what it asks for, ask again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.request import Approval, ChatRequest, Emit
from toolchat.errors import ContentFiltered, ToolLoop, UpstreamInvalid
from toolchat.messages import AssistantMessage, ToolCall, ToolResponseMessage, Usage
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, Prompt, TextDelta
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.events import ToolCallFinished, silent
from toolchat.tool_calling.limits import CallCounter, ToolCallLimits
from toolchat.tool_calling.manager import ToolCallingManager, is_direct

__all__ = ["APPROVAL_REQUIRED", "ToolCallingAdvisor", "ToolExecutionEligibility", "is_eligible"]

APPROVAL_REQUIRED = "approval_required"
"""The finish reason of a turn that waits for the user's consent."""

ToolExecutionEligibility = Callable[[ChatRequest, ChatResponse], bool]
"""Decides whether the service runs the calls of a response; if not, the caller gets them."""


def is_eligible(request: ChatRequest, response: ChatResponse) -> bool:
    """The ordinary decision: run what the model asks for, unless the options leave that to the caller."""
    return response.has_tool_calls and request.options.internal_tool_execution_enabled


class ToolCallingAdvisor(Advisor):
    """Runs tool calls until the model answers without one.

    A call of a tool that needs approval pauses the turn: the answer then holds the calls, and a request with
    ``paused`` and the decisions goes on from there. A call of a tool that the caller runs ends the question, once
    the other calls of its message have been run: the answer holds the message, and its history ends with the
    message and their results. One of them that needs approval is not run then, and says so; the model may ask for
    it anew. After ``max_rounds`` of calls, or when the model only repeats calls that were refused, the tools are
    taken away and the model is asked once more, so that the question still gets an answer from the results at hand.
    """

    order = 300
    record_name = "app.chat.tool_calling_advisor.ToolCallingAdvisor"

    def __init__(
        self,
        manager: ToolCallingManager | None = None,
        *,
        max_rounds: int = 10,
        limits: ToolCallLimits | None = None,
        eligibility: ToolExecutionEligibility = is_eligible,
    ) -> None:
        self._manager = manager or ToolCallingManager()
        self._eligibility = eligibility
        self._max_rounds = max_rounds
        self._limits = limits or ToolCallLimits()

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`.

        Raises:
            ToolLoop: the model asked for tools even after they had been taken away.
            UpstreamInvalid: the model's last turn held neither text nor a call.
            ContentFiltered: the provider's moderation took the text away.
        """
        turns = _Turns(request, CallCounter(self._limits.within(request.options.max_tool_calls)), chain)
        while turns.answer is None:
            turns.round += 1
            if turns.resume():
                await turns.offer_again()
            else:
                turns.hear(await turns.chain.proceed(turns.request, emit), self._eligibility)
            if turns.calls and turns.answer is None:
                turns.go_on(await self._execute(turns, emit), self._max_rounds)
                if turns.answer is not None and not turns.of_the_caller:
                    await emit(TextDelta(turns.answer.message.text))
        return turns.answer

    async def _execute(self, turns: "_Turns", emit: Emit) -> tuple[ToolCallFinished, ...]:
        request = turns.request
        offered = {tool.definition.name: tool for tool in turns.offered}
        context = request.context.with_history((*request.messages, turns.message))
        rejected = turns.rejected() if request.approvals or turns.of_the_caller else None
        return await self._manager.execute(
            turns.own_calls, offered, context, emit, counter=turns.counter, round=turns.round, rejected=rejected
        )


_NO_USAGE, _NOTHING = Usage(), AssistantMessage()


@dataclass(slots=True)
class _Turns:
    """One question's way through the loop."""

    request: ChatRequest
    counter: CallCounter
    chain: AdvisorChain
    offered: Sequence[ToolCallback] = ()
    """What the model was offered in this turn: the request's tools, unless an advisor inside the loop changed them."""
    round: int = 0
    usage: Usage = _NO_USAGE
    executions: list[ToolCallFinished] = field(default_factory=list)
    response: ChatResponse | None = None
    message: AssistantMessage = _NOTHING
    """The response's."""
    answer: ChatResponse | None = None
    before: ChatResponse | None = None
    """What the turn had come to when it paused."""
    withdrawn: bool = False
    """The tools of the service have been taken away: this turn must be the last."""
    of_the_caller: frozenset[str] = frozenset()
    """The ids of the message's calls that the caller runs."""

    def __post_init__(self) -> None:
        self.offered, self.before = self.request.tools, self.request.before
        if self.chain.advisors:
            self.chain = replace(self.chain, heard=self._offer)

    def _offer(self, request: ChatRequest) -> None:
        self.offered = request.tools

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.message.tool_calls

    @property
    def own_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the service runs."""
        if not self.of_the_caller:
            return self.calls
        return tuple(call for call in self.calls if call.id not in self.of_the_caller)

    def rejected(self) -> dict[str, ToolExecutionError]:
        """The calls that must not run, and why."""
        if not self.of_the_caller:
            return _rejected(self.calls, self.request.approvals)
        return {call.id: _needs_approval() for call in self.own_calls if call.name in self._guarded()}

    def resume(self) -> bool:
        """Take up the message with which the turn paused, if it did, with the user's changes to its calls."""
        paused = self.request.paused
        if paused is None:
            return False
        calls = tuple(_changed(call, self.request.approvals) for call in paused.tool_calls)
        message = paused if calls == paused.tool_calls else replace(paused, tool_calls=calls)
        self.response, self.message = ChatResponse(message, "tool_calls", Usage(), ""), message
        self.request = self.request.resumed()
        return True

    async def offer_again(self) -> None:
        """Ask the advisors inside the loop for what they had added when the turn paused, if a call of it needs that."""
        names = {tool.definition.name for tool in self.offered}
        if self.response and any(call.name not in names for call in self.calls):
            await replace(self.chain, model=_Answered(self.response)).proceed(self.request, silent)

    def hear(self, response: ChatResponse, is_eligible: ToolExecutionEligibility) -> None:
        self.response, self.message = response, response.message
        self.usage += response.usage
        self.round += response.rounds - 1
        if not self.calls:
            _check_not_empty(response)
            self.answer = self._finished(response)
            return
        if foreign := [tool.definition.name for tool in self.offered if tool.metadata.run_by_caller]:
            self.of_the_caller = frozenset(call.id for call in self.calls if call.name in foreign)
        own_calls = self.own_calls
        if self.withdrawn and own_calls:
            raise ToolLoop(f"the model still asked for tools after {self.round - 1} rounds of calls")
        if not (own_calls and is_eligible(self.request, response)):
            self.answer = self._finished(response)
        elif not self.of_the_caller and self._needs_consent():
            self.answer = self._finished(replace(response, finish_reason=APPROVAL_REQUIRED))

    def _needs_consent(self) -> bool:
        guarded = self._guarded()
        return bool(guarded) and any(call.name in guarded for call in self.calls)

    def _guarded(self) -> list[str]:
        return [tool.definition.name for tool in self.offered if tool.metadata.requires_approval]

    def go_on(self, latest: Sequence[ToolCallFinished], max_rounds: int) -> None:
        """Take up the results of this round's calls, in the order of the calls."""
        self.executions += latest
        if is_direct(latest) and not self.of_the_caller:
            self.answer = self._returned_directly(latest)
            return
        self.withdrawn = self.round >= max_rounds or all(map(_is_refused, latest))
        responses = ToolResponseMessage(tuple([each.response for each in latest]))
        messages = (*self.request.messages, self.message, responses)
        self.request = self.request.next_turn(messages, withdrawn=self.withdrawn)
        if self.of_the_caller and self.response:
            self.answer = self._finished(self.response)

    def _returned_directly(self, latest: Sequence[ToolCallFinished]) -> ChatResponse:
        text = "\n\n".join(each.result for each in latest)
        direct = ChatResponse(
            AssistantMessage(text), "return_direct", self.usage, self.response.model if self.response else ""
        )
        return self._finished(direct)

    def _finished(self, response: ChatResponse) -> ChatResponse:
        request = self.request
        return ChatResponse(
            response.message,
            response.finish_reason,
            self.usage,
            response.model,
            self.round,
            tuple(self.executions),
            request.messages,
            request.context,
            request.options,
            self.before,
            response.provider,
        )


class _Answered(ChatModel):
    """Stands at the end of the chain for a turn that the model has answered already."""

    provider = name = ""

    def __init__(self, response: ChatResponse) -> None:
        self._response = response

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:  # noqa: ARG002
        return self._response


def _rejected(calls: tuple[ToolCall, ...], approvals: Mapping[str, Approval]) -> dict[str, ToolExecutionError]:
    decided = {call.id: approvals[call.id] for call in calls if call.id in approvals}
    return {
        call_id: ToolExecutionError(decision.reason or "the user rejected this call", kind="rejected")
        for call_id, decision in decided.items()
        if not decision.approved
    }


def _changed(call: ToolCall, approvals: Mapping[str, Approval]) -> ToolCall:
    decision = approvals.get(call.id)
    return call if decision is None or decision.arguments is None else replace(call, arguments=decision.arguments)


def _needs_approval() -> ToolExecutionError:
    return ToolExecutionError(
        "not run: it needs the user's consent, which this message cannot wait for",
        kind="not-run",
        hint="call it again, alone",
    )


def _is_refused(execution: ToolCallFinished) -> bool:
    return execution.error_kind in ("limit", "repeated-call")


def _check_not_empty(response: ChatResponse) -> None:
    if response.message.text.strip():
        return
    if response.finish_reason == "content_filter":
        raise ContentFiltered("the provider's moderation withheld the answer")
    raise UpstreamInvalid(f"the chat model gave an empty answer (finish reason: {response.finish_reason[:32]})")
