"""The Model Context Protocol: every tool of the service, and the tool ``ask``, for MCP hosts.

Two lanes share one dispatch. Requests of 2026-07-28 carry their version and the client's capabilities themselves, and
need no session. Clients of 2025-11-25 and 2025-06-18 begin with ``initialize`` and are given no session id: nothing of
what is said there is needed later, so that any replica answers the next request.
"""

from app.api.guard import ProtocolAdapter
from app.protocols.mcp_server.routes import add_mcp

__all__ = ["MCP"]

MCP = ProtocolAdapter("/mcp", add_mcp)
