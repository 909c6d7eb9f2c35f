"""Runs the tool calls of one assistant message."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass

from app.errors import ToolchatError
from app.messages import ToolCall
from app.tool_calling.callback import ToolCallback
from app.tool_calling.context import ToolContext
from app.tool_calling.errors import ToolExecutionError
from app.tool_calling.events import ToolCallFinished, ToolCallStarted
from app.tool_calling.limits import CallCounter
from app.tool_calling.result_converter import truncated

__all__ = ["ToolCallingManager"]

_log = logging.getLogger(__name__)
_SHOWN_NAME = 64


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

    async def execute(
        self,
        calls: Sequence[ToolCall],
        offered: Mapping[str, ToolCallback],
        context: ToolContext,
        *,
        counter: CallCounter,
        round: int = 1,  # noqa: A002
    ) -> AsyncGenerator[ToolCallStarted | ToolCallFinished, None]:
        """Run the calls of one message; only tools in ``offered`` can run.

        Yields a start for every call, then each call's end as it comes. Closing the generator cancels what runs.
        """
        for call in calls:
            yield ToolCallStarted(call, round)
        if len(calls) == 1:
            yield await self._run(calls[0], offered, context, counter, round)
            return
        gate = asyncio.Semaphore(self.max_concurrency)

        async def gated(call: ToolCall) -> ToolCallFinished:
            async with gate:
                return await self._run(call, offered, context, counter, round)

        tasks = [asyncio.create_task(gated(call)) for call in calls]
        try:
            for finished in asyncio.as_completed(tasks):
                yield await finished
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(
        self, call: ToolCall, offered: Mapping[str, ToolCallback], context: ToolContext, counter: CallCounter, turn: int
    ) -> ToolCallFinished:
        started = time.perf_counter()
        callback = offered.get(call.name)
        error: ToolExecutionError | None = counter.refusal(call)
        result = ""
        if error is None:
            try:
                result = await self._result(call, callback, offered, context)
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
            sandbox=callback is not None and callback.metadata.sandbox,
        )

    async def _result(
        self, call: ToolCall, callback: ToolCallback | None, offered: Mapping[str, ToolCallback], context: ToolContext
    ) -> str:
        if callback is None:
            raise _unknown_tool(call.name, offered)
        limit = callback.metadata.timeout or self.timeout
        deadline = asyncio.timeout(limit)
        try:
            async with deadline:
                return await callback.call(call.arguments, context)
        except ToolExecutionError:
            raise
        except ToolchatError as error:
            raise ToolExecutionError(error.detail, kind=error.code) from error
        except BaseException as error:
            raise _unexpected(error, callback.definition.name, limit if deadline.expired() else None) from error


def _unknown_tool(name: str, offered: Mapping[str, ToolCallback]) -> ToolExecutionError:
    shown = name[:_SHOWN_NAME].replace("\n", " ")
    available = ", ".join(offered) or "none"
    return ToolExecutionError(f"there is no tool {shown!r}", kind="unknown-tool", hint=f"available: {available}")


def _unexpected(error: BaseException, tool: str, expired_after: float | None) -> ToolExecutionError:
    """Put a tool's exception into safe words; a cancellation of ours, and an interrupt, pass."""
    if expired_after is not None:
        return ToolExecutionError(f"the tool did not answer within {expired_after:g} s", kind="timeout")
    task = asyncio.current_task()
    cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
    if cancelled or isinstance(error, KeyboardInterrupt | GeneratorExit):
        raise error
    _log.error("tool failed", extra={"tool": tool, "error": type(error).__name__}, exc_info=error)
    return ToolExecutionError("the tool failed", kind="failed")
