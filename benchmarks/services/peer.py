"""What every peer shares: FastAPI with one route per tool, in plain text or as server-sent events."""

import json
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

import aiohttp
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response, StreamingResponse

from benchmarks.services.tools import Tools

__all__ = ["SYSTEM", "Peer", "Tool", "openai_client", "serve"]

SYSTEM = "Answer in the language of the question."

Tool = str
"""``time`` or ``weather``."""


class Peer(Protocol):
    """A framework that answers questions with one tool."""

    async def ask(self, query: str, tool: Tool) -> str:
        """The whole answer."""
        ...

    def stream(self, query: str, tool: Tool) -> AsyncIterator[str]:
        """The answer's text as it comes."""
        ...


def openai_client() -> "object":
    """The official client as every framework gets it: one per process."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(base_url=f"{_upstream()}/v1", api_key="bench")


def serve(make: Callable[[Tools], Peer]) -> None:
    """Serve a peer on the port of the command line, for ever."""
    uvicorn.run(
        _app(make), host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning", backlog=2048
    )


def _app(make: Callable[[Tools], Peer]) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            app.state.peer = make(Tools(session, _upstream()))
            yield

    app = FastAPI(lifespan=lifespan)

    async def answer(request: Request, tool: Tool, query: str) -> Response:
        peer: Peer = request.app.state.peer
        if request.headers.get("accept") == "text/event-stream":
            return StreamingResponse(_events(peer.stream(query, tool)), media_type="text/event-stream")
        return PlainTextResponse(await peer.ask(query, tool))

    app.add_api_route("/{tool}/chat-tool-function", answer, response_class=PlainTextResponse)
    return app


async def _events(texts: AsyncIterator[str]) -> AsyncGenerator[str, None]:
    async for text in texts:
        yield f"data: {json.dumps(text)}\n\n"


def _upstream() -> str:
    return os.environ["BENCH_UPSTREAM"]
