"""The user's consent, as pages ask for it: one id for each call of an answer that waits."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.api.ai_sdk.wire import UIMessage
from app.chat.request import Approval
from app.errors import InvalidRequest

__all__ = ["approval_requests", "decisions"]


def approval_requests(pending: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts that ask for consent; each has an id of its own, since a page decides about calls one by one."""
    for call in pending["calls"]:
        yield {
            "type": "tool-approval-request",
            "approvalId": f"{pending['id']}/{call['id']}",
            "toolCallId": call["id"],
        }


def decisions(message: UIMessage) -> tuple[str, Mapping[str, Approval]] | None:
    """What the user has decided about the calls of a message.

    Returns:
        The id of the answer that waits, and the decisions by call id; ``None`` where no call was decided.

    Raises:
        InvalidRequest: a call beside them is not decided yet, or they are about several answers.
    """
    parts = message.parts if message.role == "assistant" else ()
    decided = {
        part.approval.id: part.approval for part in parts if part.approval and part.state == "approval-responded"
    }
    waiting = {identifier.partition("/")[0] for identifier in decided}
    if not decided:
        return None
    if len(waiting) > 1 or any(part.state == "approval-requested" for part in parts):
        raise InvalidRequest("messages: every call that waits for approval must be decided, and those of one answer")
    approvals = {
        identifier.partition("/")[2]: Approval(bool(each.approved), each.reason or "")
        for identifier, each in decided.items()
    }
    return waiting.pop(), approvals
