"""A tool with the name of the service's own tool."""

from toolchat import ToolModule
from toolchat.tool_calling.definition import tool


@tool
async def ask() -> str:
    """Ask the folder."""
    return "my own"


module = ToolModule(functions=(ask,))
