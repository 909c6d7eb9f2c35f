"""The official SDK's MCP server with the time tool, without sessions and with JSON answers: its cheapest way."""

import os
import sys

import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from benchmarks.services.tools import Tools

HOSTS = TransportSecuritySettings(allowed_hosts=["127.0.0.1"])
server = MCPServer("bench", log_level="WARNING")
_tools = Tools(None, os.environ["BENCH_UPSTREAM"])  # type: ignore[arg-type] # the time needs no connection


@server.tool()
async def get_time(timeZoneId: str) -> str:
    """Get the time of a specified city."""
    return await _tools.get_time(timeZoneId)


@server.custom_route("/ready", ["GET"])
async def ready(_: Request) -> PlainTextResponse:
    """Say that questions can come."""
    return PlainTextResponse("ready")


if __name__ == "__main__":
    uvicorn.run(
        server.streamable_http_app(json_response=True, stateless_http=True, transport_security=HOSTS),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        access_log=False,
        log_level="warning",
        backlog=2048,
    )
