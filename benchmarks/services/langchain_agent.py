"""LangChain: ``create_agent`` per tool over one shared chat model."""

import os
from collections.abc import AsyncIterator
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import before_model
from langchain_core.messages import RemoveMessage, trim_messages
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from benchmarks.services.peer import SYSTEM, Tool, serve
from benchmarks.services.tools import Tools

_WINDOW = 40
_SESSION = {"configurable": {"thread_id": "one"}}


@before_model
def _trim(state: Any, _: Any) -> dict[str, Any]:
    """The way of its documentation to keep a conversation short: the newest messages, from a question on."""
    kept = trim_messages(state["messages"], max_tokens=_WINDOW, token_counter=len, start_on="human")
    return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *kept]}


class _LangChain:
    def __init__(self, tools: Tools) -> None:
        model = ChatOpenAI(model="bench-model", base_url=f"{os.environ['BENCH_UPSTREAM']}/v1", api_key="bench")
        made = {
            name: [StructuredTool.from_function(coroutine=each, parse_docstring=True) for each in functions]
            for name, functions in tools.of_agents().items()
        }
        self._agents = {name: create_agent(model, each, system_prompt=SYSTEM) for name, each in made.items()}
        self._agents["session"] = create_agent(
            model, made["session"], system_prompt=SYSTEM, middleware=[_trim], checkpointer=InMemorySaver()
        )

    async def ask(self, query: str, tool: Tool) -> str:
        state = await self._agents[tool].ainvoke({"messages": [{"role": "user", "content": query}]}, _SESSION)
        return str(state["messages"][-1].content)

    async def stream(self, query: str, tool: Tool) -> AsyncIterator[str]:
        question = {"messages": [{"role": "user", "content": query}]}
        async for message, about in self._agents[tool].astream(question, stream_mode="messages"):
            if about.get("langgraph_node") == "model" and message.content:
                yield str(message.content)


if __name__ == "__main__":
    serve(_LangChain)
