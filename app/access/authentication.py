"""Who asks: found out from a request before anything else is done with it."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Protocol

from starlette.types import Scope

from app.access.hosts import Proxies, check_host, header, is_address, is_loopback
from app.access.keys import KeyRegistry
from app.access.principals import ANONYMOUS, Principal, RequestCaller, Role
from toolchat.errors import Forbidden, Unauthorized

__all__ = ["Authenticator", "TokenReader"]

_NEVER = ("/playground", "/playground/*")
"""Paths that need no key whatever is set: the page has to be there to ask for one."""
_ROLES: dict[str, Role | None] = {
    "/metrics": "operate",
    "/": None,
    "/tools": None,
    "/docs": None,
    "/openapi.json": None,
}
"""The role that a path needs beside a key, where that is not ``ask``."""
_BEARING = (b"authorization", b"x-api-key")


class TokenReader(Protocol):
    """Reads tokens that somebody else has issued."""

    async def principal(self, token: str) -> Principal | None:
        """The principal of a valid token; ``None`` for whatever else."""
        ...


class Authenticator:
    """Finds out who asks, and whether it may.

    Args:
        keys: the keys that there are.
        anonymous: whether to answer without a key; ``None``: those who connect from this machine.
        open_paths: patterns of paths that need no key.
        hosts: names by which the service may be called without a key.
        proxies: who may say where a request came from.
    """

    def __init__(
        self,
        keys: KeyRegistry,
        *,
        anonymous: bool | None = False,
        open_paths: Sequence[str] = (),
        hosts: Sequence[str] = (),
        proxies: Proxies | None = None,
    ) -> None:
        self.keys = keys
        """Replaced as a whole when they are read again."""
        self._anonymous = anonymous
        self._open = (*_NEVER, *open_paths)
        self._hosts = frozenset(hosts)
        self._proxies = proxies or Proxies()
        self.tokens: TokenReader | None = None
        """Reads tokens that are no keys; set once the service runs, whose connections fetch what checks them."""

    def address(self, scope: Scope) -> str:
        """The client's address."""
        return self._proxies.client(scope)

    async def authenticate(self, scope: Scope, path: str, address: str) -> RequestCaller:
        """Who asks for a path.

        Raises:
            Unauthorized: it has no key and needs one, or its key is not valid.
            Forbidden: its key does not allow this.
            MisdirectedRequest: it has no key, and calls the service by a name that is not its own.
        """
        if path.startswith("/health/"):  # a probe has no key, and calls by whatever name its platform gives
            return RequestCaller.from_request(ANONYMOUS, address, scope["headers"])
        key = _credential(scope) if self._knows_keys else ""
        if key:
            principal = await self._known(key)
            role = _ROLES.get(path, "ask")
            if role and role not in principal.roles and not self._is_open(path):
                raise Forbidden(f"this needs the role {role}")
            return RequestCaller.from_request(principal, address, scope["headers"])
        if self._allows_anonymous(scope):
            if not _in_process(scope):
                check_host(header(scope, b"host"), self._hosts)
        elif not self._is_open(path):
            raise Unauthorized("send a key: Authorization: Bearer KEY, or X-API-Key: KEY")
        return RequestCaller.from_request(ANONYMOUS, address, scope["headers"])

    @property
    def _knows_keys(self) -> bool:
        """Without any, what a client sends as a key says nothing: many clients cannot be told to send none."""
        return bool(self.keys) or self.tokens is not None

    async def _known(self, key: str) -> Principal:
        principal = self.keys.find(key)
        if principal is None and self.tokens is not None and key.count(".") == 2:
            principal = await self.tokens.principal(key)
        if principal is None:
            raise Unauthorized("the key is not valid")
        return principal

    def _allows_anonymous(self, scope: Scope) -> bool:
        if self._anonymous is not None:
            return self._anonymous
        # Whatever server runs this: the address that was connected to tells whether others can reach it.
        server = scope.get("server")
        return server is None or server[1] is None or is_loopback(server[0]) or _in_process(scope)

    def _is_open(self, path: str) -> bool:
        return any(fnmatchcase(path, pattern) for pattern in self._open)


def _in_process(scope: Scope) -> bool:
    """Whether no socket lies between: a test's client puts the host of its URL where a server puts its address."""
    server = scope.get("server")
    return server is not None and server[1] is not None and not is_address(server[0])


def _credential(scope: Scope) -> str:
    """The key that a request bears, in whichever header; empty without one.

    ``Authorization`` of another scheme than Bearer is left alone: it is meant for a proxy on the way.

    Raises:
        Unauthorized: it bears several that differ.
    """
    found = ""
    for name, value in scope["headers"]:
        if name not in _BEARING:
            continue
        scheme, key = "bearer", value.decode("latin-1").strip()
        if name == b"authorization":
            scheme, _, key = key.partition(" ")
        if scheme.lower() == "bearer" and (key := key.strip()):
            if found not in ("", key):
                raise Unauthorized("the request bears several keys")
            found = key
    return found
