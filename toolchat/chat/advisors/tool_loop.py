"""The tool loop: call the model, run the tool calls that it requests, call it again with their results."""

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.request import Approval, ChatRequest, Emit, Resume
from toolchat.errors import ContentFiltered, ContextTooLong, ToolLoop, UpstreamInvalid
from toolchat.messages import (
    AssistantMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    Usage,
    immutable,
    split_answered,
)
from toolchat.models.base import CUT, ChatModel, ChatResponse, EmitModelEvent, Prompt, TextDelta
from toolchat.tool_calling.callback import ToolCallback, ToolSet, required_approver
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.events import ToolCallFinished, discard_event
from toolchat.tool_calling.limits import CallCounter, ToolCallLimits
from toolchat.tool_calling.manager import ToolCallingManager, is_direct

APPROVAL_REQUIRED = "approval_required"
"""The finish reason of a turn that waits for the user's approval."""

ToolExecutionEligibility = Callable[[ChatRequest, ChatResponse], bool]
"""Decides whether the service runs the calls of a response; if not, the caller receives them."""


def is_eligible(request: ChatRequest, response: ChatResponse) -> bool:
    """The default: run the calls, unless the options leave that to the caller."""
    return response.has_tool_calls and request.options.internal_tool_execution_enabled


class ToolCallingAdvisor(Advisor):
    """Runs tool calls until the model answers without one.

    - A call that needs approval pauses the turn after the message's other calls have run: the response holds the
      message, and its history ends with the message and their results, if there are any. A request with ``resume``
      continues from there: the message passes the advisors inside the loop once more, as if the model had just sent it.
    - A call of a client tool ends the turn after the message's other calls have run: the response holds the message,
      and its history ends with the message and their results. A call among them that needs approval is not run; its
      result says so, and the model may repeat it.
    - After the last allowed round (``limits.rounds``, or ``max_rounds`` if it is given), or if the model only repeats
      refused calls, the tools are withdrawn and the model is called once more, so that it answers from the results it
      has. Withdrawn tools are still defined; if the model calls one nevertheless, it is called without any.
    - A tool may ask the model by this same loop. Such requests are part of the one whose tool runs: their usage counts
      as its own, and all of them together may call the model ``limits.in_total`` times; then a call of the model raises
      a :class:`ToolExecutionError` in the tool.
    """

    order = 300

    def __init__(
        self,
        manager: ToolCallingManager | None = None,
        *,
        max_rounds: int | None = None,
        limits: ToolCallLimits | None = None,
        eligibility: ToolExecutionEligibility = is_eligible,
    ) -> None:
        self._manager = manager or ToolCallingManager()
        self._eligibility = eligibility
        self._limits = limits or ToolCallLimits()
        self._max_rounds = max(self._limits.rounds if max_rounds is None else max_rounds, 1)

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`.

        Raises:
            ToolLoop: the model called tools even after they had been withdrawn.
            UpstreamInvalid: the model's last message had neither text nor a call.
            ContentFiltered: the provider's moderation removed the text.
            ToolExecutionError: a tool asks, and its request's tools have called the model too often.
        """
        counter = CallCounter(self._limits.within(request.options.max_tool_calls))
        state = LoopState(request, counter, request.tool_set, self._asking())
        # An advisor inside the loop may offer other tools; the calls are checked against those that the model saw.
        chain = replace(chain, on_model_request=state.record_offer) if chain.advisors else chain
        for _ in range(self._max_rounds + 2):  # two more than may run calls: the model answers without tools
            if state.asking:
                state.asking.count_model_call(self._limits.in_total)
            try:
                response = await _next_response(state, chain, emit)
            except ContextTooLong as error:
                error.has_run = bool(state.executions or request.resume)
                raise
            state.accept_response(response)
            if state.drops_tools(response):
                continue
            guarded = await _guarded_calls(response.message, state)
            run = decide(response, state, self._eligibility, guarded)
            if run is None:
                return state.finish(response)
            finished = _with_deciders(await self._execute(run, response.message, state, chain, emit), state.request)
            state.executions += finished
            if run.calls == response.message.tool_calls and is_direct(finished):  # the results are the answer
                text = AssistantMessage("\n\n".join(each.whole_result for each in finished))
                answer = state.finish(ChatResponse(text, "return_direct", response.usage, response.model))
                await emit(TextDelta(answer.message.text))
                return answer
            state.apply_results(response.message, finished, self._max_rounds)
            if run.ends_turn is not None:
                approvers = {call: role for call, role in guarded.items() if role}
                return state.finish(replace(response, finish_reason=run.ends_turn, approvers=approvers))
        raise state.loop_error()  # an advisor that reports no rounds of its own could otherwise go on for ever

    def _asking(self) -> "LoopState | None":
        """The state of the request whose tool makes this one, if any."""
        running = _running.get()
        return running[1] if running and running[0] is self else None

    async def _execute(
        self, run: "Run", message: AssistantMessage, state: "LoopState", chain: AdvisorChain, emit: Emit
    ) -> tuple[ToolCallFinished, ...]:
        before, state.message = _running.get(), message
        _running.set((self, state))
        try:
            return await self._manager.execute(
                run.calls,
                state.callable_tools,
                state.context_of(message),
                emit,
                counter=state.counter,
                round=state.rounds,
                rejected=run.rejected,
                around=chain.around_tool_call,
            )
        finally:
            _running.set(before)


_running: ContextVar["tuple[ToolCallingAdvisor, LoopState] | None"] = ContextVar("running_tools", default=None)
"""The request whose tools run, and its loop."""


def running_loop() -> "LoopState":
    """The state of the loop whose tools run; raises ``LookupError`` outside of a tool call."""
    if (running := _running.get()) is None:
        raise LookupError("no tool runs")
    return running[1]


@dataclass(slots=True)
class LoopState:
    """The state of the loop: the next request, and what the rounds so far add up to."""

    request: ChatRequest
    counter: CallCounter
    offered: ToolSet
    """The tools that the model was last offered: the request's, unless an advisor inside the loop changed them."""
    asking: "LoopState | None" = None
    """The state of the request whose tool makes this one."""
    message: AssistantMessage = field(init=False)
    """The message whose calls run."""
    paused_response: ChatResponse | None = field(init=False)
    rounds: int = 0
    """Rounds so far, those included that an advisor inside the loop added."""
    usage: Usage = field(default_factory=Usage)
    executions: list[ToolCallFinished] = field(default_factory=list)
    tools_withdrawn: bool = False
    """The service runs no more calls: this round must be the last."""
    calls_of_tools: int = 0
    """How often its tools have called the model."""
    left_out: Collection[str] = ()
    """The names of the offered tools that the model's provider has refused in this round."""
    answered: Mapping[str, ToolResponse] = field(default_factory=dict)
    """The results of the calls that ran before the turn paused, by the calls' ids."""

    def __post_init__(self) -> None:
        resume = self.request.resume
        self.paused_response = resume.paused_response if resume else None
        if resume and not resume.message.tool_calls:  # all calls have ended: the model comes next
            self.request = self.request.next_round(self.request.messages, withdraw_tools=False)
        elif resume:
            before, self.answered = split_answered(self.request.messages, resume.message)
            self.request = self.request.with_messages(tuple(before))

    def context_of(self, message: AssistantMessage) -> ToolContext:
        """The context of the calls of a message."""
        return self.request.context.with_history((*self.request.messages, message))

    @property
    def callable_tools(self) -> Mapping[str, ToolCallback]:
        """The tools that the model has seen, by name."""
        tools = self.offered.by_name
        return {name: tools[name] for name in tools if name not in self.left_out} if self.left_out else tools

    def record_offer(self, request: ChatRequest) -> None:
        self.offered = request.tool_set

    def count_model_call(self, limit: int) -> None:
        """Count a model call of one of the tools, which each request around it counts as well."""
        if self.asking:
            self.asking.count_model_call(limit)
        self.calls_of_tools += 1
        if self.calls_of_tools > limit:
            message = f"the tools of this question have used up their {limit} model calls"
            raise ToolExecutionError(message, kind="limit", hint="answer from the results that you have")

    def accept_response(self, response: ChatResponse) -> None:
        self.add_usage(response.usage)
        self.rounds += response.rounds
        self.left_out = response.left_out

    def add_usage(self, usage: Usage) -> None:
        self.usage += usage
        if self.asking:
            self.asking.add_usage(usage)

    def apply_results(self, message: AssistantMessage, finished: Sequence[ToolCallFinished], max_rounds: int) -> None:
        """Prepare the next round: the conversation with the results, in the order of the calls."""
        if not finished and not self.answered:  # the turn pauses before any call has run
            return
        # A model that gets refusals alone would repeat itself up to the last round: it answers with what it has.
        self.tools_withdrawn = self.rounds >= max_rounds or (
            bool(finished) and all(each.error_kind in ("limit", "repeated-call") for each in finished)
        )
        results = ToolResponseMessage(tuple([each.response for each in finished]))
        results = self.results(message, finished) if self.answered else results
        messages, self.answered = (*self.request.messages, message, results), {}
        self.request = self.request.next_round(messages, withdraw_tools=self.tools_withdrawn)

    def results(self, message: AssistantMessage, finished: Sequence[ToolCallFinished]) -> ToolResponseMessage:
        """All results of a message's calls, as providers require them: with those from before the pause."""
        by_id = {**self.answered, **{each.call.id: each.response for each in finished}}
        return ToolResponseMessage(tuple([by_id[call.id] for call in message.tool_calls if call.id in by_id]))

    def drops_tools(self, response: ChatResponse) -> bool:
        """Whether the model has to be asked again, without any tool.

        Some servers ignore ``tool_choice: none``, and small models may give nothing after a tool's result.
        """
        if not self.request.tools or not (response.is_empty or (self.is_forbidden and response.has_tool_calls)):
            return False
        self.request = self.request.with_tools(())  # ollama/ollama#17921
        self.offered = self.request.tool_set
        return True

    @property
    def is_forbidden(self) -> bool:
        """Whether the model may call no tool."""
        return self.request.options.tool_choice == "none" and self.request.resume is None

    def loop_error(self) -> ToolLoop:
        rounds = len({each.round for each in self.executions})
        return ToolLoop(f"the model still asked for tools after {rounds} rounds of calls")

    def finish(self, response: ChatResponse) -> ChatResponse:
        """The turn's response: the last one, with the sums over all rounds."""
        request = self.request
        return ChatResponse(
            response.message,
            response.finish_reason,
            self.usage,
            response.model,
            self.rounds,
            tuple(self.executions),
            request.messages,
            request.context,
            request.options,
            self.paused_response,
            response.provider,
            response.last_usage or response.usage,
            approvers=response.approvers,
        )


_CUT_OFF = ToolExecutionError(
    "not run: the message with this call was cut off, so its arguments may be incomplete",
    kind="not-run",
    hint="call it again, with fewer calls and shorter texts in one message",
)
_NEEDS_APPROVAL = ToolExecutionError(
    "not run: it needs the user's approval, which this message cannot wait for",
    kind="not-run",
    hint="call it again, alone",
)


@immutable
class Run:
    """The calls of a response that the service runs; then the next round follows."""

    calls: tuple[ToolCall, ...]
    rejected: Mapping[str, ToolExecutionError] = field(default_factory=dict)
    """Calls that are answered with an error instead, by id."""
    ends_turn: str | None = None
    """The finish reason if the turn ends with the results: the other calls wait for the user or are the client's."""


def decide(
    response: ChatResponse, state: LoopState, is_eligible: ToolExecutionEligibility, guarded: Collection[str] = ()
) -> Run | None:
    """Decide which calls of a response run; ``None``: the response is the turn's answer. Changes nothing."""
    calls, resume = response.message.tool_calls, state.request.resume
    if not calls:
        _check_not_empty(response)
        return None
    left = tuple([call for call in calls if call.id not in state.answered]) if state.answered else calls
    if resume and resume.approvals:
        # Neither the limits of rounds nor the eligibility apply: the user has decided about these very calls.
        ends_turn = "stop" if resume.is_whole_turn else None
        return Run(left, _rejections(left, guarded, resume.approvals), ends_turn)
    client_tools = state.offered.client_tools.by_name
    service_calls = tuple([call for call in left if call.name not in client_tools]) if client_tools else left
    if (state.tools_withdrawn or state.is_forbidden) and service_calls:
        raise state.loop_error()
    if not state.answered and not (service_calls and is_eligible(state.request, response)):
        return None  # the caller runs the calls itself, such as those of its own tools
    if response.finish_reason in CUT:
        # Arguments that were cut may still be valid JSON, such as an optional field less.
        ends_turn = None if len(service_calls) == len(calls) else response.finish_reason
        return Run(service_calls, dict.fromkeys([call.id for call in service_calls], _CUT_OFF), ends_turn)
    if len(service_calls) < len(left):
        # The client needs this response to run its calls, so the turn cannot wait for an approval as well.
        rejected = {call.id: _NEEDS_APPROVAL for call in service_calls if call.id in guarded}
        return Run(service_calls, rejected, response.finish_reason)
    if guarded:
        return Run(tuple([call for call in left if call.id not in guarded]), ends_turn=APPROVAL_REQUIRED)
    return Run(left)


async def _guarded_calls(message: AssistantMessage, state: LoopState) -> Mapping[str, str]:
    """The roles of who has to approve, by the ids of the calls that need it; see :func:`required_approver`."""
    guarded_tools = state.offered.guarded
    if not guarded_tools or not message.tool_calls:
        return {}
    context = state.context_of(message)
    return {
        call.id: role
        for call in message.tool_calls
        if call.name in guarded_tools
        and call.name not in state.left_out
        and (role := await required_approver(guarded_tools[call.name], call.arguments, context)) is not None
    }


def _with_deciders(finished: Sequence[ToolCallFinished], request: ChatRequest) -> tuple[ToolCallFinished, ...]:
    """The calls with the names of who approved them."""
    if request.resume is None:
        return tuple(finished)
    by = {call: each.by for call, each in request.resume.approvals.items() if each.approved and each.by}
    return tuple([replace(each, approved_by=by[each.call.id]) if each.call.id in by else each for each in finished])


def _next_response(state: LoopState, chain: AdvisorChain, emit: Emit) -> Coroutine[Any, Any, ChatResponse]:
    """The model's response; in the first round of a resumed turn the message that paused it.

    That message passes the advisors inside the loop like any other, so that they wrap, add and remove tools as they do
    in every round. Their events are dropped: the client received those of this round before the turn paused.
    """
    request = state.request
    if request.resume is None:
        return chain.proceed(request, emit)
    response = ChatResponse(_approved_message(request.resume), "tool_calls", Usage(), "")
    return replace(chain, model=AnsweredModel(response)).proceed(request, discard_event)


class AnsweredModel(ChatModel):
    """Ends the chain with a response that is there already."""

    def __init__(self, response: ChatResponse) -> None:
        self._response = response
        self.provider = self.name = response.model

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:  # noqa: ARG002
        return self._response


def _approved_message(resume: Resume) -> AssistantMessage:
    """The message that paused the turn, with the user's changes to its arguments."""
    changed = {call: each.arguments for call, each in resume.approvals.items() if each.arguments is not None}
    calls = [replace(call, arguments=changed.get(call.id, call.arguments)) for call in resume.message.tool_calls]
    return replace(resume.message, tool_calls=tuple(calls)) if changed else resume.message


def _rejections(
    calls: Sequence[ToolCall], guarded: Collection[str], approvals: Mapping[str, Approval]
) -> dict[str, ToolExecutionError]:
    # An advisor may have added a call that the user has not seen.
    undecided = {call.id: _NEEDS_APPROVAL for call in calls if call.id in guarded and call.id not in approvals}
    rejected = [call.id for call in calls if call.id in approvals and not approvals[call.id].approved]
    return undecided | {
        call_id: ToolExecutionError(approvals[call_id].reason or "the user rejected this call", kind="rejected")
        for call_id in rejected
    }


def _check_not_empty(response: ChatResponse) -> None:
    if response.message.text.strip():
        return
    if response.finish_reason == "content_filter":
        raise ContentFiltered("the provider's moderation withheld the answer")
    raise UpstreamInvalid(f"the chat model gave an empty answer (finish reason: {response.finish_reason[:32]})")
