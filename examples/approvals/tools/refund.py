"""Refunds, which a manager approves."""

from typing import Annotated

from pydantic import Field

from toolchat import ToolContext, ToolModule, tool

PAID: dict[str, int] = {}
"""Stands for your payment provider: amounts by idempotency key."""


@tool(requires_approval=True, approver="manager")
async def refund(
    amount: Annotated[int, Field(gt=0, le=1000, description="Amount in EUR")], context: ToolContext
) -> str:
    """Refund an amount to the customer."""
    PAID[context.idempotency_key] = amount  # a repeated call does not pay twice
    return f"{amount} EUR refunded"


module = ToolModule(functions=(refund,))
