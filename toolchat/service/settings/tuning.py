"""Values that no deployment needs to change, each with its reason."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """Values of the service that are no environment variables; a test passes others."""

    stream_keep_alive: float = 15
    """Seconds of silence after which an event stream sends a comment: proxies close a silent one after 30 to 60."""
    breaker_pause: float = 10
    """Seconds a circuit stays open before a trial request: short for a client that retries, long for an upstream."""
    tool_server_wait: float = 5
    """Seconds the start waits for MCP servers: most list their tools in two, and slower ones are added afterwards."""
    tool_list_refresh: float = 60
    """Seconds between two requests for an MCP server's list of tools, for servers that do not report changes."""
