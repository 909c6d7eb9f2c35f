"""Time limits and retries around any chat model."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from app.chat_models.base import ChatModel, ChatResponse, ModelEvent, Progress, Prompt
from app.chat_models.patience import Patience
from app.errors import ToolchatError

__all__ = ["ResilientChatModel", "RetryPolicy"]

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
    retryable and no text of it has been handed out.
    """

    def __init__(
        self, model: ChatModel, *, total_timeout: float, idle_timeout: float, retry: RetryPolicy | None = None
    ) -> None:
        self.provider = model.provider
        self.name = model.name
        self._model = model
        self._total_timeout = total_timeout
        self._idle_timeout = idle_timeout
        self._retry = retry or RetryPolicy()

    async def respond(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        """Run one turn; see :meth:`ChatModel.respond`.

        Raises:
            UpstreamTimeout: silent beyond the idle limit, or the turn took longer than its total limit.
        """
        deadline = asyncio.get_running_loop().time() + self._total_timeout
        # Without streaming nothing arrives before the end, so silence means nothing there.
        idle = self._idle_timeout if prompt.stream else self._total_timeout
        attempt = 1
        while True:
            handed_out = False
            patience = Patience(deadline=deadline, idle=idle)
            try:
                async with aclosing(self._model.respond(prompt)) as events:
                    while True:
                        event = await patience.next(events)
                        handed_out = handed_out or not isinstance(event, Progress)
                        yield event
                        if isinstance(event, ChatResponse):
                            return
            except ToolchatError as error:
                if handed_out or not await self._wait_before_retry(attempt, error, deadline):
                    raise
            finally:
                patience.end()
            attempt += 1

    async def _wait_before_retry(self, attempt: int, error: ToolchatError, deadline: float) -> bool:
        delay = self._retry.delay(attempt, error)
        late = asyncio.get_running_loop().time() + delay >= deadline
        if not error.retryable or attempt >= self._retry.max_attempts or late:
            return False
        _log.warning("chat model failed, trying again", extra={"code": error.code, "attempt": attempt})
        await asyncio.sleep(delay)
        return True
