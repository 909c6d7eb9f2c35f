"""An MCP server by the SDK whose list of tools grows at run time; with a port as argument it serves HTTP."""

import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("growing")


def grown() -> str:
    """Is there once the server has grown."""
    return "grown up"


@server.tool()
async def grow(context: Context) -> str:
    """Let there be one more tool."""
    server.add_tool(grown)
    await context.notify_tools_changed()
    return "growing"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
