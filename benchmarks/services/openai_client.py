"""The official client with a hand-written loop."""

from collections.abc import AsyncIterator
from typing import Any

from openai import AsyncOpenAI
from pydantic_core import from_json

from benchmarks.services.peer import SYSTEM, Tool, openai_client, serve
from benchmarks.services.tools import TIME_SCHEMA, WEATHER_SCHEMA, Tools

_SCHEMAS = {"time": ("get_time", TIME_SCHEMA), "weather": ("get_weather", WEATHER_SCHEMA)}


class _OpenAIClient:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._client: AsyncOpenAI = openai_client()

    async def ask(self, query: str, tool: Tool) -> str:
        request = _request(query, tool)
        while True:
            completion = await self._client.chat.completions.create(**request)
            message = completion.choices[0].message
            if not message.tool_calls:
                return message.content or ""
            calls = [each.model_dump() for each in message.tool_calls]
            await self._run(request["messages"], calls)

    async def stream(self, query: str, tool: Tool) -> AsyncIterator[str]:
        request = _request(query, tool)
        while True:
            calls: list[dict[str, Any]] = []
            async for chunk in await self._client.chat.completions.create(**request, stream=True):
                for choice in chunk.choices:
                    _add_calls(calls, choice.delta.tool_calls or ())
                    if choice.delta.content:
                        yield choice.delta.content
            if not calls:
                return
            await self._run(request["messages"], calls)

    async def _run(self, messages: list[dict[str, Any]], calls: list[dict[str, Any]]) -> None:
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        for call in calls:
            function = call["function"]
            result = await getattr(self._tools, function["name"])(**from_json(function["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def _request(query: str, tool: Tool) -> dict[str, Any]:
    name, schema = _SCHEMAS[tool]
    function = {"name": name, "description": getattr(Tools, name).__doc__, "parameters": schema}
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": query}]
    return {"model": "bench-model", "messages": messages, "tools": [{"type": "function", "function": function}]}


def _add_calls(calls: list[dict[str, Any]], fragments: Any) -> None:
    for fragment in fragments:
        if fragment.id:
            function = {"name": fragment.function.name, "arguments": fragment.function.arguments or ""}
            calls.append({"id": fragment.id, "type": "function", "function": function})
        else:
            calls[-1]["function"]["arguments"] += fragment.function.arguments or ""


if __name__ == "__main__":
    serve(_OpenAIClient)
