"""Keys, and the principals that they name.

A key is random and long, so its SHA-256 digest is enough to recognise it, and nobody finds the key from it.
"""

import asyncio
import contextlib
import hashlib
import logging
import re
import secrets
import tomllib
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from app.access.principals import Principal, Role
from toolchat.errors import ConfigurationError

__all__ = ["NAME_PATTERN", "KeyFile", "KeyRegistry", "digest_of", "new_key", "read_key_file", "read_keys"]


NAME_PATTERN = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""What a principal may be called; the name stands in logs, in figures and before what it owns."""
_DIGEST = "[0-9a-f]{64}"
_LARGEST_FILE = 8 * 2**20

_Count = Annotated[int, Field(ge=1)]


def new_key() -> str:
    """Make a key of 256 random bits; its beginning lets scanners of secrets recognise it."""
    return f"toolchat_{secrets.token_urlsafe(32)}"


def digest_of(key: str) -> str:
    """The SHA-256 digest by which a key is known, in hexadecimal digits."""
    return hashlib.sha256(key.encode()).hexdigest()


class _Entry(BaseModel):
    """One ``[[keys]]`` of a file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(pattern=f"^{NAME_PATTERN}$")
    sha256: str = Field(pattern=f"^{_DIGEST}$")
    tools: list[str] = ["*"]
    roles: list[Role] = ["ask", "operate"]
    requests_per_minute: _Count | None = None
    concurrent: _Count | None = None
    tokens_per_day: _Count | None = None
    expires: AwareDatetime | None = None

    def principal(self) -> Principal:
        limits = self.model_dump(include={"requests_per_minute", "concurrent", "tokens_per_day", "expires"})
        return Principal(self.name, tuple(self.tools), frozenset(self.roles), **limits)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    keys: list[_Entry] = []


class KeyRegistry:
    """Finds the principal of a key.

    Args:
        principals: by the digests of their keys; one principal may have several.
    """

    def __init__(self, principals: Mapping[str, Principal] | None = None) -> None:
        self._principals = dict(principals or {})

    def __len__(self) -> int:
        return len(self._principals)

    def find(self, key: str) -> Principal | None:
        """The principal of a key, unless its time is over.

        Nothing is compared with a key: its digest is looked up. However near a guess is, its digest is as far from the
        right one as any other's, so the time that it takes tells nothing.
        """
        principal = self._principals.get(digest_of(key))
        return None if principal is None or principal.has_expired else principal

    def with_keys(self, others: "KeyRegistry") -> "KeyRegistry":
        """The keys of two books; of one that both have, the other's."""
        return KeyRegistry({**self._principals, **others._principals})  # noqa: SLF001 - another book


def read_keys(text: str) -> KeyRegistry:
    """Read ``name=sha256`` pairs, separated by commas: principals who may do everything.

    Raises:
        ConfigurationError: a pair cannot be read; no value is shown.
    """
    principals: dict[str, Principal] = {}
    for number, pair in enumerate(filter(None, (part.strip() for part in text.split(","))), 1):
        name, _, digest = (part.strip() for part in pair.partition("="))
        if not re.fullmatch(NAME_PATTERN, name) or not re.fullmatch(_DIGEST, digest):
            detail = "is not NAME=SHA256, the digest of a key in 64 lower-case hexadecimal digits"
            raise ConfigurationError(f"API_KEYS: entry {number} {detail} (python -m app keys new NAME makes one)")
        principals[digest] = Principal(name)
    return KeyRegistry(principals)


def read_key_file(path: Path) -> KeyRegistry:
    """Read a TOML file with one ``[[keys]]`` for each key.

    Raises:
        ConfigurationError: it cannot be read; all faults together, one line each, no digest shown.
    """
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise ConfigurationError(f"API_KEYS_FILE: {path} is larger than {_LARGEST_FILE} bytes")
        entries = _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).keys
    except ValidationError as error:
        faults = [f"API_KEYS_FILE: {path}: {_place(fault)}: {fault['msg']}" for fault in error.errors()[:10]]
        raise ConfigurationError("\n".join(faults)) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"API_KEYS_FILE: {path} is no TOML: {error}") from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"API_KEYS_FILE: {path} cannot be read ({type(error).__name__})") from None
    _check_alike(path, entries)
    return KeyRegistry({each.sha256: each.principal() for each in entries})


def _check_alike(path: Path, entries: Iterable[_Entry]) -> None:
    """Make sure that no key names two principals, and that the entries of one principal grant the same."""
    by_digest: dict[str, str] = {}
    by_name: dict[str, Principal] = {}
    for each in entries:
        if by_digest.setdefault(each.sha256, each.name) != each.name:
            raise ConfigurationError(f"API_KEYS_FILE: {path}: {each.name} has the key of {by_digest[each.sha256]}")
        principal = each.principal()
        first = by_name.setdefault(each.name, principal)
        if (first.tools, first.roles) != (principal.tools, principal.roles) or _limits(first) != _limits(principal):
            raise ConfigurationError(f"API_KEYS_FILE: {path}: the entries of {each.name} do not grant the same")


def _limits(principal: Principal) -> tuple[int | None, ...]:
    return principal.requests_per_minute, principal.concurrent, principal.tokens_per_day


def _place(fault: Any) -> str:
    return ".".join(str(part) for part in fault["loc"]) or "the file"


_log = logging.getLogger(__name__)
_LOOK_EVERY = 1.0
"""Seconds between two looks at the file; a look costs microseconds, and works on every file system."""


class KeyFile:
    """Keeps the keys of a file up to date, without missing a request.

    Args:
        path: the file.
        take: is given the keys whenever they were read; not called for a file that cannot be read, so that the keys
            from before go on being valid.
    """

    def __init__(self, path: Path, take: Callable[[KeyRegistry], None]) -> None:
        self._path = path
        self._take = take
        self._seen = self._state()
        self._look = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def reload(self) -> None:
        """Read the file soon, whether or not it seems to have changed."""
        self._seen = None
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._look.set)

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None, None]:
        """Look at the file again and again as long as the block runs."""
        self._loop = asyncio.get_running_loop()
        await self._read_if_changed()  # as it may have since; a worker that replaces another knows the first keys
        watch = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watch.cancel()
            await asyncio.wait([watch])

    async def _watch(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY):
                    await self._look.wait()
            self._look.clear()
            await self._read_if_changed()

    async def _read_if_changed(self) -> None:
        state = self._state()
        if state != self._seen:
            self._seen = state
            await self._read()

    async def _read(self) -> None:
        try:
            # In a thread: thousands of entries take a while.
            keys = await asyncio.to_thread(read_key_file, self._path)
        except ConfigurationError as error:
            _log.error("the key file cannot be used; the keys from before stay", extra={"reason": str(error)[:500]})
            return
        self._take(keys)
        _log.info("the key file was read again", extra={"keys": len(keys)})

    def _state(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
