"""The state store interface: values with expiry, locks with fencing tokens, in memory or shared by all replicas."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Annotated, Any, Final

from pydantic import AfterValidator

from toolchat.errors import StoreUnavailable
from toolchat.messages import immutable


@immutable
class Lock:
    """A lease on a key, held until it is released or expires."""

    key: str
    token: int
    """The fencing token: every later lock of the key has a greater one, so that late writes can be refused."""
    value: bytes | None = field(default=None, repr=False, compare=False)
    """The value of the key when the lock was taken."""


@immutable
class StoredRecord:
    """A value with all that is stored about it, to be moved to another store."""

    key: str
    value: bytes
    expires: float
    """Seconds since 1970."""
    client_key: str = ""
    """The client for whom it is counted, if the store counts."""


class LockLost(Exception):
    """The lock expired and was taken by another holder: a write under it would be stale, and is refused."""


def shared_client_key() -> str:
    """Count all clients as one; the default where clients take turns or share a limit."""
    return ""


@contextmanager
def decoding(fault: str) -> Generator[None, None, None]:
    """Decode a stored value within the block; another program may have overwritten it."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StoreUnavailable(fault, retryable=False) from error


class StateStore(ABC):
    """Stores bytes under keys, with expiry.

    The server has half a second for an operation. While the store is unavailable, operations raise ``StoreUnavailable``
    at once; the store detects its return by itself.
    """

    kind: str
    """``memory``, ``sqlite`` or ``redis``."""
    available: bool
    """Whether the last operation, or the last probe after a failed one, succeeded."""
    cause: str = ""
    """Why the store is unavailable, for operators."""
    failures: int
    """The number of operations that raised ``StoreUnavailable`` since the start."""

    @abstractmethod
    async def get(self, key: str) -> bytes | None:
        """Get the value of a key; ``None`` if there is none or it has expired."""

    @abstractmethod
    async def put(self, key: str, value: bytes, *, ttl: float, lock: Lock | None = None, unlock: bool = False) -> None:
        """Store a value for ``ttl`` seconds; ``unlock`` releases the lock in the same step.

        Raises:
            LockLost: another holder has taken the lock in the meantime; nothing was written.
            StoreUnavailable: the store cannot be reached.
        """

    async def put_all(self, values: Mapping[str, bytes], *, ttl: float) -> None:
        """Store several values, in a file in one transaction; elsewhere an error may leave the first ones."""
        for key, value in values.items():
            await self.put(key, value, ttl=ttl)

    @abstractmethod
    async def delete(self, *keys: str, lock: Lock | None = None) -> bool:
        """Delete keys; returns whether any of them had a value. Raises the errors of :meth:`put`.

        If several callers delete one key at the same time, on any replica, only one gets ``True``: it has claimed the
        value.
        """

    @abstractmethod
    async def try_lock(self, key: str, *, ttl: float) -> Lock | None:
        """Take the lock of a key for ``ttl`` seconds; ``None`` if it is held.

        A caller that is cancelled meanwhile does not hold the lock: one that is granted too late is released again.
        """

    @abstractmethod
    async def renew(self, lock: Lock, *, ttl: float) -> bool:
        """Extend a lock to ``ttl`` seconds from now; false if another holder has taken it."""

    @abstractmethod
    async def unlock(self, lock: Lock) -> None:
        """Release a lock, if it is still held."""

    def records(self) -> AsyncIterator[StoredRecord]:
        """All values, except for quotas, whose form differs between stores; raises ``StoreUnavailable``."""
        raise NotImplementedError

    def script(self, name: str, text: str) -> Callable[[Sequence[str], Sequence[object]], Awaitable[Any]]:
        """Register a Lua script, to be called with keys and arguments; only stores of ``kind`` ``redis`` run scripts.

        The name appears in traces. A call is one round trip and raises ``StoreUnavailable`` like every operation.
        """
        raise NotImplementedError(name)

    async def durability_warning(self) -> str:
        """What the store's server would lose in a crash, and how to change that; empty if that is little or unknown."""
        return ""

    def _unavailable(self, detail: str) -> StoreUnavailable:
        error = StoreUnavailable(detail, retry_after=1)
        if self.cause:
            error.log_fields["cause"] = self.cause
        return error

    def check(self) -> None:  # noqa: B027
        """Find out, before the store is started, whether it can be used as it is configured.

        Raises:
            ConfigurationError: its file cannot be opened.
        """

    async def start(self) -> None:  # noqa: B027 - nothing to do is a good default
        """Start to watch the connection, if there is one; does not fail if the store is unavailable."""

    async def aclose(self) -> None:  # noqa: B027
        """Close the connections."""


RECORD_VERSION: Final = 1
"""The version that is written.

Raise it if an older process would misread the new records. A new field that older processes may ignore does not need
another version.
"""


def check_version(version: int) -> int:
    """Check that this process can read a record."""
    if version > RECORD_VERSION:
        raise StoreUnavailable("a newer version of the service stored this; only that version reads it", retry_after=1)
    return version


RecordVersion = Annotated[int, AfterValidator(check_version)]
"""The type of a record's field ``version``."""
