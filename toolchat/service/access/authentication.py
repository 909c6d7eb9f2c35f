"""Authentication: finds the principal of a request, and checks that it may request the path."""

from collections.abc import Awaitable, Callable, Sequence

from pydantic import SecretStr
from starlette.types import Scope

from toolchat.errors import Forbidden, Unauthorized
from toolchat.service.access.hosts import check_host, header, is_address, is_loopback
from toolchat.service.access.keys import KeyRegistry
from toolchat.service.access.people import SEPARATOR, person_of
from toolchat.service.access.principals import ANONYMOUS, ASK, OPERATE, Principal, RequestCaller
from toolchat.service.access.tokens import Tokens

_READINESS = "/health/ready"
_PUBLIC = ("/health/live", _READINESS, "/.well-known/oauth-protected-resource/mcp")
"""Paths without authentication: probes have no key, and the metadata describes how to get one."""
_ALWAYS_OPEN = ("/playground", *_PUBLIC)
"""Paths that never need a key; the playground asks the user for one."""
_ROLES: dict[str, str | None] = {
    "/metrics": OPERATE,
    "/audit": OPERATE,
    "/approvals": None,
    "/person": None,
    "/": None,
    "/tools": None,
    "/docs": None,
    "/openapi.json": None,
}
"""The role that a path requires if it is not ``ask``; ``None``: any key."""
APPROVAL_HEADER = "x-approval-token"
"""The header with the token of an approval link; other sites' pages cannot send it, nor does a link by itself."""
_APPROVALS = "/approvals/"
_KEY_HEADERS = (b"authorization", b"x-api-key")


class Authenticator:
    """Authenticates requests.

    Args:
        anonymous: whether requests without a key are accepted; ``None``: only from this machine.
        open_paths: paths that need no key, with everything below them; ``*`` stands for any one segment.
        hosts: allowed values of ``Host`` for requests without a key.
        people_secret: the secret of the tokens by which pages name people.
    """

    def __init__(
        self,
        keys: KeyRegistry,
        *,
        anonymous: bool | None = False,
        open_paths: Sequence[str] = (),
        hosts: Sequence[str] = (),
        people_secret: SecretStr | None = None,
    ) -> None:
        self.keys = keys
        """Replaced as a whole when the key file is reloaded."""
        self._anonymous = anonymous
        self._open = [each.split("/") for each in (*_ALWAYS_OPEN, *open_paths)]
        self._hosts = frozenset(hosts)
        self._people_secret = people_secret
        self.approver: Callable[[str, str], Awaitable[Principal]] | None = None
        """For whom the token of an approval's link acts; set when the service runs, because it needs its store."""
        self.tokens: Tokens | None = None
        """Validates tokens; set when the service runs, because it needs the service's connections."""

    async def authenticate(self, scope: Scope, path: str, address: str) -> RequestCaller:
        """Find the caller of a request."""
        if path in _PUBLIC:  # with any Host
            principal = await self._probing(scope) if path == _READINESS else ANONYMOUS
            return RequestCaller.from_request(principal, address, scope["headers"])
        key = ""
        if path.startswith(_APPROVALS) and (token := header(scope, APPROVAL_HEADER.encode())):
            return RequestCaller.from_request(await self._approver(path, token), address, scope["headers"])
        if self._knows_keys:
            key = _credential(scope)
        if key:
            principal = await self._known(key)
            role = _role_for(path)
            if role and role not in principal.roles and not self._is_open(path):
                raise Forbidden(f"this needs the role {role}")
            principal = self._speaking(principal, scope, path)
            return RequestCaller.from_request(principal, address, scope["headers"])
        is_allowed = self._allows_anonymous(scope)
        if is_allowed and not _in_process(scope):
            check_host(header(scope, b"host"), self._hosts)
        # Once there are keys, the metrics name their principals.
        if not is_allowed or (_role_for(path) == OPERATE and self._knows_keys):
            is_allowed = self._is_open(path)
        if not is_allowed:
            raise Unauthorized("send a key: Authorization: Bearer KEY, or X-API-Key: KEY")
        return RequestCaller.from_request(ANONYMOUS, address, scope["headers"])

    def _speaking(self, principal: Principal, scope: Scope, path: str) -> Principal:
        """The person for whom a page speaks; the principal itself if its key is not one of a page."""
        if principal.people is None:
            if self.keys.people_headers and any(name in self.keys.people_headers for name, _ in scope["headers"]):
                raise Forbidden("this key may not speak for people: its entry has no [keys.people]")
            return principal
        person, tenant = person_of(principal.people, scope["headers"], self._people_secret)
        if person:
            return principal.speaking_for(person, tenant)
        if path in _ROLES or path.startswith("/v1/models"):  # what a page asks for itself
            return principal
        detail = f"this key speaks for people, and the request names none: send {principal.people.naming_header}"
        raise Forbidden(detail)

    async def _probing(self, scope: Scope) -> Principal:
        """The principal of a probe: it needs no key, so one that is not valid counts as none."""
        try:
            key = _credential(scope) if self._knows_keys else ""
            return await self._known(key) if key else ANONYMOUS
        except Unauthorized:
            return ANONYMOUS

    @property
    def _knows_keys(self) -> bool:
        """Whether any key can be valid; if not, keys are ignored: many clients cannot be configured without one."""
        return bool(self.keys) or self.tokens is not None

    async def _known(self, key: str) -> Principal:
        if principal := self.keys.find(key):
            return principal
        if self.tokens is not None and key.count(".") == 2:
            return await self.tokens.principal(key)
        raise Unauthorized("the key is not valid")

    async def _approver(self, path: str, token: str) -> Principal:
        """The principal that the token of an approval link acts for, with its current rights."""
        if self.approver is None:
            raise Unauthorized("the service is not running")
        current = self.known(await self.approver(path.removeprefix(_APPROVALS), token))
        if current is None:
            raise Unauthorized("the key that asked has been withdrawn")
        return current

    def current_rights(self, principal: Principal) -> Principal | None:
        """A principal that asked before, with its rights of now; ``None`` if it may not ask any more."""
        current = self.known(principal)
        return current if current is not None and ASK in current.roles and not current.has_expired else None

    def known(self, principal: Principal) -> Principal | None:
        """A principal from before with its rights of now; ``None`` if its keys were withdrawn or have expired."""
        if principal.page is not None:
            page, person = self.keys.named(principal.page.name), principal.name.partition(SEPARATOR)[2]
            return page.speaking_for(person, principal.tenant) if page and page.people else None
        # Anonymous, or of a token: no registry has it, and that a token's minutes are over withdraws nothing.
        return principal if not principal.name or ":" in principal.name else self.keys.named(principal.name)

    def _allows_anonymous(self, scope: Scope) -> bool:
        if self._anonymous is not None:
            return self._anonymous
        # Works with every server: the address of the connection's own side shows whether other machines can reach it.
        server = scope.get("server")
        return server is None or server[1] is None or is_loopback(server[0]) or _in_process(scope)

    def _is_open(self, path: str) -> bool:
        segments = path.split("/")
        return any(
            len(segments) >= len(pattern) and all(one in ("*", other) for one, other in zip(pattern, segments))  # noqa: B905
            for pattern in self._open
        )


def _role_for(path: str) -> str | None:
    """The role that a path requires; who may see an approval depends on its calls, as its store checks."""
    return None if path.startswith(_APPROVALS) else _ROLES.get(path, ASK)


def _in_process(scope: Scope) -> bool:
    """Whether there is no socket: a test client puts the host of its URL where a server puts its address."""
    server = scope.get("server")
    return server is not None and server[1] is not None and not is_address(server[0])


def _credential(scope: Scope) -> str:
    """The key of a request, from either header; empty without one.

    ``Authorization`` with another scheme than Bearer is ignored: it is for a proxy in between.
    """
    found = ""
    for name, value in scope["headers"]:
        if name not in _KEY_HEADERS:
            continue
        scheme, key = "bearer", value.decode("latin-1").strip()
        if name == b"authorization":
            scheme, _, key = key.partition(" ")
        if scheme.lower() == "bearer" and (key := key.strip()):
            if found not in ("", key):
                raise Unauthorized("the request contains several keys; send one")
            found = key
    return found
