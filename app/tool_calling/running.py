"""One call in a task of its own: within its time, and again where its tool allows it."""

import asyncio
import random
from functools import partial

from app.observation.telling import tool_retried
from app.tool_calling.callback import ToolCallback, ToolResult
from app.tool_calling.context import ToolContext
from app.tool_calling.errors import ToolExecutionError
from app.tool_calling.json_text import ToolResultError
from app.tool_calling.progress import ProgressReporter

__all__ = ["Ended", "run_reporting", "run_within"]

_GRACE = 1.0
"""Seconds that a cancelled tool may take to tidy up before it is left to itself."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
"""Seconds before a call is tried again: doubled each time, and cut by chance, so that many do not come at once."""

Ended = ToolResult | BaseException
"""An error is a value here; raised, some would take the event loop with them."""


async def run_reporting(
    seconds: float, callback: ToolCallback, arguments: str, context: ToolContext, reporter: ProgressReporter
) -> Ended:
    """The same for a tool that may report: every report is told before the end, and nothing after it."""
    try:
        ended = await run_within(seconds, callback, arguments, context.reporting_to(reporter.report))
        await reporter.finish()
    except BaseException:
        await reporter.cancel()
        raise
    return ended


async def run_within(seconds: float, callback: ToolCallback, arguments: str, context: ToolContext) -> Ended:
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
        tool_retried(callback.definition.name)
        await asyncio.sleep(pause)
    return await callback.result(arguments, context)


def _pause(error: Exception, attempt: int) -> float:
    pause: float = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt) * random.uniform(0.5, 1)  # noqa: S311 - no secret
    return max(pause, getattr(error, "retry_after", None) or 0)
