"""A server that plays Baidu, byte for byte, and a client of the translation tool for it."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from app.tools.baidu_translate.client import BaiduTranslateClient
from app.tools.baidu_translate.tools import BaiduTranslateService, BaiduTranslateTools
from app.tools.baidu_translate.translator import BaiduTranslateSettings
from tests.app.tools.upstream import Player, limited, playing
from toolchat.http.client import OutboundHttp
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.function_callback import FunctionToolCallback, MethodToolCallbackProvider

APP_ID, SECRET_KEY = "2015063000000001", "12345678"
FAST = {"requests_per_second": 1000.0}
RESULT = {"src": "你好", "dst": "Hello"}


def reply(body: bytes, status: str = "200 OK", kind: str = "application/json") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def answer(**fields: Any) -> bytes:
    return reply(json.dumps(fields).encode())


def fault(code: object, **more: Any) -> bytes:
    return answer(error_code=code, error_msg="MESSAGE OF BAIDU", **more)


def translation(*lines: str) -> bytes:
    results = [{"src": line, "dst": f"<{line}>"} for line in lines]
    return answer(**{"from": "zh", "to": "en", "trans_result": results})


def settings(**values: Any) -> BaiduTranslateSettings:
    return BaiduTranslateSettings.model_validate({"app_id": APP_ID, "secret_key": SECRET_KEY, **FAST, **values})


@asynccontextmanager
async def client_of(chosen: BaiduTranslateSettings, **limits: float) -> AsyncGenerator[BaiduTranslateClient, None]:
    http = OutboundHttp()
    try:
        yield limited(BaiduTranslateClient, **limits)(http, chosen)
    finally:
        await http.aclose()


@asynccontextmanager
async def player_of(*answers: bytes) -> AsyncGenerator[Player, None]:
    """Play answers; after them, every line comes back in brackets."""
    left = list(answers)
    async with playing(
        lambda asked: left.pop(0) if left else translation(*asked.form["q"].split("\n")), "/translate"
    ) as player:
        yield player


@asynccontextmanager
async def played(*answers: bytes, **values: Any) -> AsyncGenerator[tuple[BaiduTranslateClient, Player], None]:
    async with player_of(*answers) as player:
        limits = {name: values.pop(name) for name in ("timeout", "max_wait") if name in values}
        async with client_of(settings(base_url=player.url, **values), **limits) as client:
            yield client, player


async def error_of(*answers: bytes, text: str = "你好", **values: Any) -> tuple[ToolExecutionError, int]:
    """The error that answers of Baidu lead to, and how many requests were sent."""
    async with played(*answers, **values) as (client, player):
        with pytest.raises(ToolExecutionError) as caught:
            await client.translate(text, "auto", "en")
        return caught.value, len(player.arrivals)


def tools(client: BaiduTranslateClient) -> list[ToolCallback]:
    service = FunctionToolCallback.from_function(BaiduTranslateService(client))
    return [service, *MethodToolCallbackProvider(BaiduTranslateTools(client)).tool_callbacks()]
