"""Small values that outlive a request, behind one protocol: in this process, or shared by all replicas."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from toolchat.errors import StoreUnavailable
from toolchat.messages import immutable

__all__ = ["Lock", "LockLost", "StateStore", "decoding", "shared_client_key"]


@immutable
class Lock:
    """A lock that is held until it is released or its time is over."""

    key: str
    token: int
    """The fencing token: every later lock of the same key has a greater one."""
    value: bytes | None = field(default=None, repr=False, compare=False)
    """What was kept under the key when the lock was taken."""


class LockLost(Exception):
    """The lock ran out and somebody else has taken it: what was to be written under it is out of date."""


def shared_client_key() -> str:
    """Count all clients as one; the default where clients take turns or share a limit."""
    return ""


@contextmanager
def decoding(fault: str) -> Generator[None, None, None]:
    """Read what was kept, which somebody may have written over.

    Args:
        fault: what to tell when it cannot be understood.

    Raises:
        StoreUnavailable: it cannot be understood.
    """
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StoreUnavailable(fault, retryable=False) from error


class StateStore(ABC):
    """Keeps bytes under keys for a while.

    Every operation ends within half a second. A store that cannot be reached raises ``StoreUnavailable`` at once
    until it is there again, which it finds out by itself.
    """

    kind: str
    """``memory`` or ``redis``."""
    available: bool
    """Whether the last operation, or the last probe after a failed one, went through."""
    failures: int
    """Operations that ended in ``StoreUnavailable`` since the start."""

    @abstractmethod
    async def get(self, key: str) -> bytes | None:
        """The value under a key; ``None`` when there is none or its time is over."""

    @abstractmethod
    async def put(self, key: str, value: bytes, *, ttl: float, lock: Lock | None = None, unlock: bool = False) -> None:
        """Keep a value for ``ttl`` seconds; with ``unlock`` the lock is released with it, in one step.

        Raises:
            LockLost: ``lock`` was taken by somebody else in the meantime; nothing was written.
            StoreUnavailable: the store cannot be reached.
        """

    @abstractmethod
    async def delete(self, *keys: str, lock: Lock | None = None) -> bool:
        """Forget keys; whether there was anything under any of them. Raises as :meth:`put`.

        Of all who forget one key at the same time, on any replica, one is told that there was something: whoever that
        is has taken it.
        """

    @abstractmethod
    async def try_lock(self, key: str, *, ttl: float) -> Lock | None:
        """Take the lock of a key for ``ttl`` seconds; ``None`` when somebody holds it.

        Whoever is cancelled meanwhile has not taken it: a lock that is given all the same is given back.
        """

    @abstractmethod
    async def renew(self, lock: Lock, *, ttl: float) -> bool:
        """Hold a lock for ``ttl`` seconds from now; false when somebody else has taken it."""

    @abstractmethod
    async def unlock(self, lock: Lock) -> None:
        """Release a lock, if it is still ours."""

    def script(self, name: str, text: str) -> Callable[[Sequence[str], Sequence[object]], Awaitable[Any]]:
        """Make a Lua script callable, by its keys and its arguments; only stores of ``kind`` ``redis`` run scripts.

        Its name stands in traces. A call is one round trip, and raises ``StoreUnavailable`` as every operation does.
        """
        raise NotImplementedError(name)

    async def start(self) -> None:  # noqa: B027 - nothing to do is a good default
        """Begin to watch over the connection, where there is one; never fails because the store is absent."""

    async def aclose(self) -> None:  # noqa: B027
        """Let go of connections."""
