"""The tool calling manager: runs the calls of one assistant message, each with its own time limit and error."""

import asyncio
import random
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from time import perf_counter
from typing import Any

import toolchat.instruments as instruments
from toolchat.errors import seconds_from
from toolchat.messages import AssistantMessage, Message, ToolCall, ToolResponseMessage, immutable, split_answered
from toolchat.tool_calling.callback import ToolCallback, ToolResult, required_approver
from toolchat.tool_calling.caller import current_caller
from toolchat.tool_calling.context import PAUSE, ProgressReporter, ToolContext, resolve_future
from toolchat.tool_calling.definition import ToolMetadata, number_faults
from toolchat.tool_calling.errors import ToolDefinitionError, ToolExecutionError
from toolchat.tool_calling.events import EmitToolCall, ToolCallFinished, ToolCallStarted, discard_event
from toolchat.tool_calling.exception_processor import (
    ToolExecutionExceptionProcessor,
    check_processor,
    expected_error,
    process_exception,
    timeout_error,
)
from toolchat.tool_calling.limits import CallCounter, ToolCallLimits
from toolchat.tool_calling.results import ToolResultError, shorten

_GRACE = 1.0
"""Seconds for the clean-up of a cancelled tool; after them it is abandoned."""
_FIRST_PAUSE, _MAX_PAUSE = 0.2, 5.0
"""Seconds before another attempt: doubled each time, with jitter, so that many callers do not retry at once."""

if sys.version_info >= (3, 12):
    _begin_task = partial(asyncio.Task, eager_start=True)  # a tool that never waits takes no way round the event loop
else:
    _begin_task = asyncio.Task

RunOutcome = ToolResult | BaseException
"""The result of a run, or its error as a value: raised in a task, ``SystemExit`` would end the event loop."""

ProceedToolCall = Callable[[ToolCall, ToolContext], Coroutine[Any, Any, ToolResult]]
"""Runs a call, with its retries and its cache; raises the errors of the tool."""
AroundToolCall = Callable[[ToolCall, ToolContext, ProceedToolCall], Coroutine[Any, Any, ToolResult]]
"""Wraps the run of a call; see ``Advisor.around_tool_call``."""


@immutable
class CallRun:
    """The run of one call: its time limit, its retries, and what advisors wrap around it."""

    callback: ToolCallback
    call: ToolCall
    context: ToolContext
    seconds: float
    """The limit for the whole run; a run that exceeds it is cancelled."""
    around: Sequence[AroundToolCall] = ()
    """Wraps the run, outermost first."""

    def outcome(self, reporter: ProgressReporter | None) -> Coroutine[Any, Any, RunOutcome]:
        """Run the tool; every progress report is emitted before the end, and none after it."""
        return self._run_isolated(None) if reporter is None else self._run_reporting(reporter)

    async def _run_reporting(self, reporter: ProgressReporter) -> RunOutcome:
        try:
            outcome = await self._run_isolated(reporter.report)
            await reporter.finish()
        except BaseException:
            await reporter.cancel()
            raise
        return outcome

    async def _run_isolated(self, report: Callable[..., None] | None) -> RunOutcome:
        """Run the tool with its time limit, isolated from its caller: it can neither cancel it nor raise in it."""
        loop = asyncio.get_running_loop()
        given_up = Event() if self.callback.takes_context or self.around else None
        context = self.context if given_up is None else self.context.for_call(given_up, report)
        # Not ``asyncio.timeout``: a tool that swallows its cancellation would hold the caller up for as long as it
        # likes. In a task of its own it can be abandoned.
        task: asyncio.Task[RunOutcome] = _begin_task(self._run_caught(context), loop=loop)
        if task.done():
            return task.result()
        ended: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(self.seconds, resolve_future, ended)
        task.add_done_callback(lambda _: resolve_future(ended))
        try:
            await ended
            if task.done():
                return task.result()
        finally:
            timer.cancel()
            if not task.done():
                if given_up is not None:
                    given_up.set()
                task.cancel()
                await asyncio.wait({task}, timeout=_GRACE)
        return timeout_error(task.result() if task.done() else None, self.seconds)

    async def _run_caught(self, context: ToolContext) -> RunOutcome:
        try:
            if self.around:
                result = await self._wrapped()(self.call, context)
            elif self.callback.metadata.retries:
                result = await self._run_with_retries(self.call, context)
            else:
                result = await self.callback.result(self.call.arguments, context)
            if not isinstance(result.text, str):  # a converter of the tool's own returned something else
                raise ToolResultError(type(result.text).__name__)
        except BaseException as error:  # noqa: BLE001 - ``SystemExit`` of a tool, too, must not end the event loop
            return expected_error(error) or error
        return result

    def _wrapped(self) -> ProceedToolCall:
        proceed: ProceedToolCall = self._run_unless_guarded
        for wrap in reversed(self.around):
            proceed = partial(_proceed_in, wrap, proceed)
        return proceed

    async def _run_unless_guarded(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run the call, unless an advisor has changed its arguments to ones that need approval by the tool's rule."""
        # Without a rule the arguments decide nothing. Changed ones are compared as the tool understands them, so that
        # an advisor may write them in another way without asking the user.
        read = self.callback.read_arguments
        if (
            callable(self.callback.metadata.requires_approval)
            and read(call.arguments) != read(self.call.arguments)
            and await required_approver(self.callback, call.arguments, context) is not None
        ):
            raise ToolExecutionError("not run: an advisor changed it to a call that needs approval", kind="not-run")
        return await self._run_with_retries(call, context)

    async def _run_with_retries(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run the tool, and again after a retryable error unless the pause would exceed the time limit."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self.seconds
        for attempt in range(self.callback.metadata.retries):
            try:
                return await self.callback.result(call.arguments, context)
            except Exception as error:
                own = expected_error(error) or error
                pause = _pause(own, attempt)
                if getattr(own, "retryable", False) is not True or loop.time() + pause >= until:
                    raise
            instruments.observer.record_tool_retry(self.callback.definition.name)
            await asyncio.sleep(pause)
        return await self.callback.result(call.arguments, context)


async def _proceed_in(
    wrap: AroundToolCall, proceed: ProceedToolCall, call: ToolCall, context: ToolContext
) -> ToolResult:
    result = await wrap(call, context, proceed)
    if not isinstance(result, ToolResult):
        raise TypeError(f"around_tool_call must return a ToolResult, not {type(result).__name__}")
    return result


def _pause(error: BaseException, attempt: int) -> float:
    pause: float = min(_MAX_PAUSE, _FIRST_PAUSE * 2**attempt) * random.uniform(0.5, 1)  # noqa: S311 - no secret
    return max(pause, seconds_from(getattr(error, "retry_after", None)) or 0)


_NUMBERS = (("timeout", float, 0.001), ("max_concurrency", int, 1), ("max_result_chars", int, 1))
_MAX_SHOWN_NAME = 64
_UNKNOWN = ToolMetadata()
"""The metadata of a tool that does not exist."""


@dataclass(frozen=True, slots=True)
class ToolExecutionResult:
    """The results of a message's calls, for callers that control the loop themselves."""

    conversation_history: tuple[Message, ...]
    """The messages before, the assistant's message with the calls, and the responses to them."""
    executions: tuple[ToolCallFinished, ...]
    return_direct: bool
    """Every result is an answer in itself, so the model need not be called again."""


@dataclass(frozen=True, slots=True)
class ToolCallingManager:
    """Runs the calls of a message concurrently, each with its own time limit.

    The model receives exactly one response for each call. An unknown name, invalid arguments, a time-out or an
    exception becomes a short error that the model can act on; the other calls keep their results.
    """

    timeout: float = 20
    """Seconds for a call, unless its tool has a limit of its own."""
    max_concurrency: int = 8
    max_result_chars: int = 32768
    exception_processor: ToolExecutionExceptionProcessor = field(default_factory=ToolExecutionExceptionProcessor)
    progress_pause: float = PAUSE
    """Seconds between two progress events of one call."""

    def __post_init__(self) -> None:
        for fault in number_faults(self, _NUMBERS):
            raise ToolDefinitionError(fault)
        check_processor(self.exception_processor)

    async def execute_tool_calls(
        self,
        messages: Sequence[Message],
        message: AssistantMessage,
        tools: Sequence[ToolCallback],
        context: ToolContext | None = None,
        *,
        round: int = 1,  # noqa: A002
        emit: EmitToolCall = discard_event,
    ) -> ToolExecutionResult:
        """Run the calls of one message, for a caller that controls the loop itself.

        If the conversation ends with the message and responses to some of its calls, only the others run.

        Args:
            messages: the conversation before the message.
            message: the assistant's message with the calls.
            tools: the tools that were offered; only these can run.
            context: values for the tools, hidden from the model.
            round: the round of the model call that requested the calls, from 1.
            emit: receives the events; see :meth:`execute`.

        Raises:
            ValueError: the message has no calls.
        """
        if not message.tool_calls:
            raise ValueError("the message has no tool calls")
        before, answered = split_answered(messages, message)
        calls = [call for call in message.tool_calls if call.id not in answered]
        offered = {tool.definition.name: tool for tool in tools}
        context = (context or ToolContext()).with_history((*before, message))
        executions = await self.execute(
            calls, offered, context, emit, counter=CallCounter(ToolCallLimits()), round=round
        )
        finished = iter(executions)
        responses = (answered.get(call.id) or next(finished).response for call in message.tool_calls)
        history = (*before, message, ToolResponseMessage(tuple(responses)))
        # With earlier results the executions are only a part of the answer, so the model has to put it together.
        return ToolExecutionResult(history, executions, is_direct(executions) and not answered)

    async def execute(
        self,
        calls: Sequence[ToolCall],
        offered: Mapping[str, ToolCallback],
        context: ToolContext,
        emit: EmitToolCall = discard_event,
        *,
        counter: CallCounter,
        round: int = 1,  # noqa: A002
        rejected: Mapping[str, ToolExecutionError] | None = None,
        around: Sequence[AroundToolCall] = (),
    ) -> tuple[ToolCallFinished, ...]:
        """Run the calls of one message; cancelling this cancels the calls.

        First ``emit`` receives the start of every call, then the end of each as it comes, both from the caller's task.
        Progress in between comes from a task of the call. Calls of an ``exclusive`` tool run one after another, in
        their order.

        Args:
            calls: the calls, in the order of the message.
            offered: the tools that can run, by name.
            context: values for the tools, and the messages before the calls.
            emit: receives the events.
            counter: the limits of the chat request.
            round: the round of the model call that requested the calls, from 1.
            rejected: errors of calls that must not run, by the calls' ids.
            around: wraps each call that runs, outermost first.

        Returns:
            One event for each call, in the order of the calls.
        """
        rejected = rejected or {}
        # All starts come first, so that a client can show every call of the message before the first one ends.
        for call in calls:
            await emit(ToolCallStarted(call, round))

        def run(call: ToolCall) -> Coroutine[Any, Any, ToolCallFinished]:
            return self._run(call, offered, context, emit, counter, round, rejected.get(call.id), around)

        if len(calls) != 1:
            return await self._run_concurrently(calls, run, _exclusive_locks(calls, offered), emit)
        finished = await run(calls[0])  # without a task, which would cost more than many a tool
        await emit(finished)
        return (finished,)

    async def _run_concurrently(
        self,
        calls: Sequence[ToolCall],
        run: Callable[[ToolCall], Coroutine[Any, Any, ToolCallFinished]],
        locks: Mapping[str, asyncio.Lock],
        emit: EmitToolCall,
    ) -> tuple[ToolCallFinished, ...]:
        slots = asyncio.Semaphore(self.max_concurrency)

        async def run_in_slot(call: ToolCall) -> ToolCallFinished:
            # The lock comes first: a call that waits for it must not occupy a slot.
            async with locks.get(call.name) or nullcontext(), slots:
                return await run(call)

        tasks = [asyncio.create_task(run_in_slot(call)) for call in calls]
        try:
            for ended in asyncio.as_completed(tasks):
                await emit(await ended)
            return tuple([task.result() for task in tasks])
        finally:
            # Reached with running tasks if the request is cancelled or ``emit`` fails: no call outlives its request.
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
        around: Sequence[AroundToolCall],
    ) -> ToolCallFinished:
        started = perf_counter()
        observer = instruments.observer
        with observer.observe_tool_run(call) as observed:
            may_use = current_caller.get().may_use
            # The final authorisation check before execution, whichever way the call has come.
            callback = offered.get(call.name) if may_use(call.name) else None
            metadata = callback.metadata if callback else _UNKNOWN
            # Counted before it runs, so that the calls of one message cannot pass a limit together.
            result: ToolResult | ToolExecutionError | None = rejection or counter.count(call, callback)
            if result is None and callback is not None:
                seconds = metadata.timeout or self.timeout
                # Without a client that watches, or a context to report through, nothing can be reported.
                reports = callback.takes_context and emit is not discard_event
                reporter = ProgressReporter(call, turn, emit, self.progress_pause) if reports else None
                observer.begin_waiting()
                try:
                    outcome = await CallRun(callback, call, context, seconds, around).outcome(reporter)
                finally:
                    observer.end_waiting()
                if isinstance(outcome, BaseException):
                    result = process_exception(self.exception_processor, outcome, call.name)
                else:
                    result = outcome
            result = result or _unknown_tool(call.name, filter(may_use, offered))
            finished = self._finish(call, turn, metadata, result, started)
            observer.record_tool_call(call.name if callback else None, finished)
            observed.record_result(finished)
            return finished

    def _finish(
        self,
        call: ToolCall,
        turn: int,
        metadata: ToolMetadata,
        outcome: ToolResult | ToolExecutionError,
        started: float,
    ) -> ToolCallFinished:
        error = outcome if isinstance(outcome, ToolExecutionError) else None
        result = ToolResult(outcome.as_result()) if isinstance(outcome, ToolExecutionError) else outcome
        # A direct result is the user's answer, and therefore kept whole beside the shortened text for the model.
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
            repaired=result.repaired or call.repaired,
            data=result.data,
            images=result.images,
            whole_result=result.text if metadata.return_direct else "",
        )


def _exclusive_locks(calls: Sequence[ToolCall], offered: Mapping[str, ToolCallback]) -> Mapping[str, asyncio.Lock]:
    """One lock for each exclusive tool; ``asyncio.Lock`` is fair, so the calls keep their order."""
    named = {call.name: offered.get(call.name) for call in calls}
    return {name: asyncio.Lock() for name, callback in named.items() if callback and callback.metadata.exclusive}


def is_direct(executions: Sequence[ToolCallFinished]) -> bool:
    """Whether every result is an answer in itself; otherwise all of them go back to the model."""
    return bool(executions) and all(each.return_direct and each.outcome == "ok" for each in executions)


def _unknown_tool(name: str, offered: Iterable[str]) -> ToolExecutionError:
    shown = name[:_MAX_SHOWN_NAME].replace("\n", " ")
    available = ", ".join(offered) or "none"
    return ToolExecutionError(f"there is no tool {shown!r}", kind="unknown-tool", hint=f"available: {available}")
