"""A tool that has the name of the service's own."""

from toolchat import ToolModule
from toolchat.tool_calling.function_callback import tool


@tool
async def ask() -> str:
    """Ask the folder."""
    return "my own"


module = ToolModule(functions=(ask,))
