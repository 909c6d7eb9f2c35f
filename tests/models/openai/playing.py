"""The OpenAI-compatible model and a server that plays the bytes of real ones."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from tests.models.responding import events_of, streamed_text
from tests.players.openai_player import Answer, OpenAIPlayer, Script, delta
from toolchat.http.client import OutboundHttp
from toolchat.messages import UserMessage
from toolchat.models.base import ChatResponse, ModelEvent, Prompt
from toolchat.models.openai.model import OpenAICompatibleChatModel
from toolchat.tool_calling.definition import ToolDefinition

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = ToolDefinition("get_weather", "Tells the weather", SCHEMA)
QUESTION = UserMessage("杭州天气怎么样？")
SECRET = "sk-canary-5f1d"
STREAMED = Prompt((QUESTION,), stream=True)
AT_ONCE = Prompt((QUESTION,))
CITY = '{"city": "杭州"}'
ONE_CALL = [("a", "get_weather", CITY)]
LIMIT = {"message": "Rate limit SECRET", "type": "requests", "code": "rate_limit_exceeded"}


@asynccontextmanager
async def played(
    script: Script, key: str | None = SECRET
) -> AsyncGenerator[tuple[OpenAICompatibleChatModel, OpenAIPlayer], None]:
    """A model at a server that plays the script; what hangs for a minute fails."""
    async with asyncio.timeout(60), aclosing(OutboundHttp()) as http, OpenAIPlayer(script) as player:
        yield model_at(player.base_url, http, key), player


def model_at(base_url: str, http: OutboundHttp, key: str | None = SECRET) -> OpenAICompatibleChatModel:
    return OpenAICompatibleChatModel(api_key=key, base_url=base_url, model="asked", http=http)


async def play(script: Script, prompt: Prompt = STREAMED) -> list[ModelEvent | ChatResponse]:
    async with played(script) as (model, _):
        return await events_of(model, prompt)


async def turn(answer: Answer, prompt: Prompt = STREAMED) -> ChatResponse:
    """Play one answer; what was streamed must be what the response says."""
    *events, last = await play([answer], prompt)
    assert isinstance(last, ChatResponse)
    if prompt.stream:
        assert streamed_text(events) == last.message.text
    return last


def calls_of(response: ChatResponse) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for call in response.message.tool_calls]


def tool_delta(index: int | None = 0, **fields: Any) -> dict[str, Any]:
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    call = fields | ({"function": function} if function else {}) | ({} if index is None else {"index": index})
    return delta(tool_calls=[call])
