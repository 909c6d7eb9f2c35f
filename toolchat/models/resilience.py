"""Timeouts and retries for any chat model."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self

import toolchat.instruments as instruments
from toolchat.errors import ToolchatError, UpstreamError, UpstreamInvalid, UpstreamTimeout
from toolchat.http.breakers import CircuitBreaker
from toolchat.instruments import ModelCall
from toolchat.messages import ToolResponseMessage
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, ModelEvent, Progress, Prompt
from toolchat.models.provider_errors import MAX_RETRY_AFTER, quotable
from toolchat.models.refused_tools import RefusedTools

KEEPALIVE = Progress(is_keepalive=True)
FINISH_TIMEOUT = 2.0
"""Seconds to wait after the finish reason for what may follow: usage, ``[DONE]`` and the end of the stream."""
_too_late = partial(UpstreamTimeout, "the chat model did not answer in time")


class ModelTimeouts:
    """An idle timeout between two events and a deadline for the whole model call, as a context manager.

    ::

        with ModelTimeouts(deadline=deadline, idle=30) as timeouts:
            ...  # timeouts.pause() while the listener handles an event, timeouts.resume() after it

    The idle time does not include the time that the listener takes. One timer serves the whole call and checks the
    clock when it fires: an ``asyncio.timeout`` per event would cost more than everything else done to a piece of text.

    Args:
        deadline: in the time of the event loop.
        idle: seconds between two events.
        error: creates the error that the block raises if a limit expired.
    """

    def __init__(self, *, deadline: float, idle: float, error: Callable[[], ToolchatError] = _too_late) -> None:
        self._error = error
        self._loop = asyncio.get_running_loop()
        self._deadline = deadline
        self._idle = idle
        self._paused = False
        self.expired = False
        """Whether one of the limits has ended the block."""

    def __enter__(self) -> Self:
        task = asyncio.current_task(self._loop)
        if task is None:
            raise RuntimeError("a timeout needs a task that it can cancel")
        self._task = task
        # A cancellation from outside after this point takes precedence over a timeout that expires meanwhile.
        self._cancelling = task.cancelling()
        self._timer: asyncio.TimerHandle | None = None
        self.resume()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        # As asyncio.timeout does: take our own cancellation back, unless one from outside came as well.
        if self.expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise self._error() from None

    def pause(self) -> None:
        """Stop the idle time: the listener handles an event."""
        self._paused = True

    def resume(self) -> None:
        """Restart the idle time: the model owes the next event."""
        self._paused = False
        self._since = self._loop.time()
        if self._timer is None:
            self._start_timer(self._since)

    def _start_timer(self, now: float) -> None:
        left = min(self._deadline, self._since + self._idle) - now
        self._timer = self._loop.call_later(max(0, left), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        # While paused, resume() will start the timer; a task that is being cancelled needs no further limit.
        if self._paused or self._task.cancelling() > self._cancelling:
            return
        now = self._loop.time()
        if now < min(self._deadline, self._since + self._idle):
            self._start_timer(now)
        else:
            self.expired = True
            self._task.cancel()


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a failed model call is retried: capped exponential back-off with full jitter.

    ``Retry-After`` is a lower bound. There is no retry if the delay would exceed the deadline.
    """

    max_attempts: int = 3
    base_delay: float = 0.5
    max_delay: float = 8.0

    def delay(self, attempt: int, error: ToolchatError) -> float:
        """Seconds to wait after an attempt (counted from 1) failed."""
        # Jitter over the whole delay: calls that failed together must not be retried together.
        jittered = random.uniform(0, min(self.max_delay, self.base_delay * 2 ** (attempt - 1)))  # noqa: S311
        return jittered if error.retry_after is None else error.retry_after + jittered


class ResilientChatModel(ChatModel):
    """A chat model with timeouts, retries and a circuit breaker.

    One deadline covers all attempts and the delays between them. A call is retried only if its error is retryable and
    no text was emitted, and never while the circuit is open or after one of the timeouts.

    Args:
        total_timeout: seconds for the whole call.
        idle_timeout: seconds without a sign of life: an event, or a :class:`Progress` that is a keepalive. Most models
            give none before the end of an answer that is not streamed.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        total_timeout: float,
        idle_timeout: float,
        retry: RetryPolicy | None = None,
        breaker: CircuitBreaker | None = None,
        log_provider_messages: bool = False,
    ) -> None:
        self.provider = model.provider
        self.name = model.name
        self.takes_images = model.takes_images
        self._model = model
        self._total_timeout = total_timeout
        self._idle_timeout = idle_timeout
        self._retry = retry or RetryPolicy()
        self._log_provider_messages = log_provider_messages
        self._refused = RefusedTools(self.provider, self.name, self._quote)
        self.breaker = breaker or CircuitBreaker(model.provider, failures=0)
        instruments.observer.register_model(self.provider, self.name)

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Call the model; see :meth:`ChatModel.respond`.

        Raises:
            UpstreamTimeout: the model exceeded the idle timeout or the total timeout.
        """
        deadline = asyncio.get_running_loop().time() + self._total_timeout
        with instruments.observer.observe_model_call(self.provider, self.name, prompt) as call:
            attempt = 0
            while True:
                attempt += 1
                timeouts = ModelTimeouts(deadline=deadline, idle=self._idle_timeout)
                listener = _Listener(emit, timeouts, call)
                try:
                    # The breaker is outside: a timeout must count as a failure of the upstream.
                    with self.breaker, timeouts:
                        response = await self._ask(prompt, listener)
                        _check_not_empty(response, prompt)
                    call.record_response(response)
                    return response
                except _ListenerFailed as failed:
                    raise failed.error from None
                except ToolchatError as error:
                    self._quote(error)
                    # The client has the text already, and a second attempt would write another one behind it; a model
                    # that was silent for so long would be so again.
                    is_final = listener.has_text or self.breaker.is_open or timeouts.expired
                    if is_final or not await self._wait_before_retry(attempt, error, deadline):
                        named = {"provider": self.provider, "model": prompt.options.model or self.name}
                        error.log_fields |= {**named, "retries": attempt - 1}
                        raise
                    call.record_retry(error)

    def _quote(self, error: ToolchatError) -> None:
        error.provider_message = quotable(error.provider_message, self._model.secrets)
        if error.provider_message and self._log_provider_messages:
            error.log_fields["provider_message"] = error.provider_message

    async def _ask(self, prompt: Prompt, listener: "_Listener") -> ChatResponse:
        """Ask without the tools that the provider refuses."""
        offer = self._refused.offer(prompt)
        while True:
            try:
                response = await self._model.respond(offer.prompt, listener.emit)
            except UpstreamInvalid as error:
                if listener.has_text or not offer.leave_out(error):
                    raise error if error.retryable else offer.first or error from None
            else:
                return offer.answered(response) if offer.out else response

    @property
    def adapted(self) -> Mapping[str, Any]:
        """See :attr:`ChatModel.adapted`; ``without`` are the tools that are left out."""
        found = {name: dict(each) for name, each in self._model.adapted.items()}
        for name, tools in self._refused.by_model.items():
            found.setdefault(name, {})["without"] = list(tools)
        return found

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    async def _wait_before_retry(self, attempt: int, error: ToolchatError, deadline: float) -> bool:
        delay, most = self._retry.delay(attempt, error), self._retry.max_attempts
        if isinstance(error, UpstreamError) and error.is_stale:
            delay, most = 0, max(2, most)  # the provider has not failed: another try, even if only one is allowed
        late = asyncio.get_running_loop().time() + delay >= deadline or (error.retry_after or 0) >= MAX_RETRY_AFTER
        if not error.retryable or attempt >= most or late:
            return False
        # Not a warning: if the retries fail as well, the failure itself is logged, with their number.
        _log.info("chat model failed, retrying", extra={"code": error.code, "attempt": attempt, **error.log_fields})
        await asyncio.sleep(delay)
        return True


def _check_not_empty(response: ChatResponse, prompt: Prompt) -> None:
    # Often the same question succeeds: https://github.com/google-gemini/deprecated-generative-ai-python/issues/744
    # With results of tools the same would come again: the tool loop asks without tools.
    if response.is_empty and not (prompt.tools and isinstance(prompt.messages[-1], ToolResponseMessage)):
        raise UpstreamInvalid("the chat model gave an empty answer", retryable=True)


class _ListenerFailed(BaseException):
    """Carries an exception of the listener through the model.

    It does not derive from :class:`Exception`, because providers turn every exception while they read into an error of
    their upstream.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class _Listener:
    """Forwards the events of one attempt and stops the idle time meanwhile."""

    def __init__(self, emit: EmitModelEvent, timeouts: ModelTimeouts, call: ModelCall) -> None:
        self._emit = emit
        self._timeouts = timeouts
        self._call = call
        self.has_text = False
        """Whether text was emitted, which rules out a retry."""

    async def emit(self, event: ModelEvent) -> None:
        if isinstance(event, Progress):
            if event.is_keepalive:
                self._timeouts.resume()
                return
        else:
            self.has_text = True
        self._call.record_chunk(event)
        self._timeouts.pause()
        try:
            await self._emit(event)
        except Exception as error:
            raise _ListenerFailed(error) from error
        self._timeouts.resume()
