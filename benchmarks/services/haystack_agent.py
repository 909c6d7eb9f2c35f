"""Haystack: an ``Agent`` per tool; a stream is its callback's pieces through a queue."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool as HaystackTool
from haystack.utils import Secret

from benchmarks.services.peer import SYSTEM, Tool, serve
from benchmarks.services.tools import TIME_SCHEMA, WEATHER_SCHEMA, Tools


class _Haystack:
    def __init__(self, tools: Tools) -> None:
        self._agents = {
            "time": time_agent(tools),
            "weather": _agent("get_weather", tools.get_weather, WEATHER_SCHEMA),
        }

    async def ask(self, query: str, tool: Tool) -> str:
        result = await self._agents[tool].run_async([ChatMessage.from_user(query)])
        return str(result["messages"][-1].text)

    async def stream(self, query: str, tool: Tool) -> AsyncIterator[str]:
        pieces: asyncio.Queue[str | None] = asyncio.Queue()

        async def take(chunk: Any) -> None:
            if chunk.content and not chunk.tool_call_result:
                pieces.put_nowait(chunk.content)

        async def run() -> None:
            try:
                await self._agents[tool].run_async([ChatMessage.from_user(query)], streaming_callback=take)
            finally:
                pieces.put_nowait(None)

        task = asyncio.create_task(run())
        while (text := await pieces.get()) is not None:
            yield text
        await task


def time_agent(tools: Tools) -> Any:
    """The agent that has the time tool alone."""
    return _agent("get_time", tools.get_time, TIME_SCHEMA)


def _agent(name: str, function: Any, schema: dict[str, Any]) -> Any:
    model = OpenAIChatGenerator(
        api_key=Secret.from_token("bench"), model="bench-model", api_base_url=f"{os.environ['BENCH_UPSTREAM']}/v1"
    )
    tool = HaystackTool(name=name, description=function.__doc__, parameters=schema, async_function=function)
    return Agent(chat_generator=model, tools=[tool], system_prompt=SYSTEM)


if __name__ == "__main__":
    serve(_Haystack)
