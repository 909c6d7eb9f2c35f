"""pydantic-ai: an agent per tool over one shared provider."""

from collections.abc import AsyncIterator

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.services.peer import SYSTEM, Tool, openai_client, serve
from benchmarks.services.tools import Tools


class _PydanticAI:
    def __init__(self, tools: Tools) -> None:
        model = OpenAIChatModel("bench-model", provider=OpenAIProvider(openai_client=openai_client()))
        self._agents = {
            name: Agent(model, system_prompt=SYSTEM, tools=functions) for name, functions in tools.of_agents().items()
        }

    async def ask(self, query: str, tool: Tool) -> str:
        result = await self._agents[tool].run(query)
        return str(result.output)

    async def stream(self, query: str, tool: Tool) -> AsyncIterator[str]:
        async with self._agents[tool].run_stream(query) as result:
            async for text in result.stream_text(delta=True, debounce_by=None):
                yield text


if __name__ == "__main__":
    serve(_PydanticAI)
