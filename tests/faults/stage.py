"""What the tests of a module share, and what one of them has for itself."""

import itertools
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from tests.faults.service import CANARY, Service
from tests.faults.upstream import Upstream
from tests.players.redis_server import RedisServer
from tests.ports import reserved
from tests.programs import REDIS, require

__all__ = ["Stage"]

_QUIET: Mapping[str, str] = {"BREAKER_FAILURES": "0", "OPENAI_API_KEY": CANARY, "EXAMPLES_ENABLED": "true"}
"""No breaker, since a test must not see what another did to the provider; and a key that must never be shown."""


class Stage:
    """One for each module; a test that needs a service gets the one that another test with the same settings used.

    Args:
        folder: where services and tests write.
        seed: of random choices.
        minutes: how long a random schedule of faults lasts.
        upstream: the provider, which listens.
    """

    def __init__(self, folder: Path, seed: int, minutes: float, upstream: Upstream) -> None:
        self.folder = folder
        self.seed = seed
        self.minutes = minutes
        self.upstream = upstream
        self._redis: RedisServer | None = None
        self._shared: dict[tuple[object, ...], Service] = {}
        self._used: list[Service] = []
        self._numbers = itertools.count()
        self._whole = AsyncExitStack()
        self._cleanup = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._cleanup.aclose()
        await self._whole.aclose()

    @property
    def cleanup(self) -> AsyncExitStack:
        """What is closed after this test, which enters its own servers here."""
        return self._cleanup

    def random(self) -> Random:
        """A new generator, which gives the same numbers in every run with this seed."""
        return Random(self.seed)

    def name(self) -> str:
        """An id of a session that no other test has."""
        return f"session-{next(self._numbers)}-{self.seed}"

    def port(self) -> int:
        """A port reserved for a program of this test.

        A client that connects before the program listens is refused; with a free port the system may connect it to
        itself.
        """
        return int(self._cleanup.enter_context(reserved()).getsockname()[1])

    def tool(self, name: str, source: str) -> dict[str, str]:
        """Write a tool folder; returns the setting that adds it to a service."""
        folder = self.folder / "tools" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text(source, encoding="utf-8")
        return {"TOOLS_PATH": str(folder.parent)}

    async def service(self, *prefix: str, **variables: str) -> Service:
        """The module's service with these settings, which asks :attr:`upstream`; started by the first test."""
        return await self._module_service(0, prefix, variables)

    async def replica(self, number: int, **variables: str) -> Service:
        """Start one of several services with the same settings."""
        return await self._module_service(number, (), variables)

    async def _module_service(self, number: int, prefix: tuple[str, ...], variables: Mapping[str, str]) -> Service:
        key = (number, prefix, *sorted(variables.items()))
        if key not in self._shared or self._shared[key].popen.poll() is not None:
            self._shared[key] = await self._start(self._whole, prefix, variables)
        self._used.append(self._shared[key])
        return self._shared[key]

    async def own(self, *prefix: str, **variables: str) -> Service:
        """A service for this test alone, which may be killed."""
        return await self._start(self._cleanup, prefix, variables)

    def unstarted(self, *prefix: str, **variables: str) -> Service:
        """A service for this test alone that the test starts itself."""
        service = Service(self.folder / f"service-{next(self._numbers)}", self._settings(variables), prefix)
        self._cleanup.push_async_callback(service.stop)
        self._used.append(service)
        return service

    async def redis(self, *options: str) -> RedisServer:
        """A Redis for this test alone."""
        require(*REDIS)
        return await self._cleanup.enter_async_context(RedisServer(options=list(options)))

    async def shared_redis(self) -> RedisServer:
        """The Redis of the module; a test that freezes it must thaw it."""
        if self._redis is None:
            require(*REDIS)
            self._redis = await self._whole.enter_async_context(RedisServer())
        return self._redis

    async def end_test(self, *, may_report: bool) -> None:
        """Close what the test has opened, and check that the services it used reported no error and still answer."""
        used, self._used = self._used, []
        reported = [line for service in used for line in service.errors()]
        self.upstream.reset()
        cleanup, self._cleanup = self._cleanup, AsyncExitStack()
        await cleanup.aclose()
        assert may_report or not reported, reported[0]
        for service in self._shared.values():
            if service.popen.poll() is None:
                assert (await service.ask("/health/live")).status == 200

    async def _start(self, kept: AsyncExitStack, prefix: tuple[str, ...], variables: Mapping[str, str]) -> Service:
        service = Service(self.folder / f"service-{next(self._numbers)}", self._settings(variables), prefix)
        kept.push_async_callback(service.stop)
        await service.start()
        if kept is self._cleanup:
            self._used.append(service)
        return service

    def _settings(self, variables: Mapping[str, str]) -> dict[str, str]:
        return {**_QUIET, "OPENAI_BASE_URL": self.upstream.url, **variables}
