"""Routes that only read."""

from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

__all__ = ["ReadRoute"]


class ReadRoute(APIRoute):
    """A route that answers HEAD as it answers GET (RFC 9110, section 9.3.2); the server leaves the body out.

    Routes that ask a model are none of these: HEAD would cost as much as GET, and say nothing.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See :meth:`APIRoute.matches`."""
        return super().matches(_as_get(scope))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See :meth:`APIRoute.handle`."""
        await super().handle(_as_get(scope), receive, send)


def _as_get(scope: Scope) -> Scope:
    return {**scope, "method": "GET"} if scope.get("method") == "HEAD" else scope
