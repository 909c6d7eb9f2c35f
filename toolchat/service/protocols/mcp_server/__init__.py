"""The MCP server: MCP hosts can call every tool of the service, and the tool ``ask``.

The official SDK speaks the protocol. It is imported by the first request to ``/mcp``, because it takes 30 MiB.
"""
