"""The fake upstream and the load: real sockets, and the service itself between them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import httpx
import pytest
from pydantic_core import from_json, to_json

from benchmarks.fake_upstream import serve
from benchmarks.load import ask, fetch, question
from tests.serving import client_of, events_of, service

NUMBER = "ask-00000042"


@asynccontextmanager
async def upstream() -> AsyncGenerator[int, None]:
    """The fake upstream; gives its port."""
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(0, ready.set_result))
    try:
        yield await ready
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def toolchat(provider: str) -> AsyncGenerator[tuple[httpx.AsyncClient, int], None]:
    """The service with the fake as its model and weather; gives a client and the fake's port."""
    async with upstream() as port:
        base = f"http://127.0.0.1:{port}"
        model = {
            "openai": {"OPENAI_BASE_URL": f"{base}/v1"},
            "dashscope": {"DASHSCOPE_API_KEY": "bench", "DASHSCOPE_BASE_URL": f"{base}/api/v1"},
        }
        weather = {"WEATHER_BASE_URL": f"{base}/v1", "WEATHER_API_KEY": "bench"}
        async with service(**model[provider], **weather) as client:
            yield client, port


@pytest.mark.parametrize("tool", ["time", "weather"])
@pytest.mark.parametrize("provider", ["openai", "dashscope"])
async def test_the_service_understands_the_fake_in_every_form(provider: str, tool: str) -> None:
    # Function and method tools, whole and streamed: the answer carries its question's number and comes of a tool.
    async with toolchat(provider) as (client, _):
        for variant in ("chat-tool-function", "chat-tool-method"):
            url = f"/{tool}/{variant}?query=now%20{NUMBER}"
            whole = (await client.get(url, headers={"Accept": "application/json"})).json()
            stream = events_of((await client.get(url, headers={"Accept": "text/event-stream"})).text)
            texts = "".join(event.data["text"] for event in stream if event.name == "delta")
            assert whole["answer"] == texts == stream[-1].data["answer"]
            assert whole["answer"].startswith(NUMBER)
            assert [call["outcome"] for call in whole["tool_calls"] + stream[-1].data["tool_calls"]] == ["ok", "ok"]


async def test_no_cache_spares_the_service_an_upstream_call() -> None:
    # Each question is told another city, so that look-ups cost the same as a peer's without a cache.
    async with toolchat("openai") as (client, port):
        load = await ask(
            [client.base_url.port or 0], question("/weather/chat-tool-function"), connections=4, questions=20
        )
        counts = from_json((await fetch(port, "/control"))[1])
    assert (load.asked, load.wrong) == (20, 0)
    assert (counts["calls"], counts["answers"], counts["forecasts"], counts["refused"]) == (20, 20, 20, 0)


async def test_a_tool_result_that_the_tool_never_gave_is_refused() -> None:
    # A second turn must carry what the tool said.
    messages = [{"role": "user", "content": f"now {NUMBER}"}, {"role": "tool", "content": "I made this up"}]
    async with upstream() as port, client_of(f"http://127.0.0.1:{port}") as client:
        answer = await client.post("/v1/chat/completions", content=to_json({"messages": messages}))
        counts = from_json((await fetch(port, "/control"))[1])
    assert answer.status_code == 400
    assert counts["refused"] == 1
