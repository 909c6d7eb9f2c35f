"""What the rows of a family have in common, and what one of them has for itself."""

import itertools
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from tests.faults.fault import NotHeld
from tests.faults.service import CANARY, Service
from tests.faults.upstream import Upstream
from tests.players.redis_server import RedisServer
from tests.ports import reserved
from tests.programs import REDIS, find

__all__ = ["Stage", "installed"]

_QUIET: Mapping[str, str] = {"BREAKER_FAILURES": "0", "OPENAI_API_KEY": CANARY, "EXAMPLES_ENABLED": "true"}
"""No breaker, since a row must not see what another did to the provider; and a key that must never be seen."""


def installed(*names: str) -> str:
    """Path of the first of these programs that there is.

    Raises:
        NotHeld: there is none.
    """
    found = find(*names)
    if found is None:
        raise NotHeld(f"{names[0]} is not installed")
    return found


class Stage:
    """One per family; a row that needs a service gets the one that another row with the same settings used.

    Args:
        folder: for whatever is written.
        seed: what rows draw from.
        minutes: how long a row may go on that gets better with time (chaos).
        upstream: the provider, which listens.
    """

    def __init__(self, folder: Path, seed: int, minutes: float, upstream: Upstream) -> None:
        self.folder = folder
        self.seed = seed
        self.minutes = minutes
        self.upstream = upstream
        self.note = ""
        """What a row wants to say beside its figure."""
        self.kept: dict[str, Any] = {}
        """What one row leaves for others of its family, such as a run that they all look at."""
        self._redis: RedisServer | None = None
        self._shared: dict[tuple[object, ...], Service] = {}
        self._used: list[Service] = []
        self._numbers = itertools.count()
        self._whole = AsyncExitStack()
        self._row = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self.folder.mkdir(parents=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._row.aclose()
        await self._whole.aclose()

    @property
    def row(self) -> AsyncExitStack:
        """What is closed after this row; a row enters its own servers here."""
        return self._row

    def random(self) -> Random:
        """A new source of chance that gives the same in every run with this seed."""
        return Random(self.seed)

    def name(self) -> str:
        """A session's id that no other row has."""
        return f"lab-{next(self._numbers)}-{self.seed}"

    def port(self) -> int:
        """A port reserved for a program of this row.

        Whoever connects before the program listens is refused; a port that is free would answer by itself at times,
        since the system may choose it for the connection's own end.
        """
        return int(self._row.enter_context(reserved()).getsockname()[1])

    def tool(self, name: str, source: str) -> dict[str, str]:
        """Write a tool folder; returns the setting that adds it to a service."""
        folder = self.folder / "tools" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text(source, encoding="utf-8")
        return {"TOOLS_PATH": str(folder.parent)}

    async def service(self, *prefix: str, **variables: str) -> Service:
        """The service of the family with these settings, which asks :attr:`upstream`; started when it is not there."""
        return await self._family_service(0, prefix, variables)

    async def replica(self, number: int, **variables: str) -> Service:
        """Likewise, of several with the same settings."""
        return await self._family_service(number, (), variables)

    async def _family_service(self, number: int, prefix: tuple[str, ...], variables: Mapping[str, str]) -> Service:
        key = (number, prefix, *sorted(variables.items()))
        if key not in self._shared or self._shared[key].popen.poll() is not None:
            self._shared[key] = await self._start(self._whole, prefix, variables)
        self._used.append(self._shared[key])
        return self._shared[key]

    async def own(self, *prefix: str, **variables: str) -> Service:
        """A service for this row alone, which may be killed."""
        return await self._start(self._row, prefix, variables)

    def unstarted(self, *prefix: str, **variables: str) -> Service:
        """A service for this row alone that the row starts itself."""
        service = Service(self.folder / f"service-{next(self._numbers)}", self._settings(variables), prefix)
        self._row.push_async_callback(service.stop)
        self._used.append(service)
        return service

    async def redis(self, *options: str) -> RedisServer:
        """A Redis for this row alone."""
        installed(*REDIS)
        return await self._row.enter_async_context(RedisServer(options=list(options)))

    async def shared_redis(self) -> RedisServer:
        """The Redis of the family; a row that freezes it must thaw it."""
        if self._redis is None:
            installed(*REDIS)
            self._redis = await self._whole.enter_async_context(RedisServer())
        return self._redis

    async def aftermath(self, *, loud: bool) -> None:
        """End a row, and look whether the services that it used are well.

        Raises:
            NotHeld: one wrote an error into its log or does not answer any more.
        """
        used, self._used = self._used, []
        try:
            for service in used:
                complaints = service.complaints()
                if complaints and not loud:
                    raise NotHeld(f"the log says {complaints[0][:300]}")
        finally:
            self.upstream.reset()
            row, self._row = self._row, AsyncExitStack()
            await row.aclose()
        for service in {id(one): one for one in self._shared.values()}.values():
            if service.popen.poll() is None and (await service.ask("/health/live")).status != 200:
                raise NotHeld("the service does not answer any more")

    async def _start(self, kept: AsyncExitStack, prefix: tuple[str, ...], variables: Mapping[str, str]) -> Service:
        service = Service(self.folder / f"service-{next(self._numbers)}", self._settings(variables), prefix)
        kept.push_async_callback(service.stop)
        await service.start()
        if kept is self._row:
            self._used.append(service)
        return service

    def _settings(self, variables: Mapping[str, str]) -> dict[str, str]:
        return {**_QUIET, "OPENAI_BASE_URL": self.upstream.url, **variables}
