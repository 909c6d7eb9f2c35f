"""Where the list of other servers is, and how they are looked after."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from app.settings import EnvironmentSettings

__all__ = ["McpServersSettings"]


class McpServersSettings(EnvironmentSettings):
    """Other servers whose tools are offered (MCP)."""

    model_config = SettingsConfigDict(env_prefix="MCP_SERVERS_")

    file: Path | None = Field(
        None, description="JSON file with mcpServers, as MCP hosts have it; none: no other server"
    )
    start_timeout: float = Field(
        5, ge=0, le=600, description="Seconds that the start waits for the servers; who is later joins later"
    )
    refresh_seconds: float = Field(
        60, ge=0.1, le=86_400, description="Seconds after which a server is asked again for its tools"
    )
