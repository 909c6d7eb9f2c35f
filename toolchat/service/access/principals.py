"""Principals, and the caller of a request: a principal at an address."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import lru_cache

from toolchat.errors import ValidationFailed
from toolchat.messages import immutable
from toolchat.service.access.people import SEPARATOR, People
from toolchat.tool_calling.caller import Caller, current_caller
from toolchat.tool_calling.definition import provider_name

ASK, OPERATE, APPROVE, PRIVACY = "ask", "operate", "approve", "privacy"
"""The roles that the service itself reads; all others are the user's own words, for rules and approvers.

``ask``: chat requests, tools and their stored data; ``operate``: the metrics, what failed last, and the record of
decisions; ``approve``: decisions about calls of others, whatever role they need; ``privacy``: export and deletion of
all that is stored for another principal.
"""
ROLE_PATTERN = "[A-Za-z][A-Za-z0-9_.:/-]{0,63}"

ALL_TOOLS = ("*",)


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated identity, or everybody without a key."""

    name: str
    """Its name in logs and metrics; empty without a key."""
    tools: tuple[str, ...] = ALL_TOOLS
    """The tools that it may use: names or patterns (``fnmatch``)."""
    roles: frozenset[str] = frozenset({ASK, OPERATE})
    requests_per_minute: int | None = None
    concurrent: int | None = None
    """Concurrent chat requests."""
    tokens_per_day: int | None = None
    """Input and output tokens together."""
    expires: datetime | None = None
    tenant: str = ""
    """The tenant of its tool calls; empty: its name."""
    session_ttl: float | None = None
    """Seconds for which its conversations are stored; ``None``: as those of all."""
    people: People | None = field(default=None, repr=False)
    """How it names the people for whom it speaks; ``None``: it may not."""
    page: "Principal | None" = field(default=None, repr=False)
    """The key that speaks for this person, whose limits hold for all of its people together."""

    def speaking_for(self, person: str, tenant: str = "") -> "Principal":
        """The principal of a person behind this page: the page's rights, its own limits and data."""
        limits = self.people.limits if self.people else {}
        return replace(
            self,
            name=f"{self.name}{SEPARATOR}{person}",
            tenant=tenant or self.tenant,
            people=None,
            page=self,
            **limits,
        )

    @property
    def owner(self) -> str:
        """The prefix of the stored names of its data; no name that a client sends can contain a slash.

        It is empty without a key: all anonymous clients share their data.
        """
        return f"{self.name}/" if self.name else ""

    @property
    def has_expired(self) -> bool:
        """Whether its key or token has expired."""
        return self.expires is not None and datetime.now(UTC) >= self.expires

    def may_use(self, tool: str) -> bool:
        """Whether it may use a tool."""
        return self.tools == ALL_TOOLS or _matches(tool, self.tools)


@lru_cache(maxsize=4096)
def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) or name == provider_name(pattern) for pattern in patterns)


ANONYMOUS = Principal("")
"""The principal of all requests without a key."""


@immutable
class RequestCaller(Caller):
    """The caller of an HTTP request; make it by :meth:`from_request`."""

    principal: Principal = ANONYMOUS
    headers: Sequence[tuple[bytes, bytes]] = field(default=(), repr=False, compare=False)
    """All headers of the request, secrets among them, for the upstreams to which the operator forwards some by name."""

    @classmethod
    def from_request(
        cls, principal: Principal, address: str = "", headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> "RequestCaller":
        """Combine a principal with the request's address and headers.

        Clients without a key count as one client per address. The header ``X-Tenant-ID`` names the tenant only where
        the principal has none of its own.
        """
        requested = tenant_from(headers)
        client_key, tenant = principal.owner or address, principal.tenant or principal.name or requested
        return cls(principal.name, client_key, tenant, principal.roles, principal, headers)

    def may_use(self, tool: str) -> bool:
        """Whether the principal may use a tool."""
        return self.principal.may_use(tool)


TENANT_PATTERN = "[A-Za-z0-9][A-Za-z0-9_-]{0,63}"


def tenant_from(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """The tenant that ``X-Tenant-ID`` names; empty without the header."""
    values = [value for name, value in headers if name == b"x-tenant-id"]
    if not values:
        return ""
    if len(values) > 1:
        raise ValidationFailed("X-Tenant-ID: given more than once")
    tenant = values[0].decode("latin-1")
    if not re.fullmatch(TENANT_PATTERN, tenant):
        raise ValidationFailed(f"X-Tenant-ID: String should match pattern '^{TENANT_PATTERN}$'")
    return tenant


_OUTSIDE = RequestCaller()


def session_ttl(of_all: float) -> float:
    """Seconds for which a conversation of the current caller is stored after its last turn."""
    return current_request_caller().principal.session_ttl or of_all


def current_request_caller() -> RequestCaller:
    """The caller of the current request; outside of a request an anonymous one."""
    caller = current_caller.get()
    return caller if isinstance(caller, RequestCaller) else _OUTSIDE
