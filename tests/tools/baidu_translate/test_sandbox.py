"""The translation tool and the sandbox that stands in for Baidu."""

from collections.abc import AsyncGenerator

import pytest
from pydantic_core import from_json

from app.sandbox import create_sandbox
from app.tools.baidu_translate.client import BaiduTranslateClient, sign
from tests.serving import serving
from tests.tools.baidu_translate.baidu_player import client_of, played, settings, tools
from toolchat.tool_calling.context import ToolContext


@pytest.fixture(scope="module")
async def sandbox() -> AsyncGenerator[str, None]:
    """The address of a sandbox; no test asks for an answer of which it remembers something."""
    async with serving(create_sandbox()) as url:
        yield url


@pytest.fixture
async def client(sandbox: str) -> AsyncGenerator[BaiduTranslateClient, None]:
    async with client_of(settings(SANDBOX_URL=sandbox)) as client:
        yield client


async def test_in_the_sandbox_no_real_key_is_sent() -> None:
    async with played() as (_, player), client_of(settings(SANDBOX_URL=player.url)) as client:
        await client.translate("你好", "auto", "en")
    (arrival,) = player.arrivals
    assert arrival.head.startswith("POST /translate/baidu/api/trans/vip/translate HTTP/1.1")
    assert arrival.form["appid"] == "sandbox"
    assert arrival.form["sign"] == sign("sandbox", "你好", arrival.form["salt"], "sandbox")


async def test_the_sandbox_answers_both_tools_from_its_phrase_book(client: BaiduTranslateClient) -> None:
    question = '{"q":"你好，世界。\\n\\n谢谢！","from":"auto","to":"en"}'
    results = [await tool.call(question, ToolContext()) for tool in tools(client)]
    assert [from_json(each) for each in results] == [
        {"from": "zh", "to": "en", "text": "Hello, world.\n\nThank you!"}
    ] * 2


async def test_requests_to_the_sandbox_are_not_rate_limited(sandbox: str) -> None:
    # It has no plan; at one request per second and no waiting, the second of two questions would be refused.
    async with client_of(settings(SANDBOX_URL=sandbox, max_wait=0)) as client:
        for text in ("谢谢", "你好", "再见"):
            await client.translate(text, "zh", "en")
