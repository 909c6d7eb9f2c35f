"""Runs the tool calls of one assistant message."""

import asyncio
import logging
import random
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

from toolchat import instruments
from toolchat.errors import ToolchatError, ToolFailed
from toolchat.messages import AssistantMessage, Message, ToolCall, ToolResponse, ToolResponseMessage
from toolchat.tool_calling.callback import ToolCallback, ToolResult
from toolchat.tool_calling.caller import current_caller
from toolchat.tool_calling.context import PAUSE, ProgressReporter, ToolContext
from toolchat.tool_calling.definition import ToolMetadata
from toolchat.tool_calling.errors import ToolArgumentsError, ToolExecutionError
from toolchat.tool_calling.events import EmitToolCall, ToolCallFinished, ToolCallStarted, silent
from toolchat.tool_calling.limits import CallCounter, ToolCallLimits
from toolchat.tool_calling.results import ToolResultError, shorten

__all__ = [
    "Ended",
    "ToolCallingManager",
    "ToolExecutionExceptionProcessor",
    "ToolExecutionResult",
    "is_direct",
    "run_with_progress",
    "run_with_timeout",
]


_GRACE = 1.0
"""Seconds that a cancelled tool may take to tidy up before it is left to itself."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
"""Seconds before a call is tried again: doubled each time, and cut by chance, so that many do not come at once."""

Ended = ToolResult | BaseException
"""An error is a value here; raised, some would take the event loop with them."""


async def run_with_progress(
    seconds: float, callback: ToolCallback, arguments: str, context: ToolContext, reporter: ProgressReporter
) -> Ended:
    """The same for a tool that may report: every report is told before the end, and nothing after it."""
    try:
        ended = await run_with_timeout(seconds, callback, arguments, context.reporting_to(reporter.report))
        await reporter.finish()
    except BaseException:
        await reporter.cancel()
        raise
    return ended


async def run_with_timeout(seconds: float, callback: ToolCallback, arguments: str, context: ToolContext) -> Ended:
    """Run a tool so that it can neither cancel its caller nor outstay its time; gives whatever it raised."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(_contained(callback, arguments, context, seconds))
    ended: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, _end, ended)
    task.add_done_callback(lambda _: _end(ended))
    try:
        await ended
        if not task.done():
            return ToolExecutionError(f"the tool did not answer within {seconds:g} s", kind="timeout")
        return task.result()
    finally:
        timer.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_GRACE)


def _end(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


async def _contained(callback: ToolCallback, arguments: str, context: ToolContext, seconds: float) -> Ended:
    try:
        run = partial(_tried, seconds, callback) if callback.metadata.retries else callback.result
        told = await run(arguments, context)
        if not isinstance(told.text, str):
            raise ToolResultError(type(told.text).__name__)
    except BaseException as error:  # noqa: BLE001
        return error
    return told


async def _tried(seconds: float, callback: ToolCallback, arguments: str, context: ToolContext) -> ToolResult:
    """Run a tool, again after an error that is marked retryable, unless the pause would outlast the call's time."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    for attempt in range(callback.metadata.retries):
        try:
            return await callback.result(arguments, context)
        except Exception as error:
            pause = _pause(error, attempt)
            if getattr(error, "retryable", False) is not True or loop.time() + pause >= until:
                raise
        instruments.observer.record_tool_retry(callback.definition.name)
        await asyncio.sleep(pause)
    return await callback.result(arguments, context)


def _pause(error: Exception, attempt: int) -> float:
    pause: float = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt) * random.uniform(0.5, 1)  # noqa: S311 - no secret
    return max(pause, getattr(error, "retry_after", None) or 0)


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolExecutionExceptionProcessor:
    """Turns an exception into what the model is told, or ends the question with it.

    A tool's own :class:`ToolExecutionError` is told word for word, an upstream's failure by its client-safe detail.
    Of any other exception only the log has the details; the model is told that the tool failed. So it is, with the kind
    ``tool-result``, where a tool returned what JSON cannot carry; the log then names the type.
    """

    always_throw: bool = False
    """Spring AI's ``throw-exception-on-error``: a failing tool ends the question."""
    rethrow: tuple[type[BaseException], ...] = ()
    """Exceptions that pass through as they are, for the caller to handle."""

    def process(self, error: BaseException, tool: str) -> ToolExecutionError:
        """Decide about one exception.

        Returns:
            What the model is told.

        Raises:
            ToolFailed: with ``always_throw``, unless the model itself is at fault by its arguments.
            BaseException: the exception itself, when it is one to rethrow.
        """
        if isinstance(error, self.rethrow):
            raise error
        told = _told(error, tool)
        if self.always_throw and not isinstance(error, ToolArgumentsError):
            raise ToolFailed(f"{tool}: {told.message}") from error
        return told


def _told(error: BaseException, tool: str) -> ToolExecutionError:
    if isinstance(error, ToolchatError):
        error = ToolExecutionError(error.detail, kind=error.code)
    if isinstance(error, ToolExecutionError):
        return error if error.message.strip() else _speaking(error, tool)
    fields = {"tool": tool, "error": type(error).__name__}
    if isinstance(error, ToolResultError):
        fields["result_type"] = error.type_name
    _log.error("tool failed", extra=fields, exc_info=error)
    return ToolExecutionError("the tool failed", kind="tool-result" if "result_type" in fields else "failed")


def _speaking(error: ToolExecutionError, tool: str) -> ToolExecutionError:
    return ToolExecutionError(f"the tool {tool} failed and did not say why", kind=error.kind, hint=error.hint)


_SHOWN_NAME = 64
_UNKNOWN = ToolMetadata()
"""How a tool that is not there is treated."""


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
    progress_pause: float = PAUSE
    """Seconds between two reports of one call that listeners are told of."""

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

        Where the conversation ends with the message and the responses to some of its calls, only the others run.

        Args:
            messages: the conversation that led to the message.
            message: the assistant's message with the calls.
            tools: the tools that were offered; only these can run.
            context: what the tools are told behind the model's back.
            round: the model turn that asked for the calls, from 1.
            emit: is told as by :meth:`execute`.

        Raises:
            ValueError: the message has no calls.
        """
        if not message.tool_calls:
            raise ValueError("the message has no tool calls")
        before, answered = _answered(messages, message)
        calls = [call for call in message.tool_calls if call.id not in answered]
        offered = {tool.definition.name: tool for tool in tools}
        context = (context or ToolContext()).with_history((*before, message))
        executions = await self.execute(
            calls, offered, context, emit, counter=CallCounter(ToolCallLimits()), round=round
        )
        ended = iter(executions)
        responses = (answered.get(call.id) or next(ended).response for call in message.tool_calls)
        history = (*before, message, ToolResponseMessage(tuple(responses)))
        return ToolExecutionResult(history, executions, is_direct(executions) and not answered)

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

        ``emit`` is told the start of every call, then each call's end as it comes, by the caller's own task; between
        the two, by a task of the call, what its tool reports. Calls of a tool that is ``exclusive`` run one after
        another, in their order. Being cancelled cancels what runs.

        Returns:
            What became of the calls, in the order in which the model asked for them.
        """
        rejected = rejected or {}
        for call in calls:
            await emit(ToolCallStarted(call, round))
        if len(calls) == 1:
            rejection = rejected.get(calls[0].id)
            finished = await self._run(calls[0], offered, context, emit, counter, round, rejection)
            await emit(finished)
            return (finished,)
        gate, turns = asyncio.Semaphore(self.max_concurrency), _turns(calls, offered)

        async def gated(call: ToolCall) -> ToolCallFinished:
            async with turns.get(call.name) or nullcontext(), gate:
                return await self._run(call, offered, context, emit, counter, round, rejected.get(call.id))

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
        emit: EmitToolCall,
        counter: CallCounter,
        turn: int,
        rejection: ToolExecutionError | None,
    ) -> ToolCallFinished:
        started = perf_counter()
        observer = instruments.observer
        with observer.observe_tool_run(call) as observed:
            may_use = current_caller.get().may_use
            # Not only where tools are offered: whichever way a call has come, this is the last door before it runs.
            callback = offered.get(call.name) if may_use(call.name) else None
            metadata = callback.metadata if callback else _UNKNOWN
            told: ToolResult | ToolExecutionError | None = rejection or counter.refusal(call, metadata)
            if told is None and callback is not None:
                observer.begin_waiting()
                try:
                    ended = await self._ended(call, turn, callback, context, emit)
                finally:
                    observer.end_waiting()
                told = self.exception_processor.process(ended, call.name) if isinstance(ended, BaseException) else ended
            told = told or _unknown_tool(call.name, filter(may_use, offered))
            finished = self._finished(call, turn, metadata, told, started)
            observer.record_tool_call(call.name if callback else None, finished)
            observed.record_result(finished)
            return finished

    def _ended(
        self, call: ToolCall, turn: int, callback: ToolCallback, context: ToolContext, emit: EmitToolCall
    ) -> Coroutine[Any, Any, Ended]:
        seconds = callback.metadata.timeout or self.timeout
        if emit is silent or not callback.takes_context:
            return run_with_timeout(seconds, callback, call.arguments, context)
        reporter = ProgressReporter(call, turn, emit, self.progress_pause)
        return run_with_progress(seconds, callback, call.arguments, context, reporter)

    def _finished(
        self,
        call: ToolCall,
        turn: int,
        metadata: ToolMetadata,
        told: ToolResult | ToolExecutionError,
        started: float,
    ) -> ToolCallFinished:
        error = told if isinstance(told, ToolExecutionError) else None
        result = ToolResult(told.as_result()) if isinstance(told, ToolExecutionError) else told
        return ToolCallFinished(
            call=call,
            round=turn,
            result=shorten(result.text, self.max_result_chars),
            outcome="error" if error else "ok",
            duration_ms=round((perf_counter() - started) * 1000, 3),
            error_kind=error.kind if error else None,
            return_direct=metadata.return_direct,
            sandbox=error is None and metadata.sandbox,
            cached=result.cached,
            repaired=result.repaired,
        )


def _answered(
    messages: Sequence[Message], message: AssistantMessage
) -> tuple[Sequence[Message], Mapping[str, ToolResponse]]:
    """The messages before one, and the responses to some of its calls, where the messages end with it and with these.

    A message all of whose calls are answered is another one: a model may say the very same again.
    """
    place = len(messages)
    while place and isinstance(messages[place - 1], ToolResponseMessage):
        place -= 1
    if not place or messages[place - 1] != message:
        return messages, {}
    after = [each for each in messages[place:] if isinstance(each, ToolResponseMessage)]
    answered = {response.id: response for each in after for response in each.responses}
    if all(call.id in answered for call in message.tool_calls):
        return messages, {}
    return messages[: place - 1], answered


def _turns(calls: Sequence[ToolCall], offered: Mapping[str, ToolCallback]) -> Mapping[str, asyncio.Lock]:
    """For each tool that is exclusive a lock; who waits for it gets it in the order of coming."""
    named = {call.name: offered.get(call.name) for call in calls}
    return {name: asyncio.Lock() for name, callback in named.items() if callback and callback.metadata.exclusive}


def is_direct(executions: Sequence[ToolCallFinished]) -> bool:
    """Whether all results are answers in themselves; one that is not sends the whole batch back to the model."""
    return bool(executions) and all(each.return_direct and each.outcome == "ok" for each in executions)


def _unknown_tool(name: str, offered: Iterable[str]) -> ToolExecutionError:
    shown = name[:_SHOWN_NAME].replace("\n", " ")
    available = ", ".join(offered) or "none"
    return ToolExecutionError(f"there is no tool {shown!r}", kind="unknown-tool", hint=f"available: {available}")
