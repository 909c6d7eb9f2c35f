"""The tools of a support desk: a refund that a manager approves, a larger one that a director does, and a note."""

from collections.abc import Mapping
from typing import Any

from toolchat import ToolContext, ToolModule, tool

__all__ = ["module"]

PAID: list[tuple[str, int]] = []
"""Who was refunded what, by the order of the refunds."""


def approver(arguments: Mapping[str, Any], _context: ToolContext) -> str | bool:
    return "director" if arguments["amount"] > 1000 else arguments["amount"] > 10


@tool(requires_approval=approver, approver="manager")
async def refund(amount: int, context: ToolContext) -> str:
    """Refund an order."""
    PAID.append((context.caller.name, amount))
    return f"{amount} refunded by {context.caller.name} of {context.caller.tenant}"


@tool(requires_approval=approver, approver="manager", approver_may_edit=True)
async def payOut(amount: int) -> str:
    """Pay something out."""
    return f"{amount} paid"


@tool(requires_approval=lambda arguments, _: "manager" if arguments["amount"] > 10 else True)
async def note(amount: int) -> str:
    """Note an amount."""
    return f"{amount} noted"


module = ToolModule(functions=(refund, payOut, note), default_query="Refund order 7")
