"""Tools of other servers that speak the Model Context Protocol, each server a folder of its own."""

from app.mcp_client.modules import McpServers, read_mcp_servers

__all__ = ["McpServers", "read_mcp_servers"]
