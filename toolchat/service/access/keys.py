"""API keys and their principals, from a variable or a key file that is reloaded.

Only SHA-256 digests are stored. A key has 256 random bits, so a slow password hash would add nothing.
"""

import asyncio
import contextlib
import hashlib
import logging
import re
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from toolchat.errors import ConfigurationError
from toolchat.service.access.people import People
from toolchat.service.access.principals import ASK, OPERATE, ROLE_PATTERN, TENANT_PATTERN, Principal
from toolchat.service.settings.base import NEEDS_A_FILE, Retention, describe_faults
from toolchat.state.base import FOREVER

NAME_PATTERN = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""The name of a principal, which appears in logs and metrics, and as a prefix of its stored data."""
_DIGEST = "[0-9a-f]{64}"
_LARGEST_FILE = 8 * 2**20

_Count = Annotated[int, Field(ge=1)]


def new_key() -> str:
    """Generate a key of 256 random bits; secret scanners recognise its prefix."""
    return f"toolchat_{secrets.token_urlsafe(32)}"


def digest_of(key: str) -> str:
    """The SHA-256 digest of a key, in hexadecimal digits."""
    return hashlib.sha256(key.encode()).hexdigest()


class _Entry(BaseModel):
    """One ``[[keys]]`` table of a key file."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    name: str = Field(pattern=f"^{NAME_PATTERN}$")
    sha256: str = Field(pattern=f"^{_DIGEST}$")
    tools: list[str] = ["*"]
    roles: list[Annotated[str, Field(pattern=f"^{ROLE_PATTERN}$")]] = [ASK, OPERATE]
    requests_per_minute: _Count | None = None
    concurrent: _Count | None = None
    tokens_per_day: _Count | None = None
    expires: AwareDatetime | None = None
    tenant: str = Field("", pattern=f"^({TENANT_PATTERN})?$")
    session_ttl: Retention | None = None
    people: People | None = None

    def principal(self) -> Principal:
        names = {"requests_per_minute", "concurrent", "tokens_per_day", "expires", "session_ttl"}
        limits = self.model_dump(include=names)
        tools, roles = tuple(self.tools), frozenset(self.roles)
        return Principal(self.name, tools, roles, tenant=self.tenant, people=self.people, **limits)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)

    keys: list[_Entry] = []


class KeyRegistry:
    """Finds the principal of a key.

    Args:
        principals: principals by the digests of their keys; one principal may have several keys.
    """

    def __init__(self, principals: Mapping[str, Principal] | None = None) -> None:
        self._principals = dict(principals or {})

    def __len__(self) -> int:
        return len(self._principals)

    @cached_property
    def people_headers(self) -> frozenset[bytes]:
        """The headers that name somebody, of all keys that speak for people."""
        people = [each.people for each in self._principals.values() if each.people]
        return frozenset([each.naming_header.lower().encode() for each in people])

    def find(self, key: str) -> Principal | None:
        """The principal of a key, unless it has expired.

        The lookup by digest needs no constant-time comparison: a guess that is nearly right has a digest that is as
        different as any other, so the time of the lookup reveals nothing about the key.
        """
        principal = self._principals.get(digest_of(key))
        return None if principal is None or principal.has_expired else principal

    def named(self, name: str) -> Principal | None:
        """The principal of a name, unless all its keys were withdrawn or have expired."""
        return next((each for each in self._principals.values() if each.name == name and not each.has_expired), None)

    def with_keys(self, others: "KeyRegistry") -> "KeyRegistry":
        """The keys of two registries; for a key in both, the other's principal."""
        return KeyRegistry({**self._principals, **others._principals})  # noqa: SLF001 - the same class


def read_keys(text: str) -> KeyRegistry:
    """Read ``name=sha256`` pairs, separated by commas; their principals have all rights. Errors name no value."""
    principals: dict[str, Principal] = {}
    for number, pair in enumerate(filter(None, (part.strip() for part in text.split(","))), 1):
        name, _, digest = (part.strip() for part in pair.partition("="))
        if not re.fullmatch(NAME_PATTERN, name) or not re.fullmatch(_DIGEST, digest):
            detail = "is not NAME=SHA256, the digest of a key in 64 lower-case hexadecimal digits"
            raise ConfigurationError(f"API_KEYS: entry {number} {detail} (toolchat keys new NAME creates one)")
        principals[digest] = Principal(name)
    return KeyRegistry(principals)


def read_key_file(path: Path, *, keeps_for_ever: bool = True) -> KeyRegistry:
    """Read a key file: TOML with one ``[[keys]]`` table for each key. Errors name no digest."""
    import tomllib  # only services with a key file need it

    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise ConfigurationError(f"API_KEYS_FILE: {path} is larger than {_LARGEST_FILE} bytes")
        entries = _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).keys
    except ValidationError as error:
        faults = describe_faults(error)[:10]
        lines = [f"API_KEYS_FILE: {path}: {place or 'the file'}: {message}" for place, message, _ in faults]
        raise ConfigurationError("\n".join(lines)) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"API_KEYS_FILE: {path} is not valid TOML: {error}") from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"API_KEYS_FILE: {path} cannot be read ({type(error).__name__})") from None
    _check_consistent(path, entries)
    if not keeps_for_ever and (names := [each.name for each in entries if each.session_ttl == FOREVER]):
        raise ConfigurationError(f"API_KEYS_FILE: {path}: session_ttl of {', '.join(names)}: {NEEDS_A_FILE}")
    return KeyRegistry({each.sha256: each.principal() for each in entries})


def _check_consistent(path: Path, entries: Iterable[_Entry]) -> None:
    """Check that no key has two principals, and that all entries of one principal grant the same rights."""
    by_digest: dict[str, str] = {}
    by_name: dict[str, Principal] = {}
    for each in entries:
        if by_digest.setdefault(each.sha256, each.name) != each.name:
            raise ConfigurationError(f"API_KEYS_FILE: {path}: {each.name} has the same key as {by_digest[each.sha256]}")
        rights = replace(each.principal(), expires=None)
        if by_name.setdefault(each.name, rights) != rights:
            raise ConfigurationError(f"API_KEYS_FILE: {path}: the entries of {each.name} grant different rights")


_log = logging.getLogger(__name__)
_POLL_INTERVAL = 1.0
"""Seconds between two checks of the file; polling costs microseconds, and works on every file system."""


class KeyFile:
    """Reloads a key file when it changes.

    Args:
        on_change: receives the new keys; it is not called if the file cannot be read, so that the old keys stay valid.
        keeps_for_ever: whether the state store can.
    """

    def __init__(self, path: Path, on_change: Callable[[KeyRegistry], None], *, keeps_for_ever: bool = True) -> None:
        self._path, self._keeps_for_ever = path, keeps_for_ever
        self._on_change = on_change
        self._seen = self._state()
        self._look = asyncio.Event()

    def reload(self) -> None:
        """Reload the file soon, even if it seems unchanged."""
        self._seen = None
        self._look.set()

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None, None]:
        """Watch the file as long as the block runs."""
        await self._read_if_changed()  # a worker that replaces another starts with the keys of its parent
        watch = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watch.cancel()
            await asyncio.wait([watch])

    async def _watch(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL_INTERVAL):
                    await self._look.wait()
            self._look.clear()
            await self._read_if_changed()

    async def _read_if_changed(self) -> None:
        if (state := self._state()) == self._seen:
            return
        self._seen = state
        try:
            # In a thread: thousands of entries take long enough to delay requests.
            keys = await asyncio.to_thread(read_key_file, self._path, keeps_for_ever=self._keeps_for_ever)
        except ConfigurationError as error:
            _log.error("the key file cannot be used; the keys from before stay", extra={"reason": str(error)[:500]})
            return
        self._on_change(keys)
        _log.info("the key file was read again", extra={"keys": len(keys)})

    def _state(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
