"""Starts the runner of background questions when the first one comes, or when another process has left some behind."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from starlette.types import ASGIApp

from app.access.principals import Principal
from toolchat.errors import StoreUnavailable
from toolchat.state.base import StateStore

if TYPE_CHECKING:
    from app.api.background.runner import BackgroundRunner

__all__ = ["PROCESSES", "BackgroundSupervisor"]

PROCESSES = "background-processes:all"
"""The key of the list of all processes that may have unfinished questions."""
_SWEEP_SECONDS = 1.5


class BackgroundSupervisor:
    """Owns the runner of this process; most processes never need one, and import nothing for it.

    Args:
        app: answers a request as if its client were still connected.
        store: the state store.
        rights: the current rights of a principal; ``None`` if they were withdrawn.
    """

    def __init__(self, app: ASGIApp, store: StateStore, rights: Callable[[Principal], Principal | None]) -> None:
        self._app, self._store, self._rights = app, store, rights
        self._runner: BackgroundRunner | None = None

    @property
    def runner(self) -> "BackgroundRunner":
        """The runner, created at its first use."""
        if self._runner is None:
            from app.api.background.runner import BackgroundRunner

            self._runner = BackgroundRunner(self._app, self._store, self._rights)
        return self._runner

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Take over what other processes have left behind, within the block."""
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            if self._runner is not None:
                await self._runner.aclose()

    async def _watch(self) -> None:
        while True:
            with suppress(StoreUnavailable):
                if await self._store.get(PROCESSES) is not None:
                    await self.runner.sweep()
            await asyncio.sleep(_SWEEP_SECONDS)
