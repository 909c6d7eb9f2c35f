"""Approvals: who asked and who may decide, what was decided, their lists, and the tokens of their links."""

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from toolchat.chat.request import Approval
from toolchat.errors import NotFound, ToolchatError
from toolchat.service.access.principals import APPROVE, ASK, OPERATE, Principal, RequestCaller, current_request_caller
from toolchat.service.api.dependencies import belonging_to, parts_of
from toolchat.service.api.paused_turns import missing
from toolchat.state.base import RECORD_VERSION, TIME_STEP, RecordVersion, StateStore, decoding

RECEIVER = "webhook:"
"""Begins the name of who has received a link by the webhook; no key and no token has such a name."""


class ApprovalByAnother(ToolchatError):
    """Somebody else than who asked has to decide about a call."""

    status, code, title = 403, "approval-by-another", "Somebody else decides"


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided about an answer, and what came of it."""

    decision: str
    by: str
    door: str
    at: float
    approvals: Mapping[str, Approval]
    answer: str = ""
    """The text of the resumed answer once it has ended, for those who were not its client."""
    failure: str = ""
    approval: str = ""
    """The id of the next approval that the resumed answer waits for."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An approval: what waits, who asked for it, and what was decided."""

    identifier: str
    principal: Principal
    client_key: str
    tenant: str
    conversation: str
    question: str
    calls: list[dict[str, Any]]
    """As users see them; ``approver`` is the role of who has to approve."""
    at: float
    expires: float
    decided: Decided | None = None
    version: RecordVersion = RECORD_VERSION

    @property
    def roles(self) -> frozenset[str]:
        """The roles that somebody else needs to decide; none: who asked decides."""
        return frozenset(each["approver"] for each in self.calls if "approver" in each)

    def is_by(self, principal: Principal) -> bool:
        return principal.name == self.principal.name

    def has_approver(self, principal: Principal) -> bool:
        """Whether a principal has what it takes to decide about calls of others."""
        is_suitable = APPROVE in principal.roles or self.roles <= principal.roles
        return bool(self.roles and principal.name) and is_suitable and principal.tenant in ("", self.tenant)

    def may_decide(self, principal: Principal) -> bool:
        """Whether a principal decides: one who asked, or one who did not, as the calls require."""
        return self.has_approver(principal) and not self.is_by(principal) if self.roles else self.is_by(principal)

    def may_see(self, principal: Principal) -> bool:
        """Whether an approval exists for a principal; for the receiver of a link, until it was decided."""
        is_over = self.decided is not None and principal.name.startswith(RECEIVER)
        return self.is_by(principal) or (self.has_approver(principal) and not is_over)

    def caller(self, decider: RequestCaller, asker: Principal) -> RequestCaller:
        """For whom the answer resumes: who asked, with the rights of now; ``asker`` is that principal."""
        if self.is_by(decider.principal):
            return decider if decider.principal.name else replace(decider, tenant=self.tenant)
        tenant = asker.tenant or asker.name or self.tenant
        return RequestCaller(asker.name, self.client_key, tenant, asker.roles, asker)

    def refusal(self) -> ApprovalByAnother:
        return ApprovalByAnother(words_about(self.calls))

    def document(self, principal: Principal, now: float) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "id": self.identifier,
            "status": "decided" if self.decided else "waiting",
            "calls": self.calls,
            "question": self.question,
            "asked_by": self.principal.name,
            "tenant": self.tenant,
            "asked_at": iso(self.at),
            "expires_in": round(max(self.expires - now, 0), 3),
            "may_decide": self.decided is None and self.may_decide(principal),
        }
        if (decided := self.decided) is None:
            return shown
        shown |= {"decision": decided.decision, "by": decided.by, "at": iso(decided.at)}
        shown["reason"] = "; ".join(filter(None, (each.reason for each in decided.approvals.values())))
        results = {"answer": decided.answer, "failure": decided.failure, "approval": decided.approval}
        return shown | {name: value for name, value in results.items() if value}


ASKED = TypeAdapter(Asked)


def read_waiting(value: bytes) -> Asked:
    """The approval of a turn that waits; raises ``DependencyMissing`` if its record is unreadable."""
    try:
        return ASKED.validate_python(from_json(value)["asked"])
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        raise missing("a record of another version of the service") from error


def read_decided(value: bytes) -> Asked:
    with decoding("the record of a decision cannot be read"):
        return ASKED.validate_json(value)


def decision_word(approvals: Mapping[str, Approval]) -> str:
    approved = {each.approved for each in approvals.values()}
    return "partly approved" if len(approved) > 1 else "approved" if True in approved else "rejected"


def words_about(calls: list[dict[str, Any]]) -> str:
    """Who decides about calls: text for those who may not."""
    roles = " and ".join(dict.fromkeys(each["approver"] for each in calls if "approver" in each))
    names = ", ".join(each["name"] for each in calls)
    return f"a person with the role {roles} must decide about {names}; the one who asked cannot"


def iso(at: float, precision: str = "milliseconds") -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec=precision)


_KINDS = _WAITS, _DECIDED = "waiting", "decided"
CURSOR_PATTERN = rf"^(({'|'.join(_KINDS)}):[0-9]{{1,12}}[.][0-9]{{6}}:[A-Za-z0-9_-]{{1,64}})?$"
"""Where a list of approvals continues: behind one of a kind, with its time and its id."""
_PAGE = 50


async def list_approvals(store: StateStore, limit: int, before: str = "") -> tuple[list[Asked], str]:
    """What the current principal may decide or has asked, what waits first, and where to continue, if anywhere."""
    first, at, last = before.split(":") if before else (_WAITS, "", "")
    found: list[tuple[float, str, Asked]] = []
    for kind in _KINDS[_KINDS.index(first) :]:
        since = float(at) if at and kind == first else None
        listed = await _newest(store, kind, limit, since)
        places = [place for place, each in enumerate(listed, 1) if since and each[2].identifier == last]
        found += listed[places[0] if places else 0 :]
    shown = found[:limit]
    following = "{1}:{0:.6f}:{2.identifier}".format(*shown[-1]) if len(found) > limit else ""
    return [each for _, _, each in shown], following


async def _newest(store: StateStore, kind: str, limit: int, since: float | None) -> list[tuple[float, str, Asked]]:
    """The newest approvals of one kind that the current principal may see, from a time on."""
    principal = current_request_caller().principal
    # An approver has another role than those of every key.
    decides = [f"tenant:{principal.tenant}" if principal.tenant else "all"] if principal.roles - {ASK, OPERATE} else []
    found: dict[str, tuple[float, str, Asked]] = {}
    for name in [f"of:{principal.name}", *decides] if principal.name else ():
        of_list: dict[str, tuple[float, str, Asked]] = {}
        # The last one of the page before comes again, since the time of the store's clock is not exact.
        before = since + TIME_STEP if since else None
        async for key, value, at in store.newest(f"approvals-{kind}:{name}", before, _PAGE):
            asked = read_decided(value) if key.startswith("approval-decided:") else read_waiting(value)
            if asked.may_see(principal):
                of_list[asked.identifier] = at, kind, asked
            if len(of_list) > limit + 1:
                break
        found |= of_list
    return sorted(found.values(), key=lambda each: each[0], reverse=True)


def lists_of(asked: Asked) -> tuple[str, ...]:
    """The lists of an approval: of its conversation, of who asked, unless that is anybody, and of who may decide."""
    names = [f"of:{asked.principal.name}"] if asked.principal.name else []
    names += ["all", f"tenant:{asked.tenant}"] if asked.roles else []
    kind = _DECIDED if asked.decided else _WAITS
    return (*parts_of(asked.conversation), *(f"approvals-{kind}:{each}" for each in names))


LINK_FRAGMENT = "#token="
"""Begins the fragment of an approval link, which browsers do not send: no server's log has the token."""
_RECORD = TypeAdapter(tuple[str, Principal, RecordVersion])
_TOKEN = re.compile(rb"((?:#|%23)token(?:=|%3D))[\w-]+", re.IGNORECASE)


class AlreadyDecided(NotFound):
    """The calls of a paused answer were decided before."""

    code, title = "already-decided", "Already decided"


class ApprovalTokens:
    """Issues tokens for one paused answer each, which is claimed once; the store knows a token by its hash."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    async def issue(self, identifier: str, ttl: float, principal: Principal | None = None) -> str:
        """Issue a token of 256 random bits that acts for a principal, by default the current one, for some seconds."""
        token = secrets.token_urlsafe(32)
        record = (identifier, principal or current_request_caller().principal, RECORD_VERSION)
        await self._store.put(_key(token), _RECORD.dump_json(record), ttl=ttl, lists=belonging_to())
        return token

    async def principal(self, identifier: str, token: str) -> Principal:
        try:
            issued_for, principal, _ = _RECORD.validate_json(await self._store.get(_key(token)) or b"")
        except ValidationError:  # there is none
            raise approval_not_found() from None
        if issued_for != identifier:
            raise approval_not_found()
        return principal


def link_to(address: str, identifier: str, token: str) -> str:
    """The page of an approval; with a token, whoever has the link can decide. Opening it decides nothing."""
    return f"{address}/playground/?approval={identifier}{token and LINK_FRAGMENT + token}"


def without_tokens(content: bytes) -> bytes:
    """Remove the tokens of approval links: a model could open a link, and decide by itself."""
    return _TOKEN.sub(rb"\1...", content) if b"#token" in content or b"%23token" in content else content


def approval_not_found() -> NotFound:
    """The error for an approval that does not exist, was decided, has expired, or belongs to somebody else."""
    return NotFound("no answer waits for approval under this id; it was decided before, or has expired")


def _key(token: str) -> str:
    return f"approval-token:{hashlib.sha256(token.encode()).hexdigest()}"
