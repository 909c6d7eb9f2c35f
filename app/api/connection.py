"""What the server that knows us offers beside ASGI."""

from collections.abc import Callable
from typing import Protocol

from starlette.types import Scope

__all__ = ["CONNECTION", "Connection", "connection_of"]

CONNECTION = "toolchat.connection"
"""The extension of the ASGI scope by which the server gives the request's :class:`Connection`."""


class Connection(Protocol):
    """The client's connection."""

    def when_lost(self, callback: Callable[[], None]) -> Callable[[], object]:
        """Call back when the client is gone; gives what takes that back."""
        ...

    @property
    def is_receiving(self) -> bool:
        """Whether the request is still on its way."""
        ...

    def end_after_answer(self) -> None:
        """Read little more of a request that is being answered already, and end with the answer."""
        ...

    def outlive_eof(self) -> None:
        """Send the rest of an answer, which is complete, even if the client says that it sends no more."""
        ...

    def hang_up(self) -> None:
        """Drop the client, and what waits to be sent."""
        ...

    def hang_up_after(self, seconds: float) -> None:
        """Do so unless the client has taken the whole answer by then, but for what the server may keep of any."""
        ...


def connection_of(scope: Scope) -> Connection | None:
    """The connection of a request; none with other servers."""
    connection: Connection | None = scope.get("extensions", {}).get(CONNECTION)
    return connection
