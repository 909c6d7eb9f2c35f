"""LangChain: ``create_agent`` per tool over one shared chat model."""

import os
from collections.abc import AsyncIterator

from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI

from benchmarks.services.peer import SYSTEM, Tool, serve
from benchmarks.services.tools import Tools


class _LangChain:
    def __init__(self, tools: Tools) -> None:
        model = ChatOpenAI(model="bench-model", base_url=f"{os.environ['BENCH_UPSTREAM']}/v1", api_key="bench")
        functions = {"time": tools.get_time, "weather": tools.get_weather}
        self._agents = {
            tool: create_agent(
                model, [StructuredTool.from_function(coroutine=each, parse_docstring=True)], system_prompt=SYSTEM
            )
            for tool, each in functions.items()
        }

    async def ask(self, query: str, tool: Tool) -> str:
        state = await self._agents[tool].ainvoke({"messages": [{"role": "user", "content": query}]})
        return str(state["messages"][-1].content)

    async def stream(self, query: str, tool: Tool) -> AsyncIterator[str]:
        question = {"messages": [{"role": "user", "content": query}]}
        async for message, about in self._agents[tool].astream(question, stream_mode="messages"):
            if about.get("langgraph_node") == "model" and message.content:
                yield str(message.content)


if __name__ == "__main__":
    serve(_LangChain)
