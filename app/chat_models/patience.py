"""How long to wait for a chat model's next event, or for the whole answer to a question."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

from app.errors import ToolchatError, UpstreamTimeout

__all__ = ["Patience"]


def _silent() -> ToolchatError:
    return UpstreamTimeout("the chat model did not answer in time")


class Patience:
    """Waits for one turn, never longer than the idle limit between two events, nor than to the deadline in all.

    ::

        with Patience(deadline=deadline, idle=30) as patience:
            ...  # patience.pause() while the listener takes an event, patience.resume() behind it

    One timer serves a whole turn and looks at the clock when it rings; a time limit of its own for every event costs
    more than all else that is done to a piece of text. The time that the listener takes is not the model's silence.

    Args:
        deadline: a time of the event loop's clock.
        idle: seconds.
        error: makes what is raised at the end when a limit cancelled what was waited for.
    """

    __slots__ = (
        "_cancelling",
        "_deadline",
        "_error",
        "_expired",
        "_idle",
        "_loop",
        "_paused",
        "_since",
        "_task",
        "_timer",
    )

    def __init__(self, *, deadline: float, idle: float, error: Callable[[], ToolchatError] = _silent) -> None:
        self._error = error
        self._loop = asyncio.get_running_loop()
        self._deadline = deadline
        self._idle = idle
        self._paused = False
        self._expired = False

    def __enter__(self) -> Self:
        task = asyncio.current_task(self._loop)
        if task is None:
            raise RuntimeError("a time limit needs a task that it can cancel")
        self._task = task
        # Noted now: whoever cancels the task after this wins over a limit that expires while the model tidies up.
        self._cancelling = task.cancelling()
        self._timer: asyncio.TimerHandle | None = None
        self.resume()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise self._error() from None

    def pause(self) -> None:
        """Let time stand still: an event has come, and its listener takes it."""
        self._paused = True

    def resume(self) -> None:
        """Begin to wait for the next event."""
        self._paused = False
        self._since = self._loop.time()
        if self._timer is None:
            self._wait(self._since)

    def _wait(self, now: float) -> None:
        left = min(self._deadline, self._since + self._idle) - now
        self._timer = self._loop.call_later(max(0, left), self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._paused or self._task.cancelling() > self._cancelling:
            return
        now = self._loop.time()
        if now < min(self._deadline, self._since + self._idle):
            self._wait(now)
        else:
            self._expired = True
            self._task.cancel()
