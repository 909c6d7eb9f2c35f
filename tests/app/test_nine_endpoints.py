"""The nine endpoints with every provider, in every form."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest
import uvicorn

from tests.application import create_sandbox
from tests.players.dashscope_player import DashScopePlayer, sensible_model as sensible_dashscope
from tests.players.openai_player import OpenAIPlayer, sensible_model as sensible_openai
from tests.serving import events_of, running, service
from toolchat.service.api.schemas import ChatAnswer

ARGUMENTS: dict[str, dict[str, Any]] = {
    "/time": {"timeZoneId": "Asia/Shanghai"},
    "/weather": {"city": "北京", "days": 2},
    "/translate": {"q": "你好，世界。", "from": "zh", "to": "en"},
}
FACTS = {"/time": r"\d{2}:\d{2}", "/weather": r"Beijing|北京", "/translate": "Hello, world"}
TOOLS = {
    "/time": ("getCityTimeFunction", "getCityTimeMethod"),
    "/weather": ("getWeatherFunction", "getWeatherServiceMethod"),
    "/translate": ("baiduTranslateFunction", "baiduTranslateMethod"),
}


@asynccontextmanager
async def asked(provider: str, path: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    """The service with a provider's player, or offline, and the tools' upstreams played by the sandbox."""
    sandbox = uvicorn.Server(uvicorn.Config(create_sandbox(), log_config=None, lifespan="off"))
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(running(sandbox))
        environment = {"SANDBOX_URL": url, "BAIDU_TRANSLATE_REQUESTS_PER_SECOND": "100"}
        if provider == "dashscope":
            dashscope = await stack.enter_async_context(DashScopePlayer(sensible_dashscope(ARGUMENTS[path])))
            environment |= {"DASHSCOPE_API_KEY": "sk-test", "DASHSCOPE_BASE_URL": dashscope.base_url}
        elif provider == "openai_compatible":
            openai = await stack.enter_async_context(OpenAIPlayer(sensible_openai(ARGUMENTS[path])))
            environment |= {"OPENAI_BASE_URL": openai.base_url}
        yield await stack.enter_async_context(service(**environment))


@pytest.mark.parametrize("path", list(ARGUMENTS))
@pytest.mark.parametrize("provider", ["offline", "dashscope", "openai_compatible"])
async def test_every_variant_answers_in_every_form(provider: str, path: str) -> None:
    async with asked(provider, path) as client:
        for number, variant in enumerate(("chat", "chat-tool-function", "chat-tool-method")):
            url = f"{path}/{variant}"
            text = await client.get(url)
            whole = await client.get(url, headers={"Accept": "application/json"})
            stream = await client.get(url, headers={"Accept": "text/event-stream"})
            assert [text.status_code, whole.status_code, stream.status_code] == [200, 200, 200]
            answer = ChatAnswer.model_validate(whole.json())
            done = ChatAnswer.model_validate(events_of(stream.text)[-1].data)
            assert answer.model.provider == provider
            names = [call.name for call in answer.tool_calls]
            assert names == [call.name for call in done.tool_calls] == ([TOOLS[path][number - 1]] if number else [])
            assert all(call.outcome == "ok" for call in answer.tool_calls)
            for each in (text.text, answer.answer, done.answer):
                assert bool(re.search(FACTS[path], each)) is bool(number), each
            marked = bool(number) and path != "/time"
            assert ("x-sandbox" in text.headers) is ("x-sandbox" in stream.headers) is marked
            assert ("Sandbox data" in text.text) is ("Sandbox data" in done.answer) is marked


@pytest.mark.parametrize("provider", ["offline", "dashscope", "openai_compatible"])
async def test_a_hundred_questions_at_once_are_all_answered(provider: str) -> None:
    async with asked(provider, "/time") as client:
        answers = await asyncio.gather(*(client.get("/time/chat-tool-function") for _ in range(100)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.headers["x-request-id"] for answer in answers}) == 100
