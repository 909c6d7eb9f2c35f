"""DashScope's native provider and a local server that plays its bytes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from tests.players.dashscope_player import Answer, DashScopePlayer, Script
from toolchat.http.client import OutboundHttp
from toolchat.messages import Message, UserMessage
from toolchat.models.base import ChatOptions, Prompt
from toolchat.models.dashscope.model import DashScopeChatModel
from toolchat.tool_calling.definition import ToolDefinition

KEY = "sk-0123456789abcdef"


@asynccontextmanager
async def played(
    *script: Answer | Script, **settings: Any
) -> AsyncGenerator[tuple[DashScopeChatModel, DashScopePlayer], None]:
    """A model at a server that plays the script; what hangs for a minute fails."""
    async with asyncio.timeout(60), aclosing(OutboundHttp()) as http, DashScopePlayer(*script) as player:
        yield model_at(player.base_url, http, **settings), player


def model_at(base_url: str, http: OutboundHttp, **arguments: Any) -> DashScopeChatModel:
    return DashScopeChatModel(api_key=KEY, base_url=base_url, http=http, **arguments)


def asking(
    *messages: Message, stream: bool = False, tools: tuple[ToolDefinition, ...] = (), options: ChatOptions | None = None
) -> Prompt:
    return Prompt(messages or (UserMessage("杭州天气怎么样"),), tools, options or ChatOptions(), stream)


def failure(code: str, message: str = "SECRET-BODY") -> dict[str, str]:
    return {"code": code, "message": message, "request_id": "566e3621"}
