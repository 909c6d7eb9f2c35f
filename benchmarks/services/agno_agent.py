"""Agno: an agent per tool over one shared client, telemetry off."""

from collections.abc import AsyncIterator

from agno.agent import Agent
from agno.models.openai.like import OpenAILike

from benchmarks.services.peer import SYSTEM, Tool, openai_client, serve
from benchmarks.services.tools import Tools


class _Agno:
    def __init__(self, tools: Tools) -> None:
        model = OpenAILike(id="bench-model", async_client=openai_client())
        functions = {"time": tools.get_time, "weather": tools.get_weather}
        self._agents = {
            tool: Agent(model=model, instructions=SYSTEM, tools=[each], telemetry=False)
            for tool, each in functions.items()
        }

    async def ask(self, query: str, tool: Tool) -> str:
        answer = await self._agents[tool].arun(query)
        return str(answer.content)

    async def stream(self, query: str, tool: Tool) -> AsyncIterator[str]:
        async for event in self._agents[tool].arun(query, stream=True):
            if event.event == "RunContent" and event.content:
                yield str(event.content)


if __name__ == "__main__":
    serve(_Agno)
