"""The MCP server: MCP hosts can call every tool of the service, and the tool ``ask``.

Two protocol lanes share one dispatch. Requests of 2026-07-28, the modern lane, carry their version and the client's
capabilities and need no session. Clients of 2025-11-25 and 2025-06-18, the legacy lane, begin with ``initialize`` and
get no session id: nothing of the handshake is needed later, so any replica can answer the next request.
"""

from app.api.guard import ProtocolAdapter
from app.protocols.mcp_server.routes import add_mcp

__all__ = ["MCP"]

MCP = ProtocolAdapter("/mcp", add_mcp)
