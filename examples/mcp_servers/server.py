"""An MCP server with one tool, over standard input and output."""

from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

SHELVES = {"lamp": "B3", "desk": "C1"}
Item = Annotated[str, Field(description="Item in English, singular, such as lamp")]

server = MCPServer("warehouse", log_level="WARNING")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def find_shelf(item: Item) -> str:
    """Find the shelf of an item in the warehouse."""
    if item.lower() not in SHELVES:
        raise ToolError(f"the warehouse has no {item}")
    return f"{item}: shelf {SHELVES[item.lower()]}"


if __name__ == "__main__":
    server.run()
