"""Runs background questions, and takes over those of processes that have died."""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import Context

from pydantic import TypeAdapter
from pydantic_core import to_json
from starlette.types import ASGIApp

from app.access.principals import Principal
from app.api.background.attempt import Attempt
from app.api.background.records import MAX_AGE, BackgroundQuestion, BackgroundRecords
from app.api.background.supervisor import PROCESSES
from toolchat.errors import Overloaded, SessionBusy, StoreUnavailable
from toolchat.state.base import LockLost, StateStore, decoding
from toolchat.state.locks import Locks

__all__ = ["BackgroundRunner"]

_log = logging.getLogger(__name__)
_MAX_UNFINISHED, _MAX_OF_A_CLIENT, _MAX_RUNNING = 1000, 100, 64
"""Limits: unfinished questions of all processes, those of one client, and those that run at once in a process."""
_ALIVE_SECONDS = 5.0
_LIST_TTL = 24 * MAX_AGE
_FIRST_PAUSE, _MAX_PAUSE = 0.2, 15.0
_NAMES = TypeAdapter(list[str])
_CLIENTS: TypeAdapter[dict[str, str] | list[str]] = TypeAdapter(dict[str, str] | list[str])
"""A list of questions: the client of each by its identifier; earlier builds stored the identifiers only."""


class BackgroundRunner:
    """Runs the background questions that this process has accepted or taken over.

    Each process stores the list of its unfinished questions, and a key that expires soon after it dies. Another one,
    or the same service once it is started again, then takes its list over. A question runs under its own lock, and
    whatever is stored for it carries that lock: a process that stalled cannot interfere with the one that took over.

    Args:
        app: answers a request as if its client were still connected.
        store: the state store.
        rights: the current rights of the principal that asked; ``None`` if they were withdrawn.
    """

    def __init__(self, app: ASGIApp, store: StateStore, rights: Callable[[Principal], Principal | None]) -> None:
        self.records = BackgroundRecords(store)
        self._app, self._store, self._rights = app, store, rights
        self._name = secrets.token_hex(8)
        self._locks = Locks(store, wait=0)
        self._patient_locks = Locks(store)
        self._slots = asyncio.Semaphore(_MAX_RUNNING)
        self._writing = asyncio.Lock()
        self._unfinished: dict[str, str] = {}
        """The client of each question by its identifier."""
        self._elsewhere: Counter[str] = Counter()
        """How many unfinished questions of each client the other processes had at the last sweep."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_registered = False

    @property
    def is_idle(self) -> bool:
        """Whether this process has no unfinished question."""
        return not self._unfinished

    async def accept(self, question: BackgroundQuestion, *, runs: bool = True) -> None:
        """Store a question, and begin to answer it; once this returns, the question survives a crash.

        Args:
            question: the question.
            runs: whether this process answers it, and leaves it to no other.

        Raises:
            Overloaded: too many questions of this client, or in all, are unfinished.
            StoreUnavailable: the question may not have been stored.
        """
        client = question.principal.owner or question.address
        unfinished = self._elsewhere + Counter(self._unfinished.values())
        of_client = unfinished[client]
        if unfinished.total() >= _MAX_UNFINISHED or of_client >= _MAX_OF_A_CLIENT:
            whose = " of this client" if of_client >= _MAX_OF_A_CLIENT else ""
            raise Overloaded(f"too many background questions{whose} are unfinished", retry_after=5)
        self._unfinished[question.identifier] = client
        try:
            await self.records.save(question)
            await self._save_list()
            if not self._is_registered:
                await self._register()
        except BaseException:
            self._unfinished.pop(question.identifier, None)
            raise
        if runs:
            self._start([question.identifier])

    async def cancel(self, question: BackgroundQuestion) -> BackgroundQuestion:
        """Stop a question, wherever it runs; returns its record once it has stopped, which takes up to a second."""
        await self.records.request_cancellation(question)
        async for _ in self.records.events(question):
            pass
        return self.records.load(await self._store.get(question.key)) or question

    async def sweep(self) -> None:
        """Show that this process is alive, and take over the questions of processes that are not."""
        if self._unfinished:
            await self._store.put(_alive(self._name), b"1", ttl=_ALIVE_SECONDS)
        names = _names(await self._store.get(PROCESSES))
        self._is_registered = self._name in names
        if self._unfinished and not self._is_registered:
            await self._register()
        elsewhere: Counter[str] = Counter()
        for name in names:
            if name == self._name:
                continue
            if await self._store.get(_alive(name)) is None:
                with suppress(SessionBusy, LockLost):  # another process does it
                    await self._take_over(name)
            else:
                elsewhere.update((await self._listed(name)).values())
        self._elsewhere = elsewhere

    async def aclose(self) -> None:
        """Stop; other processes carry on with the unfinished questions at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(StoreUnavailable):
            await self._store.delete(_alive(self._name))

    async def _register(self) -> None:
        """Add this process to the list of all that may have unfinished questions."""
        await self._store.put(_alive(self._name), b"1", ttl=_ALIVE_SECONDS)
        try:
            async with self._patient_locks.hold(PROCESSES) as lock:
                names = {*_names(lock.value), self._name}
                await self._store.put(PROCESSES, to_json(sorted(names)), ttl=_LIST_TTL, lock=lock)
        except (SessionBusy, LockLost):
            raise StoreUnavailable("other processes change the list of background questions", retry_after=1) from None
        self._is_registered = True

    async def _take_over(self, name: str) -> None:
        async with self._locks.hold(PROCESSES) as lock:
            names = set(_names(lock.value))
            if name not in names:
                return
            listed = await self._listed(name)
            found = [each for each in listed if each not in self._unfinished]
            self._unfinished = listed | self._unfinished
            await self._save_list()  # before the other list is deleted
            await self._store.put(_alive(self._name), b"1", ttl=_ALIVE_SECONDS)
            names = names - {name} | {self._name}
            await self._store.put(PROCESSES, to_json(sorted(names)), ttl=_LIST_TTL, lock=lock)
        self._is_registered = True
        await self._store.delete(_list(name))
        self._start(found)
        _log.warning("background questions were taken over", extra={"questions": len(found)})

    async def _save_list(self) -> None:
        """Store the list of the unfinished questions; one write at a time, so that the newest list is the last."""
        async with self._writing:
            await self._store.put(_list(self._name), to_json(self._unfinished), ttl=_LIST_TTL)

    async def _listed(self, process: str) -> dict[str, str]:
        """The unfinished questions of a process."""
        value = await self._store.get(_list(process))
        with decoding("a list of background questions cannot be read"):
            listed = _CLIENTS.validate_json(value) if value else {}
        return listed if isinstance(listed, dict) else dict.fromkeys(listed, "")

    def _start(self, identifiers: Iterable[str]) -> None:
        for identifier in identifiers:
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
        with suppress(StoreUnavailable):
            await self._save_list()

    async def _is_finished_after_a_try(self, identifier: str) -> bool:
        async with self._locks.hold(f"background:{identifier}") as lock:
            question = self.records.load(lock.value)
            if question is None or question.is_finished:
                return True
            question = await Attempt(self._app, self.records, self._rights, question, lock).run()
            await self.records.save(question, lock)
            return question.is_finished


def _names(value: bytes | None) -> list[str]:
    with decoding("the list of processes with background questions cannot be read"):
        return _NAMES.validate_json(value) if value else []


def _list(process: str) -> str:
    return f"background-list:{process}"


def _alive(process: str) -> str:
    return f"background-alive:{process}"
