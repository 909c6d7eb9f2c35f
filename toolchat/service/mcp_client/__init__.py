"""The MCP client: offers the tools of other MCP servers, each server as a tool module."""
