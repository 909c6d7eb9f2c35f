"""The service with a tool that needs the user's consent."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from tests.command_line import started, with_tools
from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.serving import client_of

__all__ = ["LIGHT", "guarded_service"]

LIGHT = '''"""A switch."""

from typing import Annotated

from toolchat.tool_calling.function_callback import tool
from toolchat import ToolModule


@tool(requires_approval=True)
async def switchLight(on: Annotated[bool, "Whether the light is to be on"]) -> str:
    """Switch the light."""
    return "on" if on else "off"


module = ToolModule(functions=(switchLight,), default_query="Switch the light on")
'''


@asynccontextmanager
async def guarded_service(
    tmp_path: Path, folders: Mapping[str, str] | None = None, /, **variables: str
) -> AsyncGenerator[httpx.AsyncClient, None]:
    """The service with a tool that needs approval, a model that asks for it once, and further tool folders."""
    light = with_tools(tmp_path, {"light": LIGHT, **(folders or {})}) | variables
    async with OpenAIPlayer(sensible_model({"on": True})) as player:
        with started(cwd=tmp_path, OPENAI_BASE_URL=player.base_url, **light) as (_, url):
            async with client_of(url) as client:
                yield client
