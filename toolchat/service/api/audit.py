"""The audit trail: one record of each decision about a call, kept for as long as a setting says."""

import logging
import time
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic_core import from_json, to_json

from toolchat.chat.request import Approval
from toolchat.service.api.approval_records import Asked, iso
from toolchat.service.api.dependencies import session_of
from toolchat.service.observability.logs import hashed
from toolchat.state.base import RECORD_VERSION, StateStore, Write, decoding

_log = logging.getLogger(__name__)
_DAY = 86_400.0
_LIST = "audit"


class AuditTrail:
    """The decisions, in the state store for some days, outside of eviction."""

    def __init__(self, store: StateStore, *, days: float = 365) -> None:
        self._store, self._ttl = store, days * _DAY

    def writes(self, records: list[dict[str, Any]]) -> list[Write]:
        """What stores the records of decisions, to be committed with the decisions themselves."""
        return [
            Write(_key(each), to_json(each | {"version": RECORD_VERSION}), self._ttl, is_kept=True, lists=(_LIST,))
            for each in records
        ]

    async def record(self, record: dict[str, Any]) -> None:
        """Store the record of a decision that needs no other write; one that is known stays as it is."""
        outcome = await self._store.commit(self.writes([record]), checks={_key(record): (None,)}, name="audit")
        if outcome.is_done:
            log([record])

    async def entries(
        self, begin: datetime | None = None, end: datetime | None = None, **wanted: str
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The records with the values that are wanted and not empty, the newest first; times without a zone are UTC."""
        least = _seconds(begin) or 0.0
        async for _, value, at in self._store.newest(_LIST, _seconds(end)):
            if at < least:
                return
            with decoding("a record of a decision cannot be read"):
                entry = from_json(value)
            if all(entry[name] == value for name, value in wanted.items() if value):
                yield {name: value for name, value in entry.items() if name != "version"}


def records_of(asked: Asked, approvals: Mapping[str, Approval], by: str, door: str) -> list[dict[str, Any]]:
    at = iso(time.time())
    return [_record(asked, call, approvals.get(call["id"], Approval(False)), by, door, at) for call in asked.calls]


def _record(asked: Asked, call: Mapping[str, Any], approval: Approval, by: str, door: str, at: str) -> dict[str, Any]:
    run = call["arguments"] if approval.arguments is None else from_json(approval.arguments)
    return {
        "time": at,
        "approval": asked.identifier,
        "call": call["id"],
        "tool": call["name"],
        "arguments": call["arguments"],
        "arguments_run": run if approval.approved else None,
        "decision": "approved" if approval.approved else "rejected",
        "reason": approval.reason,
        "by": by,
        "role": call.get("approver", ""),
        "asked_by": asked.principal.name,
        "door": door,
        "tenant": asked.tenant,
        "session": session_of(asked.conversation),
    }


def log(records: list[dict[str, Any]]) -> None:
    # Its ids are those of paths, so they are hashed.
    for each in records:
        ids = {name: each[name] and hashed(each[name]) for name in ("approval", "session")}
        _log.info("a call was decided", extra={"decision": each | ids})


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _key(record: Mapping[str, Any]) -> str:
    return f"audit:{record['approval']}:{record['call']}"
