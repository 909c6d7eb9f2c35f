"""The service opened inside a command, without an HTTP server."""

from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from toolchat.service.access.principals import RequestCaller
from toolchat.service.api.service import ServiceState
from toolchat.service.cli import Program
from toolchat.service.cli.terminal import show_warnings
from toolchat.service.composition.configuration import Configuration, read_configuration
from toolchat.service.composition.lifespan import open_service
from toolchat.service.process import keep_objects
from toolchat.tool_calling.caller import current_caller

ANSWERED, FAILED, WAITS = 0, 1, 3
"""Exit codes; 2 is an invalid configuration or command line."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class OpenedService:
    """The service, whose event loop has a thread of its own: it runs on while the main thread waits for a line."""

    configuration: Configuration
    state: ServiceState
    portal: BlockingPortal
    caller: RequestCaller

    def run(self, make: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Run a coroutine and return its result; Ctrl-C cancels it."""

        async def as_caller() -> _T:
            current_caller.set(self.caller)
            return await make()

        future = self.portal.start_task_soon(as_caller)
        try:
            while wait([future], 1).not_done:  # on Windows, Ctrl-C does not interrupt a wait without a timeout
                pass
        except KeyboardInterrupt:
            future.cancel()
            raise
        return future.result()


@contextmanager
def opened_service(program: Program, *, tenant: str = "") -> Generator[OpenedService, None, None]:
    """Open the service as configured; tools run for a tenant."""
    show_warnings()
    configuration = read_configuration(tools=program.tools, serving=False)
    configuration.log_warnings()
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_service(configuration)) as state,
    ):
        portal.call(state.tools.wait_ready)
        keep_objects()
        yield OpenedService(configuration, state, portal, RequestCaller(tenant=tenant))
