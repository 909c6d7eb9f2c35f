"""Runs background questions by turns of their clients, those of processes that have died included."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from dataclasses import replace
from math import inf
from typing import Any

from starlette.types import ASGIApp

from toolchat.errors import SessionBusy, StoreUnavailable
from toolchat.service.access.principals import Principal
from toolchat.service.api.background.attempt import Attempt
from toolchat.service.api.background.backlog import Backlog
from toolchat.service.api.background.records import BackgroundQuestion, BackgroundRecords, Unfinished
from toolchat.state.base import LockLost, StateStore

_log = logging.getLogger(__name__)
_SWEEP_SECONDS = 1.5
_PAUSE_AFTER_BUG = 15.0
_Trying = Coroutine[Any, Any, BackgroundQuestion | None]
"""Gives a question as it is stored after a try; ``None`` if there is none any more."""


class BackgroundRunner:
    """Runs the unfinished questions that no other process runs, each under its own lock.

    ``rights`` gives the current rights of the principal that asked; ``None`` if they were withdrawn.
    """

    def __init__(
        self,
        app: ASGIApp,
        store: StateStore,
        rights: Callable[[Principal], Principal | None],
        wait_ready: Callable[[], Awaitable[None]],
    ) -> None:
        self.records = BackgroundRecords(store)
        self._app, self._rights, self._wait_ready = app, rights, wait_ready
        self._backlog = Backlog()
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            for task in (watching, *self._tasks):
                task.cancel()
            await asyncio.gather(watching, *self._tasks, return_exceptions=True)
            self._backlog = Backlog()

    async def accept(self, question: BackgroundQuestion, body: bytes) -> None:
        """Store a question, and begin to answer it; once this returns, the question survives a crash."""
        unfinished = question.unfinished
        has_slot = self._backlog.admit(unfinished)
        try:
            # As running if it has a slot: one commit less than to note that later.
            await self.records.add(replace(question, state="running", tries=1) if has_slot else question, body)
        except BaseException:
            self._backlog.remove(unfinished)
            raise
        if has_slot:
            self._start(unfinished, self._taken_over(question.identifier, body))
        else:
            self._backlog.put(unfinished)

    def of_sessions(self, client: str) -> dict[str, str]:
        """The ids of a client's unfinished questions by their sessions; those of other processes come with a delay."""
        known = self._backlog.known().items()
        return {question.session: identifier for identifier, question in known if question.client == client}

    async def cancel(self, question: BackgroundQuestion) -> BackgroundQuestion:
        """Stop a question, wherever it runs; returns its record once it has stopped, which takes up to a second."""
        await self.records.request_cancellation(question)
        if not self._backlog.runs(question.identifier):  # it may wait for a slot, which it does not need for that
            self._start(question.unfinished, self._taken_over(question.identifier))
        async for _ in self.records.events(question):
            pass
        return await self.records.find(question.identifier, question.principal) or question

    async def _watch(self) -> None:
        await self._wait_ready()
        while True:
            with suppress(StoreUnavailable):
                known = self._backlog.known()
                self._backlog.refresh(known, await self.records.unfinished())
                self._start_next()
            await asyncio.sleep(_SWEEP_SECONDS)

    def _start_next(self) -> None:
        while (found := self._backlog.next()) is not None:
            self._start(found, self._taken_over(found.identifier))

    async def _taken_over(self, identifier: str, begun: bytes = b"") -> BackgroundQuestion | None:
        async with self.records.hold(identifier) as lock:
            question = self.records.load(lock.value)
            if question is None or question.is_finished:
                return question
            attempt = Attempt(self._app, self.records, question, lock)
            return await (attempt.run(begun) if begun else attempt.take_over(self._rights))

    def _start(self, question: Unfinished, trying: _Trying) -> None:
        # In an empty context: nothing of the request that has accepted the question belongs to its answer.
        task = asyncio.get_running_loop().create_task(self._run(question, trying), context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, question: Unfinished, trying: _Trying) -> None:
        """Try a question, and note when it may be tried again if it has not ended."""
        pause: float | None = None
        has_ended = False
        try:
            stored = await trying
            has_ended = stored is None or stored.is_finished
            question = stored.unfinished if stored else question
        except (SessionBusy, LockLost):
            pause = inf  # another process runs it, and a sweep will find out if that dies
        except StoreUnavailable:
            pause = _SWEEP_SECONDS
        except Exception:  # noqa: BLE001 - an accepted question is never dropped
            _log.exception("a background question failed unexpectedly; it is tried again")
            pause = _PAUSE_AFTER_BUG
        if has_ended:
            self._backlog.remove(question)
        elif (pause := self._backlog.put(question, pause)) < inf:
            asyncio.get_running_loop().call_later(pause, self._start_next)
        self._start_next()
