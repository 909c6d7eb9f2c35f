"""The webhook of approvals: its events are stored with what they tell of, signed, and posted until they arrive.

It follows Standard Webhooks (https://www.standardwebhooks.com): ``webhook-id`` stays equal over all tries.
"""

import asyncio
import hmac
import logging
import secrets
import time
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from pydantic import TypeAdapter
from pydantic_core import to_json

from toolchat.errors import SessionBusy, StoreUnavailable, ToolchatError
from toolchat.http.client import OutboundHttp
from toolchat.service.api.approval_records import RECEIVER, iso
from toolchat.service.observability import metrics
from toolchat.state.base import RECORD_VERSION, LockLost, RecordVersion, StateStore, Write, decoding
from toolchat.state.locks import Locks

_log = logging.getLogger(__name__)
REQUESTED, DECIDED = "approval.requested", "approval.decided"
_LIST, _PAGE = "webhook", 100
_GIVE_UP = 43_200.0
"""Seconds after which an event is given up; an approval waits for twice as long."""
_STORED_SECONDS = 2 * _GIVE_UP
_MAX_PAUSE = 1800.0
_NAME, _TIMEOUT = "approvals_webhook", 10.0


@dataclass(frozen=True, slots=True)
class _Event:
    kind: str
    approval: str
    at: float
    tries: int = 0
    version: RecordVersion = RECORD_VERSION


_EVENT = TypeAdapter(_Event)
Describe = Callable[[str, str, str, str], Awaitable[dict[str, Any] | None]]
"""Gives what an event tells: from its kind, its approval, its receiver and the service's address; ``None``: nothing."""


class ApprovalWebhook:
    """Posts the events of all processes to one URL, each under its own lock; the pause doubles with each try."""

    def __init__(
        self, store: StateStore, http: OutboundHttp, *, url: str, key: Callable[[], bytes], address: str, pause: float
    ) -> None:
        self._store, self._http, self._url, self._key, self._address = store, http, url, key, address
        self._receiver, self._pause = f"{RECEIVER}{urlsplit(url).hostname}", pause
        self._locks = Locks(store, wait=0)
        self.give_up = _GIVE_UP

    def event(self, kind: str, approval: str) -> Write:
        """What stores an event, to be committed with what it tells of."""
        return _stored(f"webhook:{secrets.token_hex(16)}", _Event(kind, approval, time.time()))

    @asynccontextmanager
    async def running(self, describe: Describe) -> AsyncGenerator[None, None]:
        """Post events within the block; other processes carry on with the rest."""
        watching = asyncio.create_task(self._watch(describe))
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await self._http.aclose()

    async def _watch(self, describe: Describe) -> None:
        while True:
            try:
                with suppress(StoreUnavailable):
                    await self._sweep(describe)
            except Exception:  # noqa: BLE001 - no event is dropped
                _log.exception("an event failed unexpectedly; it is tried again")
            await asyncio.sleep(self._pause)

    async def _sweep(self, describe: Describe) -> None:
        listed, now = await self._store.listed(_LIST, limit=_PAGE), time.time()
        found = [(key, value, now - at, _event(value).tries) for key, value, at in reversed(listed)]
        due = [(key, value) for key, value, age, tries in found if age >= self._pause_after(tries)]
        await asyncio.gather(*[self._try(describe, *each) for each in due])

    def _pause_after(self, tries: int) -> float:
        return min(self._pause * 2.0 ** min(tries - 1, 20), _MAX_PAUSE) if tries else -_GIVE_UP

    async def _try(self, describe: Describe, key: str, value: bytes) -> None:
        with suppress(SessionBusy, LockLost, StoreUnavailable):
            async with self._locks.hold(key) as lock:
                if lock.value == value:  # else another process has tried it meanwhile
                    event = _event(value)
                    has_ended = await self._has_ended(describe, key.partition(":")[2], event)
                    left = Write(key) if has_ended else _stored(key, replace(event, tries=event.tries + 1))
                    await self._store.commit_under(lock, [left])

    async def _has_ended(self, describe: Describe, identifier: str, event: _Event) -> bool:
        """Post an event; whether it has arrived, is given up, or is no longer so."""
        if time.time() - event.at > self.give_up:
            metrics.WEBHOOK.labels("given up").inc()
            _log.error("an event for the webhook was given up", extra={"event": identifier, "tries": event.tries})
            return True
        try:
            data = await describe(event.kind, event.approval, self._receiver, self._address)
            body = {"id": identifier, "type": event.kind, "timestamp": iso(event.at), "data": data}
            failure = await self._posted(identifier, to_json(body, inf_nan_mode="strings")) if data else ""
        except ToolchatError as error:
            failure = error.for_operators
        metrics.WEBHOOK.labels("failed" if failure else "ok").inc()
        if failure and not event.tries:
            _log.warning("an event for the webhook is tried again", extra={"event": identifier, "reason": failure})
        return not failure

    async def _posted(self, identifier: str, body: bytes) -> str:
        """Post a body once; returns why it was refused, or nothing. Raises the errors of ``OutboundHttp``."""
        at = int(time.time())
        signature = hmac.digest(self._key(), b"%b.%d.%b" % (identifier.encode(), at, body), sha256)
        headers = {"webhook-id": identifier, "webhook-timestamp": str(at), "Content-Type": "application/json"}
        headers["webhook-signature"] = f"v1,{b64encode(signature).decode()}"
        reply = await self._http.fetch("POST", self._url, upstream=_NAME, timeout=_TIMEOUT, headers=headers, data=body)
        return "" if 200 <= reply.status < 300 else f"it answered with status {reply.status}"


def _event(value: bytes) -> _Event:
    with decoding("an event for the webhook cannot be read"):
        return _EVENT.validate_json(value)


def _stored(key: str, event: _Event) -> Write:
    return Write(key, _EVENT.dump_json(event), _STORED_SECONDS, is_kept=True, lists=(_LIST,))
