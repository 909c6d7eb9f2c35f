"""The tools of a support desk: a refund that a manager approves, a larger one that a director does, and a note."""

from collections.abc import Mapping
from typing import Any

from tests.waiting import until
from toolchat import ToolContext, ToolModule, tool

__all__ = ["module"]

PAID: list[tuple[str, int]] = []
"""Who was refunded what, by the order of the refunds."""
HELD: set[int] = set()
"""The amounts that are held back until a test discards them."""


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


@tool(requires_approval=True, approver="manager")
async def hold(amount: int) -> str:
    """Hold an amount back until a test lets it go on."""
    HELD.add(amount)
    await until(lambda: amount not in HELD)
    return f"{amount} held"


module = ToolModule(functions=(refund, payOut, note, hold), default_query="Refund order 7")
