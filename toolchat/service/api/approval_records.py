"""The records of approvals: who asked and who may decide, and what was decided."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from toolchat.chat.request import Approval
from toolchat.errors import ToolchatError
from toolchat.service.access.principals import APPROVE, Principal, RequestCaller
from toolchat.service.api.paused_turns import missing
from toolchat.state.base import RECORD_VERSION, RecordVersion, decoding

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
        """Whether a principal is the one who asked."""
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
        """The error for a decision by who asked."""
        return ApprovalByAnother(words_about(self.calls))

    def document(self, principal: Principal, now: float) -> dict[str, Any]:
        """The approval as a principal sees it."""
        shown = {
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
        return shown | (self._decision(self.decided) if self.decided else {})

    def _decision(self, decided: Decided) -> dict[str, Any]:
        shown: dict[str, Any] = {"decision": decided.decision, "by": decided.by, "at": iso(decided.at)}
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
    """The approval of a turn that was decided; raises ``StoreUnavailable`` if its record is unreadable."""
    with decoding("the record of a decision cannot be read"):
        return ASKED.validate_json(value)


def decision_word(approvals: Mapping[str, Approval]) -> str:
    """What was decided, in a word."""
    approved = {each.approved for each in approvals.values()}
    return "partly approved" if len(approved) > 1 else "approved" if True in approved else "rejected"


def words_about(calls: list[dict[str, Any]]) -> str:
    """Who decides about calls: text for those who may not."""
    roles = " and ".join(dict.fromkeys(each["approver"] for each in calls if "approver" in each))
    names = ", ".join(each["name"] for each in calls)
    return f"a person with the role {roles} must decide about {names}; the one who asked cannot"


def iso(at: float, precision: str = "milliseconds") -> str:
    """A time as text, in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec=precision)
