"""Fakes of the tools' upstreams with their wire formats and invented data; ``SANDBOX_URL`` leads the tools here."""

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.app.upstreams import baidu, weatherapi


class SandboxHeader:
    """Adds the header ``X-Sandbox`` to every response, whatever its status."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and mark its response."""

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Sandbox"] = "toolchat"
            await send(message)

        await self._app(scope, receive, marked)


def create_sandbox() -> Starlette:
    """Create the fake of all upstreams; each has its own state."""
    routes = [*weatherapi.routes, *baidu.routes]
    return Starlette(routes=routes, middleware=[Middleware(SandboxHeader)])
