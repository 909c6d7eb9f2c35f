"""The door: who asks is found out before anything is done, and those who may not ask are told so."""

from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.access.configured import Access
from app.api.middleware import path_below_root
from app.api.problems import refusal
from app.callers import current_caller
from app.errors import ToolchatError

__all__ = ["Door"]


class Door:
    """Pure ASGI, inside of ``RequestMiddleware``, so that refusals have ids and log lines like every other answer.

    Args:
        app: what is behind it.
        access: knows who may ask.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._identification = access.identification
        self._faulty = access.faulty_clients

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request in, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        address = self._identification.address(scope)
        if self._faulty is not None:
            send = self._slowed(send, address)
        try:
            if self._faulty is not None:
                self._faulty.check(address)
            caller = await self._identification.caller(scope, path_below_root(scope), address)
        except ToolchatError as error:
            await self._refuse(error, scope, receive, send)
            return
        if caller.principal.name:
            scope.setdefault("state", {}).setdefault("summary", {})["principal"] = caller.principal.name
        token = current_caller.set(caller)
        try:
            await self._app(scope, receive, send)
        finally:
            current_caller.reset(token)

    async def _refuse(self, error: ToolchatError, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # closed before it was accepted, it is answered with 403
            await send({"type": "websocket.close", "code": 1008, "reason": error.title})
            return
        scope["state"]["outcome"] = error.code
        await refusal(error, scope["state"])(scope, receive, send)

    def _slowed(self, send: Send, address: str) -> Callable[[Message], Awaitable[None]]:
        faulty = self._faulty

        async def sent(message: Message) -> None:
            if faulty is not None and message["type"] == "http.response.start":
                await faulty.hold(address, message["status"])
            await send(message)

        return sent
