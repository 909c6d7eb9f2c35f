"""The service opened inside a command, without an HTTP server: its event loop runs in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from toolchat.service.access.principals import RequestCaller
from toolchat.service.api.service import ServiceState
from toolchat.service.api.tool_registry import ToolRegistry
from toolchat.service.cli.program import Program
from toolchat.service.cli.terminal import show_warnings
from toolchat.service.composition.configuration import Configuration, read_configuration
from toolchat.service.composition.lifespan import open_service
from toolchat.service.server.process_memory import resume_collections
from toolchat.tool_calling.caller import current_caller

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class OpenedService:
    """The parts of the service that a command uses.

    The event loop has a thread of its own: it keeps running while the main thread waits for a typed line, and Ctrl-C
    interrupts the main thread at once.
    """

    configuration: Configuration
    state: ServiceState
    registry: ToolRegistry
    portal: BlockingPortal
    caller: RequestCaller
    """The caller that tools run for."""

    def run(self, make: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Run a coroutine and return its result; Ctrl-C cancels it and is raised once it has ended."""
        ended = threading.Event()

        async def begin() -> tuple[asyncio.AbstractEventLoop, asyncio.Task[_T]]:
            current_caller.set(self.caller)
            task = asyncio.create_task(make())
            task.add_done_callback(lambda _: ended.set())
            return asyncio.get_running_loop(), task

        loop, task = self.portal.call(begin)
        try:
            while not ended.wait(1):  # on Windows, Ctrl-C does not interrupt a wait without a timeout
                pass
        except KeyboardInterrupt:
            loop.call_soon_threadsafe(task.cancel)
            ended.wait()
            raise
        return task.result()


@contextmanager
def opened_service(program: Program, *, tenant: str = "") -> Generator[OpenedService, None, None]:
    """Open the service as configured.

    Args:
        program: the application, with its tools.
        tenant: the tenant for which tools run.

    Raises:
        ConfigurationError: the configuration is invalid.
    """
    show_warnings()
    configuration = read_configuration(tools=program.tools, serving=False)
    configuration.log_warnings()
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_service(configuration)) as (state, registry),
    ):
        resume_collections()
        yield OpenedService(configuration, state, registry, portal, RequestCaller(tenant=tenant))
