"""The one tool loop: ask the model, run what it asks for, ask again."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from app.chat.advisors import Advisor, AdvisorChain
from app.chat.request import ChatEvent, ChatRequest
from app.chat_models.base import ChatResponse
from app.errors import ContentFiltered, ToolLoop, UpstreamInvalid
from app.messages import AssistantMessage, ToolCall, ToolResponseMessage, Usage
from app.tool_calling.events import ToolCallFinished
from app.tool_calling.limits import CallCounter, ToolCallLimits
from app.tool_calling.manager import ToolCallingManager

__all__ = ["ToolCallingAdvisor"]


class ToolCallingAdvisor(Advisor):
    """Runs tool calls until the model answers without one.

    After ``max_rounds`` of calls, or when the model only repeats calls that were refused, the tools are taken away
    and the model is asked once more, so that the question still gets an answer from the results at hand.
    """

    order = 300

    def __init__(
        self, manager: ToolCallingManager, *, max_rounds: int = 10, limits: ToolCallLimits | None = None
    ) -> None:
        self._manager = manager
        self._max_rounds = max_rounds
        self._limits = limits or ToolCallLimits()

    async def advise(self, request: ChatRequest, chain: AdvisorChain) -> AsyncGenerator[ChatEvent, None]:
        """See :meth:`Advisor.advise`.

        Raises:
            ToolLoop: the model asked for tools even after they had been taken away.
            UpstreamInvalid: the model's last turn held neither text nor a call.
            ContentFiltered: the provider's moderation took the text away.
        """
        turns = _Turns(request, CallCounter(self._limits))
        while turns.answer is None:
            async with aclosing(self._round(turns, chain)) as events:
                async for event in events:
                    yield event
        yield turns.answer

    async def _round(self, turns: "_Turns", chain: AdvisorChain) -> AsyncGenerator[ChatEvent, None]:
        turns.round += 1
        async with aclosing(chain.proceed(turns.request)) as events:
            async for event in events:
                if isinstance(event, ChatResponse):
                    turns.hear(event)
                else:
                    yield event
        if turns.calls:
            async with aclosing(self._tool_events(turns)) as events:
                async for event in events:
                    yield event
            turns.go_on(self._max_rounds)

    async def _tool_events(self, turns: "_Turns") -> AsyncGenerator[ChatEvent, None]:
        request = turns.request
        offered = {tool.definition.name: tool for tool in request.tools}
        context = request.context.with_history((*request.messages, turns.message))
        running = self._manager.execute(turns.calls, offered, context, counter=turns.counter, round=turns.round)
        async with aclosing(running) as events:
            async for event in events:
                if isinstance(event, ToolCallFinished):
                    turns.latest.append(event)
                yield event


@dataclass(slots=True)
class _Turns:
    """One question's way through the loop."""

    request: ChatRequest
    counter: CallCounter
    round: int = 0
    usage: Usage = field(default_factory=Usage)
    executions: list[ToolCallFinished] = field(default_factory=list)
    latest: list[ToolCallFinished] = field(default_factory=list)
    response: ChatResponse | None = None
    answer: ChatResponse | None = None
    withdrawn: bool = False
    """The tools have been taken away: this turn must be the last."""

    @property
    def message(self) -> AssistantMessage:
        return self.response.message if self.response else AssistantMessage()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.message.tool_calls

    def hear(self, response: ChatResponse) -> None:
        self.response, self.latest = response, []
        self.usage += response.usage
        if not self.calls:
            _check_not_empty(response)
            self.answer = self._finished(response)
        elif self.withdrawn:
            raise ToolLoop(f"the model still asked for tools after {self.round - 1} rounds of calls")

    def go_on(self, max_rounds: int) -> None:
        """Take up the results of this round's calls, in the order of the calls."""
        position = {id(call): index for index, call in enumerate(self.calls)}
        self.latest.sort(key=lambda each: position[id(each.call)])
        self.executions += self.latest
        if all(each.return_direct and each.outcome == "ok" for each in self.latest):
            self.answer = self._returned_directly()
            return
        self.withdrawn = self.round >= max_rounds or all(_is_refused(each) for each in self.latest)
        responses = ToolResponseMessage(tuple(each.response for each in self.latest))
        messages = (*self.request.messages, self.message, responses)
        tools = () if self.withdrawn else self.request.tools
        self.request = replace(self.request, messages=messages, tools=tools)

    def _returned_directly(self) -> ChatResponse:
        text = "\n\n".join(each.result for each in self.latest)
        direct = ChatResponse(
            AssistantMessage(text), "return_direct", self.usage, self.response.model if self.response else ""
        )
        return self._finished(direct)

    def _finished(self, response: ChatResponse) -> ChatResponse:
        return replace(response, usage=self.usage, rounds=self.round, executions=tuple(self.executions))


def _is_refused(execution: ToolCallFinished) -> bool:
    return execution.error_kind in ("limit", "repeated-call")


def _check_not_empty(response: ChatResponse) -> None:
    if response.message.text.strip():
        return
    if response.finish_reason == "content_filter":
        raise ContentFiltered("the provider's moderation withheld the answer")
    raise UpstreamInvalid(f"the chat model gave an empty answer (finish reason: {response.finish_reason[:32]})")
