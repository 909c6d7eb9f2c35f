"""LibreTranslate: what is sent, and the result of every answer."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from app.tools.baidu_translate.libretranslate import LibreTranslateClient
from tests.app.tools.baidu_translate.baidu_player import answer, player_of, reply, settings
from tests.app.tools.upstream import Player, limited
from tests.chat.played import JSON
from tests.serving import service
from toolchat.errors import UpstreamError
from toolchat.http.client import OutboundHttp
from toolchat.tool_calling.errors import ToolExecutionError

KEY = "5f2c7c1e-0b5a-4f6e-9d3f-1f7f0f0f0f0f"
ANSWER = answer(translatedText="Hello\n\nworld", detectedLanguage={"confidence": 92.0, "language": "zh-Hans"})


@asynccontextmanager
async def played(*answers: bytes, key: str = KEY, **limits: float) -> AsyncGenerator[tuple[Any, Player], None]:
    async with player_of(*answers) as player:
        http = OutboundHttp()
        chosen = settings(
            LIBRETRANSLATE_URL=player.url, TRANSLATE_PROVIDER="libretranslate", LIBRETRANSLATE_API_KEY=key
        )
        yield limited(LibreTranslateClient, **limits)(http, chosen), player
        await http.aclose()


async def error_of(raw: bytes, text: str = "你好") -> tuple[ToolExecutionError, Player]:
    async with played(raw) as (client, player):
        with pytest.raises(ToolExecutionError) as caught:
            await client.translate(text, "auto", "en")
    return caught.value, player


async def test_the_text_is_sent_as_it_is_with_the_servers_codes() -> None:
    async with played(ANSWER, ANSWER) as (client, player):
        detected = await client.translate("你好\n\n世界", "", "繁體中文")
        named = await client.translate("a+b & 100%", "English", "中文")
    first, second = (arrival.form for arrival in player.arrivals)
    assert player.arrivals[0].head.startswith("POST /translate/translate HTTP/1.1")
    assert first == {"q": "你好\n\n世界", "source": "auto", "target": "zt", "format": "text", "api_key": KEY}
    assert {"q": "a+b & 100%", "source": "en", "target": "zh"}.items() <= second.items()
    assert detected == {"from": "zh-Hans", "to": "zt", "text": "Hello\n\nworld"}
    assert named["from"] == "en"


@pytest.mark.parametrize(
    ("text", "status", "kind", "warned"),
    [
        ("Please contact the server operator to get an API key", "400 Bad Request", "provider-auth", True),
        ("Invalid API key", "403 Forbidden", "provider-auth", True),
        ("Invalid request: request (9001) exceeds text limit (5000)", "400 Bad Request", "too-long", False),
        ("fr is not supported", "400 Bad Request", "unsupported-language", False),
        ("French (fr) is not available as a target language from English (en)", "400 B", "unsupported-language", False),
        ("Invalid request: missing q parameter", "400 Bad Request", "unavailable", True),
        ("Slowdown: 30 per 1 minute", "429 Too Many Requests", "busy", False),
        ("Cannot translate text: CUDA", "500 Internal Server Error", "unavailable", False),
        ("not found", "404 Not Found", "unavailable", True),
        ("odd", "200 OK", "unavailable", True),
    ],
)
async def test_every_error_has_its_reaction_and_shows_neither_key_nor_text(
    text: str, status: str, kind: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    error, player = await error_of(reply(json.dumps({"error": text}).encode(), status))
    assert (error.kind, len(player.arrivals)) == (kind, 1)
    assert len([each for each in caplog.records if each.levelname == "WARNING"]) == warned
    assert not any(part in error.as_result() + caplog.text for part in (KEY, text, player.url))


@pytest.mark.parametrize(
    ("text", "kind"), [(" \n", "invalid-arguments"), ("x" * 10_001, "too-long"), ("字" * 10_001, "too-long")]
)
async def test_a_text_outside_the_limits_is_never_sent(text: str, kind: str) -> None:
    error, player = await error_of(ANSWER, text)
    assert (error.kind, player.arrivals) == (kind, [])


@pytest.mark.parametrize(
    "raw",
    [
        reply(b"<html>"),
        reply(b"[]"),
        answer(),
        answer(translatedText=None),
        answer(translatedText=["Hello"]),
        answer(translatedText=" "),
        b"hello\r\n\r\n",
    ],
)
async def test_an_invalid_response_is_an_upstream_error(raw: bytes) -> None:
    async with played(raw) as (client, _):
        with pytest.raises(UpstreamError):
            await client.translate("你好", "auto", "en")


async def test_a_request_to_a_silent_server_times_out() -> None:
    async with played(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{", timeout=0.1) as (client, _):
        with pytest.raises(UpstreamError, match=r"LibreTranslate did not answer within 0\.1 s"):
            await client.translate("你好", "auto", "en")


async def test_the_service_answers_by_the_provider_that_is_named() -> None:
    async with player_of(ANSWER) as player:
        chosen = {"TRANSLATE_PROVIDER": "libretranslate", "LIBRETRANSLATE_URL": player.url}
        async with service(**chosen) as http:
            response = (await http.get("/translate/chat-tool-method", headers=JSON)).json()
    assert [call["outcome"] for call in response["tool_calls"]] == ["ok"]
    assert "api_key" not in player.arrivals[0].form
