"""Who asks: the principal that a key names, and the address that a request came from."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal

from toolchat.messages import immutable

__all__ = ["ALL_TOOLS", "ANONYMOUS", "Caller", "Principal", "Role", "current_caller"]

Role = Literal["ask", "operate"]
"""``ask``: questions, tools and what they leave behind; ``operate``: the figures of the service."""

ALL_TOOLS = ("*",)


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who has a key, or everybody who has none."""

    name: str
    """What logs and figures call it; empty for everybody who has no key."""
    tools: tuple[str, ...] = ALL_TOOLS
    """Names of the tools that it may use, or patterns of them (``fnmatch``)."""
    roles: frozenset[Role] = frozenset({"ask", "operate"})
    requests_per_minute: int | None = None
    concurrent: int | None = None
    """Questions at once."""
    tokens_per_day: int | None = None
    """Input and output together."""
    expires: datetime | None = None

    @property
    def owner(self) -> str:
        """What stands before the name of everything that it owns; no name that a client gives can hold a slash.

        Without a key there is nothing before it: everybody shares what was made so, as before there were keys.
        """
        return f"{self.name}/" if self.name else ""

    @property
    def has_expired(self) -> bool:
        """Whether its time is over."""
        return self.expires is not None and datetime.now(UTC) >= self.expires

    def may_use(self, tool: str) -> bool:
        """Whether it may use a tool, by its name."""
        return self.tools == ALL_TOOLS or _matches(tool, self.tools)


@lru_cache(maxsize=4096)
def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


ANONYMOUS = Principal("")
"""Everybody who has no key, where that is allowed."""


@immutable
class Caller:
    """On whose behalf a request is answered."""

    principal: Principal = ANONYMOUS
    address: str = ""
    """The client's IP address, as far as it is known."""
    headers: Sequence[tuple[bytes, bytes]] = field(default=(), repr=False, compare=False)
    """All that the request has, keys among them: for whoever hands on those that somebody has allowed by name."""

    @property
    def share(self) -> str:
        """Who it counts as where everybody has a share: the principal, or the address of somebody without a key."""
        return self.principal.owner or self.address


current_caller: ContextVar[Caller] = ContextVar("caller", default=Caller())  # noqa: B039 - it cannot be changed
"""Who asks; carried into tools and their threads. Outside of a request it is anybody, who may do everything."""
