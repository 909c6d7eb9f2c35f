"""Checkpoints: a turn is stored around each call that writes, as one that pauses, and resumed after a crash."""

import asyncio
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.advisors.memory import TURN_ID
from toolchat.chat.advisors.tool_loop import LoopState, running_loop
from toolchat.chat.client import PromptSpec
from toolchat.chat.request import ChatEvent, ChatRequest, Emit, Resume
from toolchat.messages import AssistantMessage, Message, ToolCall, turn_start
from toolchat.models.base import ChatResponse, TextDelta
from toolchat.tool_calling.callback import ToolResult
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.events import ToolCallFinished, ToolCallStarted
from toolchat.tool_calling.manager import ProceedToolCall

_UNKNOWN = ToolExecutionError(
    "the process that ran this call has died, so its outcome is unknown: it may have taken effect",
    kind="outcome-unknown",
    hint="say so, or find out by a tool that only reads; do not simply repeat it",
)


class CheckpointAdvisor(Advisor):
    """Stores the turn before each call that writes, and with its result; resumes the one that an earlier try stored."""

    # Directly outside the tool loop, whose results it sees as the model gets them.
    order = 299

    def __init__(
        self, identifier: str, earlier: ChatResponse | None, save: Callable[[ChatResponse], Awaitable[None]]
    ) -> None:
        self.identifier = identifier
        self._earlier, self._save = earlier, save
        self._saving = asyncio.Lock()
        self._finished: list[ToolCallFinished] = []
        self._begun: dict[str, ToolCallFinished | None] = {}
        """The calls that write and have no result yet, by id, with the result that they have if this process dies."""

    def prompt(self, asked: PromptSpec) -> PromptSpec:
        request, earlier = asked.request, self._earlier
        if earlier is not None:
            request = replace(request, messages=earlier.history, resume=Resume(earlier.message, {}, earlier))
        prompt = PromptSpec(asked.client, request, asked.own_advisors)
        return prompt.tool_context({TURN_ID: self.identifier}).advisors(self)

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        self._finished, self._begun = [], {}
        if self._earlier is not None:
            await _tell_again(self._earlier, emit)

        def watch(event: ChatEvent) -> Coroutine[Any, Any, None]:
            return self._end(event, emit) if isinstance(event, ToolCallFinished) else emit(event)

        return (await chain.proceed(request, watch)).whole_turn()

    async def around_tool_call(self, call: ToolCall, context: ToolContext, proceed: ProceedToolCall) -> ToolResult:
        loop = running_loop()
        metadata = loop.callable_tools[call.name].metadata
        if not metadata.is_read_only:
            unknown = ToolCallFinished(call, loop.rounds, _UNKNOWN.as_result(), "error", 0, _UNKNOWN.kind)
            self._begun[call.id] = None if metadata.may_run_twice else unknown
            await self._store(loop)
        return await proceed(call, context.with_idempotency_key(self._idempotency_key(call, context.history)))

    async def _end(self, call: ToolCallFinished, emit: Emit) -> None:
        self._finished.append(call)
        if call.call.id in self._begun:
            del self._begun[call.call.id]
            await self._store(running_loop())
        await emit(call)

    async def _store(self, loop: LoopState) -> None:
        async with self._saving:  # the newest one is the last
            await self._save(self._turn(loop))

    def _turn(self, loop: LoopState) -> ChatResponse:
        finished = [*self._finished[len(loop.executions) :], *filter(None, self._begun.values())]
        message, history, results = loop.message, loop.request.messages, loop.results(loop.message, finished)
        if results.responses:
            history = (*history, message, results)
        if len(results.responses) == len(message.tool_calls):
            message = AssistantMessage("")  # the model comes next
        # A turn that pauses begins with the round that it has paused in.
        rounds = loop.rounds if message.tool_calls else loop.rounds + 1
        executions = (*loop.executions, *finished)
        turn = ChatResponse(message, "paused", loop.usage, "", rounds, executions, history)
        return replace(turn, paused_response=loop.paused_response).whole_turn()

    def _idempotency_key(self, call: ToolCall, history: Sequence[Message]) -> str:
        # A model may use an id again in a later round.
        running = [each for each in history[turn_start(history) :] if isinstance(each, AssistantMessage)]
        number = sum([each.id == call.id for message in running for each in message.tool_calls])
        return hashlib.sha256(f"{self.identifier} {number} {call.id}".encode(errors="surrogatepass")).hexdigest()[:32]


async def _tell_again(turn: ChatResponse, emit: Emit) -> None:
    """Emit the events of a turn up to its checkpoint, for the readers of the new try."""
    finished = deque(turn.executions)
    running = turn.history[turn_start(turn.history) :]
    for message in running if turn.message in running else (*running, turn.message):
        if isinstance(message, AssistantMessage):
            if message.text:
                await emit(TextDelta(message.text))
            ids = {call.id for call in message.tool_calls}
            while finished and finished[0].call.id in ids:
                await emit(ToolCallStarted(finished[0].call, finished[0].round))
                await emit(finished.popleft())
