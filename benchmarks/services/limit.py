"""The limit: a bare ASGI application, one pooled aiohttp session, a hand-written loop, and nothing else."""

import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

import aiohttp
import uvicorn
from pydantic_core import from_json, to_json

from benchmarks.services.tools import TIME_SCHEMA, WEATHER_SCHEMA, Tools

_Message = MutableMapping[str, Any]
_TEXT = [(b"content-type", b"text/plain; charset=utf-8")]
_EVENTS = [(b"content-type", b"text/event-stream; charset=utf-8")]
_DEFINITIONS = {
    "time": ("get_time", "Get the time of a specified city.", TIME_SCHEMA),
    "weather": ("get_weather", "Use api.weather to get weather information.", WEATHER_SCHEMA),
}


class Limit:
    """The application."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._session: aiohttp.ClientSession | None = None
        self._tools: Tools | None = None

    async def __call__(
        self,
        scope: _Message,
        receive: Callable[[], Awaitable[_Message]],
        send: Callable[[_Message], Awaitable[None]],
    ) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            return
        _, tool, route = scope["path"].split("/")
        tool = tool if route != "chat" else ""
        query = parse_qs(scope["query_string"].decode())["query"][0]
        if (b"accept", b"text/event-stream") not in scope["headers"]:
            text = "".join([each async for each in self._answer(query, tool, stream=False)]).encode()
            headers = [*_TEXT, (b"content-length", b"%d" % len(text))]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": text})
            return
        await send({"type": "http.response.start", "status": 200, "headers": _EVENTS})
        async for each in self._answer(query, tool, stream=True):
            await send({"type": "http.response.body", "body": b"data: %b\n\n" % to_json(each), "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _answer(self, query: str, tool: str, *, stream: bool) -> AsyncGenerator[str, None]:
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "Answer in the language of the question."},
            {"role": "user", "content": query},
        ]
        body: dict[str, Any] = {"model": "bench-model", "messages": messages}
        if tool:
            name, description, schema = _DEFINITIONS[tool]
            function = {"name": name, "description": description, "parameters": schema}
            body["tools"] = [{"type": "function", "function": function}]
        while True:
            calls: list[dict[str, Any]] = []
            async for delta in self._deltas(body, stream=stream):
                _add_calls(calls, delta.get("tool_calls") or ())
                if text := delta.get("content"):
                    yield text
            if not calls:
                return
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            for call in calls:
                result = await self._run(call["function"]["name"], from_json(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    async def _deltas(self, body: dict[str, Any], *, stream: bool) -> AsyncGenerator[dict[str, Any], None]:
        async with self._opened().post(
            f"{self._upstream}/v1/chat/completions",
            data=to_json(body | {"stream": True} if stream else body),
            headers={"Content-Type": "application/json", "Authorization": "Bearer bench"},
        ) as response:
            if not stream:
                yield from_json(await response.read())["choices"][0]["message"]
                return
            async for line in response.content:
                if line.startswith(b"data: {"):
                    for choice in from_json(line[6:])["choices"]:
                        yield choice["delta"]

    async def _run(self, name: str, arguments: dict[str, Any]) -> str:
        tools = self._tools = self._tools or Tools(self._opened(), self._upstream)
        result: str = await getattr(tools, name)(**arguments)
        return result

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        return self._session


def _add_calls(calls: list[dict[str, Any]], fragments: Any) -> None:
    for fragment in fragments:
        if fragment.get("id"):
            calls.append(fragment)
        else:
            calls[-1]["function"]["arguments"] += fragment["function"]["arguments"]


if __name__ == "__main__":
    uvicorn.run(
        Limit(os.environ["BENCH_UPSTREAM"]),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        access_log=False,
        log_level="warning",
        backlog=2048,
        lifespan="off",
    )
