"""Runs background questions by turns of their clients, those of processes that have died included."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from math import inf

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


class BackgroundRunner:
    """Runs the unfinished questions that no other process runs, each under its own lock.

    Args:
        app: answers a request as if its client were still connected.
        rights: the current rights of the principal that asked; ``None`` if they were withdrawn.
    """

    def __init__(self, app: ASGIApp, store: StateStore, rights: Callable[[Principal], Principal | None]) -> None:
        self.records = BackgroundRecords(store)
        self._app, self._rights = app, rights
        self._backlog = Backlog()
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Run questions within the block; other processes carry on with the rest at once."""
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
        identifier, unfinished = question.identifier, question.unfinished
        self._backlog.admit(identifier, unfinished)
        try:
            await self.records.add(question, body)
        except BaseException:
            self._backlog.remove(identifier, unfinished.client)
            raise
        self._backlog.put(identifier, unfinished)
        self._start_next()

    def of_sessions(self, client: str) -> dict[str, str]:
        """The ids of a client's unfinished questions by their sessions; those of other processes come with a delay."""
        return self._backlog.sessions(client)

    async def cancel(self, question: BackgroundQuestion) -> BackgroundQuestion:
        """Stop a question, wherever it runs; returns its record once it has stopped, which takes up to a second."""
        await self.records.request_cancellation(question)
        if question.identifier not in self._backlog.running:  # it may wait for a slot, which it does not need for that
            self._start(question.identifier, question.unfinished)
        async for _ in self.records.events(question):
            pass
        return await self.records.find(question.identifier, question.principal) or question

    async def _watch(self) -> None:
        while True:
            with suppress(StoreUnavailable):
                await self._sweep()
            await asyncio.sleep(_SWEEP_SECONDS)

    async def _sweep(self) -> None:
        """Find the questions of other processes, and run those that none runs any more."""
        before = self._backlog.known()
        listed = await self.records.unfinished()
        free = await self.records.free(listed.keys() - self._backlog.running.keys())
        self._backlog.refresh(before, listed, free)
        self._start_next()

    def _start_next(self) -> None:
        while (found := self._backlog.next()) is not None:
            self._start(*found)

    def _start(self, identifier: str, question: Unfinished) -> None:
        self._backlog.running[identifier] = question.client
        # In an empty context: nothing of the request that has accepted the question belongs to its answer.
        task = asyncio.get_running_loop().create_task(self._run(identifier, question), context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, identifier: str, question: Unfinished) -> None:
        """Try a question, and note when it may be tried again if it has not ended."""
        pause: float | None = None
        left: Unfinished | None = question
        try:
            left = await self._tried(identifier)
        except (SessionBusy, LockLost):
            pause = inf  # another process runs it, and a sweep will find out if that dies
        except StoreUnavailable:
            pause = _SWEEP_SECONDS
        except Exception:  # noqa: BLE001 - an accepted question is never dropped
            _log.exception("a background question failed unexpectedly; it is tried again")
            pause = _PAUSE_AFTER_BUG
        finally:
            del self._backlog.running[identifier]
        if left is None:
            self._backlog.remove(identifier, question.client)
        elif (pause := self._backlog.put(identifier, left, pause)) < inf:
            asyncio.get_running_loop().call_later(pause, self._start_next)
        self._start_next()

    async def _tried(self, identifier: str) -> Unfinished | None:
        """Try a question once; ``None`` if it has ended."""
        async with self.records.hold(identifier) as lock:
            question = self.records.load(lock.value)
            if question is not None and not question.is_finished:
                question = await Attempt(self._app, self.records, self._rights, question, lock).run()
            return None if question is None or question.is_finished else question.unfinished
