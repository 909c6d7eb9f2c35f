"""Time limits and retries around any chat model."""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import Self

from toolchat import instruments
from toolchat.errors import ToolchatError, UpstreamTimeout
from toolchat.http.breakers import CircuitBreaker
from toolchat.instruments import ModelCall
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, ModelEvent, Progress, Prompt

__all__ = ["ModelTimeouts", "ResilientChatModel", "RetryPolicy"]


def _silent() -> ToolchatError:
    return UpstreamTimeout("the chat model did not answer in time")


class ModelTimeouts:
    """Waits for one turn, never longer than the idle limit between two events, nor than to the deadline in all.

    ::

        with ModelTimeouts(deadline=deadline, idle=30) as patience:
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


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a failed turn is tried again: capped exponential back-off with full jitter.

    A ``Retry-After`` of the upstream is a lower bound; a wait that would pass the deadline is not begun.
    """

    max_attempts: int = 3
    base_delay: float = 0.5
    max_delay: float = 8.0

    def delay(self, attempt: int, error: ToolchatError) -> float:
        """Seconds to wait after the given attempt (from 1) failed."""
        jittered = random.uniform(0, min(self.max_delay, self.base_delay * 2 ** (attempt - 1)))  # noqa: S311
        return jittered if error.retry_after is None else error.retry_after + jittered


class ResilientChatModel(ChatModel):
    """A chat model that never hangs and survives a passing fault.

    One deadline covers the whole turn, tries and waits included. A turn is tried again only when its error is
    retryable and no text of it has been handed out, and not at all while the breaker is open.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        total_timeout: float,
        idle_timeout: float,
        retry: RetryPolicy | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.provider = model.provider
        self.name = model.name
        self._model = model
        self._total_timeout = total_timeout
        self._idle_timeout = idle_timeout
        self._retry = retry or RetryPolicy()
        self._breaker = breaker or CircuitBreaker(model.provider, failures=0)
        instruments.observer.register_model(self.provider, self.name)

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Run one turn; see :meth:`ChatModel.respond`.

        Raises:
            UpstreamTimeout: silent beyond the idle limit, or the turn took longer than its total limit.
        """
        deadline = asyncio.get_running_loop().time() + self._total_timeout
        # Without streaming nothing arrives before the end, so silence means nothing there.
        idle = self._idle_timeout if prompt.stream else self._total_timeout
        with instruments.observer.observe_model_call(self.provider, self.name, prompt) as call:
            for attempt in count(1):
                patience = ModelTimeouts(deadline=deadline, idle=idle)
                listener = _Listener(emit, patience, call)
                try:
                    with self._breaker, patience:
                        response = await self._model.respond(prompt, listener.tell)
                    call.record_response(response)
                    return response
                except _ListenerFailed as failed:
                    raise failed.error from None
                except ToolchatError as error:
                    is_lost = listener.has_text or self._breaker.is_open
                    if is_lost or not await self._wait_before_retry(attempt, error, deadline):
                        raise
                    call.record_retry(error)
        raise AssertionError("a turn ends with an answer or an error")

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    async def _wait_before_retry(self, attempt: int, error: ToolchatError, deadline: float) -> bool:
        delay = self._retry.delay(attempt, error)
        late = asyncio.get_running_loop().time() + delay >= deadline
        if not error.retryable or attempt >= self._retry.max_attempts or late:
            return False
        _log.warning("chat model failed, trying again", extra={"code": error.code, "attempt": attempt})
        await asyncio.sleep(delay)
        return True


class _ListenerFailed(BaseException):
    """Carries what a listener raised past the model.

    It is no :class:`Exception`, so that a provider, which takes whatever happens while it reads for its upstream's
    fault, does not take the listener's for one.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class _Listener:
    """Whoever is told a turn's events: meanwhile the model's time stands still."""

    __slots__ = ("_call", "_emit", "_patience", "has_text")

    def __init__(self, emit: EmitModelEvent, patience: ModelTimeouts, call: ModelCall) -> None:
        self._emit = emit
        self._patience = patience
        self._call = call
        self.has_text = False
        """Text has been handed out, so that the turn cannot be tried again."""

    async def tell(self, event: ModelEvent) -> None:
        self.has_text = self.has_text or not isinstance(event, Progress)
        self._call.record_chunk()
        self._patience.pause()
        try:
            await self._emit(event)
        except Exception as error:
            raise _ListenerFailed(error) from error
        self._patience.resume()
