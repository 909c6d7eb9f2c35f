"""A folder with a tool that needs the user's consent, and one that says how far it is."""

from toolchat import ToolModule
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import tool


@tool(requires_approval=True)
async def ship(number: int) -> str:
    """Ship an order."""
    return f"shipped {number}"


@tool
async def pack(context: ToolContext) -> str:
    """Pack an order."""
    for number in (1, 2):
        context.report(number, of=2, text=f"box {number}")
    return "packed"


module = ToolModule(functions=(ship, pack))
