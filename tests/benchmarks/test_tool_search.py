"""The benchmark of the tool search: its model plays both ways, and what it counts is what was sent."""

import asyncio

import pytest

from benchmarks.tool_search import answered, asking, definitions, serve
from toolchat.chat.advisors.tool_search import SEARCH_TOOL
from toolchat.http.client import OutboundHttp
from toolchat.service.composition.models import choose_chat_model
from toolchat.service.settings.service_settings import Settings
from toolchat.tool_calling.function_callback import FunctionToolCallback


@pytest.mark.parametrize("count", [10, 60])
async def test_both_variants_call_the_tool_and_the_search_sends_fewer_definitions(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**24) as server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
        http = OutboundHttp(connect_timeout=5, max_connections=2)
        try:
            model = choose_chat_model(Settings()).create(http)
            tools = [FunctionToolCallback.from_function(answered, definition=each) for each in definitions(count)]
            told, searched = [await asking(model, tools, above=above).call().response() for above in (0, 30)]
        finally:
            await http.aclose()
    assert [each.call.name for each in told.executions] == ["getWeatherForecast"]
    if count > 30:
        assert [each.call.name for each in searched.executions] == [SEARCH_TOOL, "getWeatherForecast"]
        assert searched.usage.input_tokens < told.usage.input_tokens / 5
    else:
        assert searched.usage == told.usage
