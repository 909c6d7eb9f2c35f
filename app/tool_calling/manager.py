"""Runs the tool calls of one assistant message."""

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from app.messages import AssistantMessage, Message, ToolCall, ToolResponseMessage
from app.tool_calling.callback import ToolCallback
from app.tool_calling.context import ToolContext
from app.tool_calling.errors import ToolExecutionError
from app.tool_calling.events import EmitToolCall, ToolCallFinished, ToolCallStarted, silent
from app.tool_calling.exception_processor import ToolExecutionExceptionProcessor
from app.tool_calling.limits import CallCounter, ToolCallLimits
from app.tool_calling.result_converter import truncated

__all__ = ["ToolCallingManager", "ToolExecutionResult", "is_direct"]

_SHOWN_NAME = 64
_GRACE = 1.0
"""Seconds that a cancelled tool may take to tidy up before it is left to itself."""


@dataclass(frozen=True, slots=True)
class ToolExecutionResult:
    """What a caller who runs tool calls on his own goes on with."""

    conversation_history: tuple[Message, ...]
    """The messages before, the assistant's message with the calls, and the responses to them."""
    executions: tuple[ToolCallFinished, ...]
    return_direct: bool
    """Every call's result is an answer in itself, so the model need not be asked again."""


@dataclass(frozen=True, slots=True)
class ToolCallingManager:
    """Runs calls side by side, each with a time limit of its own.

    Whatever happens to a call, the model gets exactly one answer to it: an unknown name, arguments that do not
    fit, a time-out or an exception become a short error that it can act on, and the other calls keep their results.
    """

    timeout: float = 20
    """Seconds a call may take, unless its tool says otherwise."""
    max_concurrency: int = 8
    max_result_chars: int = 32768
    exception_processor: ToolExecutionExceptionProcessor = field(default_factory=ToolExecutionExceptionProcessor)

    async def execute_tool_calls(
        self,
        messages: Sequence[Message],
        message: AssistantMessage,
        tools: Sequence[ToolCallback],
        context: ToolContext | None = None,
        *,
        round: int = 1,  # noqa: A002
        emit: EmitToolCall = silent,
    ) -> ToolExecutionResult:
        """Run the calls of one message for a caller who controls the loop himself.

        Args:
            messages: the conversation that led to the message.
            message: the assistant's message with the calls.
            tools: the tools that were offered; only these can run.
            context: what the tools are told behind the model's back.
            round: the model turn that asked for the calls, from 1.
            emit: is told as by :meth:`execute`.
        """
        offered = {tool.definition.name: tool for tool in tools}
        context = (context or ToolContext()).with_history((*messages, message))
        counter = CallCounter(ToolCallLimits())
        executions = await self.execute(message.tool_calls, offered, context, emit, counter=counter, round=round)
        responses = ToolResponseMessage(tuple(each.response for each in executions))
        return ToolExecutionResult((*messages, message, responses), executions, is_direct(executions))

    async def execute(
        self,
        calls: Sequence[ToolCall],
        offered: Mapping[str, ToolCallback],
        context: ToolContext,
        emit: EmitToolCall = silent,
        *,
        counter: CallCounter,
        round: int = 1,  # noqa: A002
        rejected: Mapping[str, ToolExecutionError] | None = None,
    ) -> tuple[ToolCallFinished, ...]:
        """Run the calls of one message; only tools in ``offered`` can run, and no call whose id is in ``rejected``.

        ``emit`` is told the start of every call, then each call's end as it comes, by the caller's own task. Being
        cancelled cancels what runs.

        Returns:
            What became of the calls, in the order in which the model asked for them.
        """
        rejected = rejected or {}
        for call in calls:
            await emit(ToolCallStarted(call, round))
        if len(calls) == 1:
            finished = await self._run(calls[0], offered, context, counter, round, rejected.get(calls[0].id))
            await emit(finished)
            return (finished,)
        gate = asyncio.Semaphore(self.max_concurrency)

        async def gated(call: ToolCall) -> ToolCallFinished:
            async with gate:
                return await self._run(call, offered, context, counter, round, rejected.get(call.id))

        tasks = [asyncio.create_task(gated(call)) for call in calls]
        try:
            for ended in asyncio.as_completed(tasks):
                await emit(await ended)
            return tuple([task.result() for task in tasks])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(
        self,
        call: ToolCall,
        offered: Mapping[str, ToolCallback],
        context: ToolContext,
        counter: CallCounter,
        turn: int,
        rejection: ToolExecutionError | None,
    ) -> ToolCallFinished:
        started = time.perf_counter()
        callback = offered.get(call.name)
        error: ToolExecutionError | None = rejection or counter.refusal(call)
        result, cached = "", False
        if error is None:
            try:
                result, cached = await self._result(call, callback, offered, context)
            except ToolExecutionError as failure:
                error = failure
        text = truncated(error.as_result() if error else result, self.max_result_chars)
        return ToolCallFinished(
            call=call,
            round=turn,
            result=text,
            outcome="error" if error else "ok",
            duration_ms=round((time.perf_counter() - started) * 1000, 3),
            error_kind=error.kind if error else None,
            return_direct=callback is not None and callback.metadata.return_direct,
            sandbox=error is None and callback is not None and callback.metadata.sandbox,
            cached=cached,
        )

    async def _result(
        self, call: ToolCall, callback: ToolCallback | None, offered: Mapping[str, ToolCallback], context: ToolContext
    ) -> tuple[str, bool]:
        if callback is None:
            raise _unknown_tool(call.name, offered)
        limit = callback.metadata.timeout or self.timeout
        try:
            return await _within(limit, _contained(callback, call.arguments, context))
        except _ToolRaised as raised:
            error = raised.error
            raise self.exception_processor.process(error, callback.definition.name) from error


class _ToolRaised(Exception):
    """Carries whatever a tool raised out of its task; some exceptions would take the event loop with them."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


async def _contained(callback: ToolCallback, arguments: str, context: ToolContext) -> tuple[str, bool]:
    try:
        if callback.metadata.cache_seconds:
            return await callback.cached_call(arguments, context)
        return await callback.call(arguments, context), False
    except BaseException as error:
        raise _ToolRaised(error) from error


async def _within(limit: float, running: Coroutine[Any, Any, tuple[str, bool]]) -> tuple[str, bool]:
    """Wait for a tool in a task of its own, so that it can neither cancel its caller nor outstay its time."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(running)
    ended: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(limit, _end, ended, None)
    task.add_done_callback(partial(_end, ended))
    try:
        await ended
        if not task.done():
            raise _ToolRaised(ToolExecutionError(f"the tool did not answer within {limit:g} s", kind="timeout"))
        return task.result()
    finally:
        timer.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_GRACE)


def _end(ended: asyncio.Future[None], task: asyncio.Task[tuple[str, bool]] | None) -> None:
    if not ended.done():
        ended.set_result(None)
    if task is not None and not task.cancelled():
        task.exception()  # looked at, so that a task which nobody waits for any more is not reported as forgotten


def is_direct(executions: Sequence[ToolCallFinished]) -> bool:
    """Whether all results are answers in themselves; one that is not sends the whole batch back to the model."""
    return bool(executions) and all(each.return_direct and each.outcome == "ok" for each in executions)


def _unknown_tool(name: str, offered: Mapping[str, ToolCallback]) -> ToolExecutionError:
    shown = name[:_SHOWN_NAME].replace("\n", " ")
    available = ", ".join(offered) or "none"
    return ToolExecutionError(f"there is no tool {shown!r}", kind="unknown-tool", hint=f"available: {available}")
