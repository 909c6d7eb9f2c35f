"""Runs the service without one of its mechanisms: ``python -m tests.faults.removal MECHANISM serve``.

Each mechanism is one attribute, with what takes its place. A mechanism belongs here if only a test of this folder can
tell that it is missing.
"""

import secrets
import sys
from collections.abc import Sequence

from app.__main__ import main
from toolchat.service.api.idempotency import IdempotencyStore
from toolchat.service.server.http_protocol import LimitedProtocol
from toolchat.state.base import Lock, StateStore, Write
from toolchat.state.locks import Locks
from toolchat.state.watched import _Deadline

__all__ = ["MECHANISMS"]


def _nothing(*_: object) -> None:
    pass


async def _nothing_found(*_: object) -> None:
    return None


async def _lock_although_held(self: StateStore, key: str, *, ttl: float, writes: Sequence[Write] = ()) -> Lock | None:
    lock = Lock(key, secrets.token_bytes(16))
    write = Write(lock.name, lock.token, ttl, is_kept=True)
    return Lock(key, lock.token, (await self.commit((write, *writes), reads=(key,), name="lock")).found[key])


# The owner and the name of the attribute, and what it becomes.
MECHANISMS: dict[str, tuple[object, str, object]] = {
    "lock": (StateStore, "try_lock", _lock_although_held),
    "fence": (Lock, "fence", property(lambda _: {})),
    "renewal": (Locks, "_start_renewal", _nothing),
    "late-release": (StateStore, "_release_later", _nothing),
    "store-deadline": (_Deadline, "_end_step", _nothing),
    "stored-result": (IdempotencyStore, "find", _nothing_found),
    "header-time": (LimitedProtocol, "_expect_head", _nothing),
}

if __name__ == "__main__":
    owner, name, replacement = MECHANISMS[sys.argv.pop(1)]
    setattr(owner, name, replacement)
    sys.exit(main())
