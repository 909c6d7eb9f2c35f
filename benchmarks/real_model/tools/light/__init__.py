"""A tool that a person has to approve."""

from typing import Annotated

from toolchat import ToolModule, tool


@tool(requires_approval=True)
async def switchLight(on: Annotated[bool, "Whether the light is to be on"]) -> str:
    """Switch the light."""
    return "the light is on" if on else "the light is off"


module = ToolModule(functions=(switchLight,), default_query="Switch the light on")
