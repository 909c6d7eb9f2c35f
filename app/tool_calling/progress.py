"""How far a tool says that it is: from any thread to whoever listens, and never faster than can be read."""

import asyncio
import contextvars
from collections import deque
from contextlib import suppress

from app.messages import ToolCall
from app.tool_calling.events import EmitToolCall, ToolCallProgress

__all__ = ["PAUSE", "ProgressReporter"]

PAUSE = 1 / 9
"""Seconds between two events of one call: with the last one, which does not wait, there are ten in a second."""
_LONGEST_TEXT = 200


class ProgressReporter:
    """Tells a listener what one call reports.

    What comes first is told at once, what follows a pause apart: of those that come meanwhile only the latest. What
    is left when the call ends is told then, and nothing after it. No task is made before the first report.
    """

    __slots__ = (
        "_call",
        "_context",
        "_emit",
        "_ended",
        "_latest",
        "_loop",
        "_pause",
        "_rest",
        "_round",
        "_task",
        "_woken",
    )

    def __init__(self, call: ToolCall, turn: int, emit: EmitToolCall, pause: float = PAUSE) -> None:
        self._call = call
        self._round = turn
        self._emit = emit
        self._pause = pause
        self._loop = asyncio.get_running_loop()
        # A report may come from a thread that knows nothing of the request; what it causes belongs to the request.
        self._context = contextvars.copy_context()
        # Its append and its pop are atomic: a report is either the one that is told, or still there.
        self._latest: deque[tuple[float, float | None, str | None]] = deque(maxlen=1)
        self._woken = self._ended = False
        self._task: asyncio.Task[None] | None = None
        self._rest: asyncio.Future[None] | None = None

    def report(self, done: float, of: float | None, text: str | None) -> None:
        """Take a report, from any thread; see :meth:`ToolContext.report`."""
        if self._ended:
            return
        self._latest.append((done, of, text))
        if not self._woken:
            self._woken = True
            # The loop may be gone when a thread for which nobody waits any more comes this far.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake, context=self._context)

    async def finish(self) -> None:
        """Tell what is left, and ignore what comes from now on; raises what the listener raised."""
        self._ended = True
        if self._task is None and self._latest:
            self._task = self._loop.create_task(self._tell())
        if self._task is not None:
            if self._rest is not None:
                _end(self._rest)
            await self._task

    async def cancel(self) -> None:
        """Tell nothing any more."""
        self._ended = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _wake(self) -> None:
        if self._task is None and not self._ended:
            self._task = self._loop.create_task(self._tell())

    async def _tell(self) -> None:
        while True:
            self._woken = False  # Before the look, so that whoever comes behind it wakes us again.
            if not self._latest:
                break
            await self._emit(self._progress(*self._latest.pop()))
            await self._have_a_rest()
        self._task = None

    async def _have_a_rest(self) -> None:
        if self._ended:
            return
        self._rest = self._loop.create_future()
        timer = self._loop.call_later(self._pause, _end, self._rest)
        try:
            await self._rest
        finally:
            timer.cancel()

    def _progress(self, done: float, of: float | None, text: str | None) -> ToolCallProgress:
        return ToolCallProgress(self._call, self._round, done, of, _line(text) if text else None)


def _end(rest: asyncio.Future[None]) -> None:
    if not rest.done():
        rest.set_result(None)


def _line(text: str) -> str | None:
    """A text as one line of what can be shown."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return (line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 1]}…") or None
