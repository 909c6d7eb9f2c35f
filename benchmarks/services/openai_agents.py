"""OpenAI Agents SDK: an agent per tool over one shared client, tracing off."""

from collections.abc import AsyncIterator

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool

from benchmarks.services.peer import SYSTEM, Tool, openai_client, serve
from benchmarks.services.tools import Tools


class _OpenAIAgents:
    def __init__(self, tools: Tools) -> None:
        model = OpenAIChatCompletionsModel(model="bench-model", openai_client=openai_client())
        self._agents = {
            name: Agent(name=name, instructions=SYSTEM, model=model, tools=[function_tool(each) for each in functions])
            for name, functions in tools.of_agents().items()
        }

    async def ask(self, query: str, tool: Tool) -> str:
        result = await Runner.run(self._agents[tool], query)
        return str(result.final_output)

    async def stream(self, query: str, tool: Tool) -> AsyncIterator[str]:
        async for event in Runner.run_streamed(self._agents[tool], query).stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                yield event.data.delta


if __name__ == "__main__":
    serve(_OpenAIAgents)
