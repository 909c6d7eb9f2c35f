"""How long to wait for a chat model's next event."""

import asyncio
from collections.abc import AsyncGenerator

from app.chat_models.base import ModelEvent
from app.errors import UpstreamTimeout

__all__ = ["Patience"]


class Patience:
    """Waits for the events of one turn, none longer than the idle limit and all no longer than to the deadline.

    One timer serves a whole turn and looks at the clock when it rings; a time limit of its own for every event costs
    more than all else that is done to a piece of text. The time that the reader of the events takes is not counted.
    """

    __slots__ = ("_cancelling", "_deadline", "_expired", "_idle", "_limit", "_loop", "_task", "_timer")

    def __init__(self, *, deadline: float, idle: float) -> None:
        """Set the limits: a time of the event loop's clock, and seconds."""
        self._loop = asyncio.get_running_loop()
        self._deadline = deadline
        self._idle = idle
        self._limit = deadline
        self._expired = False
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._timer: asyncio.TimerHandle | None = None

    def end(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    async def next(self, events: AsyncGenerator[ModelEvent, None]) -> ModelEvent:
        """The next event.

        Raises:
            UpstreamTimeout: it did not come in time.
            StopAsyncIteration: there is none.
        """
        self._limit = min(self._deadline, self._loop.time() + self._idle)
        if self._timer is None:
            self._timer = self._loop.call_at(self._limit, self._ring)
        self._task = task = asyncio.current_task(self._loop)
        try:
            return await anext(events)
        except asyncio.CancelledError:
            # Somebody else may have cancelled the task as well; then it stays cancelled.
            if self._expired and task is not None and task.uncancel() <= self._cancelling:
                raise UpstreamTimeout("the chat model did not answer in time") from None
            raise
        finally:
            self._task = None

    def _ring(self) -> None:
        if self._task is None:
            self._timer = None
        elif self._loop.time() < self._limit:
            self._timer = self._loop.call_at(self._limit, self._ring)
        else:
            self._expired = True
            self._cancelling = self._task.cancelling()
            self._task.cancel()
