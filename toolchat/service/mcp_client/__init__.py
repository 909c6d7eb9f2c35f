"""The MCP client: offers the tools of other MCP servers, each server as a tool module."""

from toolchat.service.mcp_client.modules import McpServers, read_mcp_servers
