"""Runs background questions, and takes over those of processes that have died."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from itertools import chain
from typing import NamedTuple

from pydantic_core import from_json, to_json
from starlette.types import ASGIApp

from toolchat.errors import Overloaded, SessionBusy, StoreUnavailable
from toolchat.service.access.principals import Principal
from toolchat.service.api.background.attempt import Attempt
from toolchat.service.api.background.records import STORED_SECONDS, BackgroundQuestion, BackgroundRecords
from toolchat.state.base import LockLost, StateStore, Write, decoding
from toolchat.state.locks import Locks

_log = logging.getLogger(__name__)
_MAX_UNFINISHED, _MAX_OF_A_CLIENT, _MAX_RUNNING = 1000, 100, 64
"""Limits: unfinished questions of all processes, those of one client, and those that run at once in a process."""
_PROCESSES = "background-processes:all"
"""The key of the list of all processes that may have unfinished questions."""
_ALIVE_SECONDS, _SURELY_ALIVE_SECONDS, _SWEEP_SECONDS = 5.0, 3.0, 1.5
_FIRST_PAUSE, _MAX_PAUSE = 0.2, 15.0


class _Origin(NamedTuple):
    """Where an unfinished question comes from."""

    client: str = ""
    session: str = ""


class BackgroundRunner:
    """Runs the background questions that this process has accepted or taken over.

    Each process stores the list of its unfinished questions, and a key that expires soon after it dies. Another one,
    or the same service once it is started again, then takes its list over. A question runs under its own lock, and
    whatever is stored for it carries that lock: a process that stalled cannot interfere with the one that took over.

    Args:
        app: answers a request as if its client were still connected.
        rights: the current rights of the principal that asked; ``None`` if they were withdrawn.
    """

    def __init__(self, app: ASGIApp, store: StateStore, rights: Callable[[Principal], Principal | None]) -> None:
        self.records = BackgroundRecords(store)
        self._app, self._store, self._rights = app, store, rights
        self._name = secrets.token_hex(8)
        self._locks = Locks(store, wait=1.0)
        self._slots = asyncio.Semaphore(_MAX_RUNNING)
        self._writing = asyncio.Lock()
        """Held by those who store the list, so that the newest one is the last."""
        self._unfinished: dict[str, _Origin] = {}
        self._elsewhere: dict[str, _Origin] = {}
        """Unfinished questions of the other processes at the last sweep."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._alive_until = 0.0
        """Until then no other process takes the list over."""
        self._accepted: dict[str, bytes] = {}
        """Records that are not stored yet, by their keys."""
        self._is_list_old = False
        """Whether the list has changed since it was stored; that questions have finished is stored later."""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Take over what other processes have left behind, within the block; they carry on with the rest after it."""
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            await self.aclose()

    async def accept(self, question: BackgroundQuestion, *, runs: bool = True) -> None:
        """Store a question, and begin to answer it; once this returns, the question survives a crash."""
        clients = [each.client for each in chain(self._unfinished.values(), self._elsewhere.values())]
        of_client = clients.count(question.client)
        if len(clients) >= _MAX_UNFINISHED or of_client >= _MAX_OF_A_CLIENT:
            whose = " of this client" if of_client >= _MAX_OF_A_CLIENT else ""
            raise Overloaded(f"too many background questions{whose} are unfinished", retry_after=5)
        self._unfinished[question.identifier] = _Origin(question.client, question.session)
        self._accepted[question.key] = self.records.dump(question)
        self._is_list_old = True
        try:
            async with self._writing:
                await (self._save_list() if time.monotonic() < self._alive_until else self._register())
        except BaseException:
            del self._unfinished[question.identifier]
            raise
        finally:
            self._accepted.pop(question.key, None)
        if runs:
            self._start(question.identifier)

    def of_sessions(self, client: str) -> dict[str, str]:
        """The ids of a client's unfinished questions by their sessions; those of other processes come with a delay."""
        found = (self._elsewhere | self._unfinished).items()
        return {origin.session: identifier for identifier, origin in found if origin.client == client}

    async def cancel(self, question: BackgroundQuestion) -> BackgroundQuestion:
        """Stop a question, wherever it runs; returns its record once it has stopped, which takes up to a second."""
        await self.records.request_cancellation(question)
        async for _ in self.records.events(question):
            pass
        return self.records.load(await self._store.get(question.key)) or question

    async def aclose(self) -> None:
        """Stop; other processes carry on with the unfinished questions at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._alive_until:
            with suppress(StoreUnavailable):
                async with self._writing:
                    await self._save_list()
                await self._store.delete(_alive(self._name))

    async def _watch(self) -> None:
        while True:
            with suppress(StoreUnavailable):
                await self._sweep()
            await asyncio.sleep(_SWEEP_SECONDS)

    async def _sweep(self) -> None:
        """Show that this process is alive, and take over the questions of processes that are not."""
        names = _names(await self._store.get(_PROCESSES))
        async with self._writing:
            if self._unfinished and self._name not in names:
                await self._register()
            elif self._unfinished:
                await self._show_alive()
            await self._save_list()
        elsewhere: dict[str, _Origin] = {}
        for name in names - {self._name}:
            if await self._store.get(_alive(name)) is None:
                async with self._writing:
                    await self._register(instead_of=name)
            else:
                elsewhere |= await self._listed(name)
        self._elsewhere = elsewhere

    async def _show_alive(self) -> None:
        began = time.monotonic()
        await self._store.put(_alive(self._name), b"1", ttl=_ALIVE_SECONDS)
        self._alive_until = began + _SURELY_ALIVE_SECONDS

    async def _register(self, instead_of: str = "") -> None:
        """Store the list, and this process among all that have one; ``instead_of`` one that died."""
        try:
            async with self._locks.hold(_PROCESSES) as lock:
                names = _names(lock.value)
                left = await self._listed(instead_of) if instead_of in names else {}
                for identifier in left.keys() - self._unfinished.keys():
                    self._unfinished[identifier], self._is_list_old = left[identifier], True
                    self._start(identifier)
                names.discard(instead_of)
                if self._unfinished:
                    await self._save_list()  # before the other list is deleted
                    await self._show_alive()
                    names.add(self._name)
                await self._store.put(_PROCESSES, to_json(sorted(names)), ttl=STORED_SECONDS, lock=lock)
                await self._store.delete(_list(instead_of))
        except (SessionBusy, LockLost):
            raise StoreUnavailable("other processes change the list of background questions", retry_after=1) from None
        if left:
            _log.warning("background questions were taken over", extra={"questions": len(left)})

    async def _save_list(self) -> None:
        """Store the list of the unfinished questions, with those that were accepted: one write for all that wait."""
        if not self._is_list_old:
            return
        self._is_list_old = False
        values = {**self._accepted, _list(self._name): to_json(self._unfinished)}
        try:
            await self._store.commit([Write(key, value, STORED_SECONDS, is_kept=True) for key, value in values.items()])
        except BaseException:
            self._is_list_old = True
            raise

    async def _listed(self, process: str) -> dict[str, _Origin]:
        """The unfinished questions of a process."""
        value = await self._store.get(_list(process))
        with decoding("a list of background questions cannot be read"):
            found = from_json(value) if value else {}
            return {each: _Origin(*origin) for each, origin in found.items()}

    def _start(self, identifier: str) -> None:
        # In an empty context: nothing of the request that has accepted the question belongs to its answer.
        task = asyncio.get_running_loop().create_task(self._run(identifier), context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, identifier: str) -> None:
        """Try a question until it is finished."""
        pause = _FIRST_PAUSE
        while True:
            try:
                async with self._slots:
                    if await self._is_finished_after_a_try(identifier):
                        break
            except (SessionBusy, LockLost, StoreUnavailable):
                pass  # another process has its lock or has taken it over, or the store is down: all of that ends
            except Exception:  # noqa: BLE001 - an accepted question is never dropped
                _log.exception("a background question failed unexpectedly; it is tried again")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE)
        self._unfinished.pop(identifier, None)
        self._is_list_old = True

    async def _is_finished_after_a_try(self, identifier: str) -> bool:
        async with self.records.hold(identifier) as lock:
            question = self.records.load(lock.value)
            if question is None or question.is_finished:
                return True
            question = await Attempt(self._app, self.records, self._rights, question, lock).run()
            await self.records.save_and_release(question, lock)
            return question.is_finished


def _names(value: bytes | None) -> set[str]:
    with decoding("the list of processes with background questions cannot be read"):
        return set(map(str, from_json(value))) if value else set()


def _list(process: str) -> str:
    return f"background-list:{process}"


def _alive(process: str) -> str:
    return f"background-alive:{process}"
