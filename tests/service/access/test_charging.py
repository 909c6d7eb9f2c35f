"""The tokens of a question are charged however it ends: at least those that the provider has counted."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.chat.played import JSON
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, chunk, delta, finish, message, sse, whole
from tests.service.access.principals import as_, principals
from tests.service.api.sessions.deciding import LIGHTS, approve
from tests.serving import service
from tests.waiting import until

LIMIT = 1_000_000
USAGE = {"prompt_tokens": 700, "completion_tokens": 300, "total_tokens": 1000}
Script = Callable[[PlayedRequest], Answer]


@asynccontextmanager
async def charged(tmp_path: Path, script: Script, **settings: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    keys = principals(tmp_path, alice=f"tokens_per_day = {LIMIT}")
    async with (
        OpenAIPlayer(script) as player,
        service(LIGHTS, OPENAI_BASE_URL=player.base_url, **keys, **settings) as client,
    ):
        yield client


async def spent(client: httpx.AsyncClient) -> int:
    """The tokens charged so far; running a tool costs none."""
    answer = await client.post("/tools/todoRead?sessionId=x", headers=as_("alice"))
    return LIMIT - int(re.findall(r'"day";r=(\d+)', answer.headers["ratelimit"])[0])


def calling(name: str, usage: dict[str, int] | None = None) -> Answer:
    function = {"name": name, "arguments": '{"on": true}' if name == "switchLight" else "{}"}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    return whole(message("tool_calls", usage or USAGE, content=None, tool_calls=calls))


def streaming(pieces: int, ending: Any = "hang") -> Script:
    return lambda _: sse(*[delta(content="x")] * pieces, ending=ending)


DOORS: dict[str, dict[str, Any]] = {
    "/chat/stream": {"json": {"query": "tell"}},
    "/time/chat-tool-function": {"json": {"query": "tell"}, "headers": {"Accept": "text/event-stream"}},
    "/v1/chat/completions": {
        "json": {"model": "toolchat", "stream": True, "messages": [{"role": "user", "content": "tell"}]}
    },
    "/ai-sdk/chat": {
        "json": {"id": "c", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "tell"}]}]}
    },
    "/ag-ui": {"json": {"threadId": "t", "runId": "r", "messages": [{"role": "user", "content": "tell"}]}},
}


@pytest.mark.parametrize("door", DOORS)
async def test_a_stream_that_its_client_leaves_is_charged_what_was_streamed(door: str, tmp_path: Path) -> None:
    async with charged(tmp_path, streaming(2000)) as client:
        fields = {**DOORS[door], "headers": as_("alice", **DOORS[door].get("headers", {}))}
        async with client.stream("POST", door, **fields) as answer:
            received = ""
            async for text in answer.aiter_text():
                received += text
                if received.count('"x"') >= 1000 or received.count("x") >= 4000:
                    break

        async def is_charged() -> bool:
            return await spent(client) >= 1000

        await until(is_charged)


async def test_a_stream_that_the_provider_cuts_is_charged_with_its_prompt(tmp_path: Path) -> None:
    async with charged(tmp_path, streaming(500, "cut")) as client:
        await client.get("/chat/stream", params={"query": "long " * 790}, headers=as_("alice"))
        assert 500 + 700 <= await spent(client) < 5000


async def test_a_loop_that_fails_is_charged_each_of_its_rounds(tmp_path: Path) -> None:
    def script(request: PlayedRequest) -> Answer:
        rounds = sum(each["role"] == "tool" for each in request.body["messages"])
        return calling("todoRead") if rounds < 3 else Answer(status=500)

    async with charged(tmp_path, script) as client:
        failed = await client.get("/chat", params={"query": "loop"}, headers=as_("alice"))
        assert failed.status_code in (502, 503)
        assert await spent(client) == 3000


async def test_a_turn_that_pauses_is_charged_when_it_pauses_and_once(tmp_path: Path) -> None:
    def script(request: PlayedRequest) -> Answer:
        is_done = any(each["role"] == "tool" for each in request.body["messages"])
        return whole(message("stop", USAGE, content="Done.")) if is_done else calling("switchLight")

    async with charged(tmp_path, script) as client:
        paused = await client.get("/light/attic", params={"query": "please"}, headers=as_("alice", **JSON))
        assert await spent(client) == 1000
        approval = paused.json()["approval"]
        done = await approve(client, f"/approvals/{approval['id']}", approval["calls"][0]["id"], **as_("alice"))
        assert done.status_code == 200
        assert await spent(client) == 2000


async def test_a_question_that_the_provider_refuses_is_not_charged(tmp_path: Path) -> None:
    async with charged(tmp_path, lambda _: Answer(status=401)) as client:
        assert (await client.get("/chat?query=hello", headers=as_("alice"))).status_code >= 500
        assert await spent(client) == 0


async def test_a_timeout_is_charged_its_prompt(tmp_path: Path) -> None:
    async with charged(tmp_path, lambda _: Answer(ending="hang"), REQUEST_TIMEOUT="0.5") as client:
        late = asyncio.create_task(client.get("/chat", params={"query": "long " * 700}, headers=as_("alice")))
        assert (await late).status_code == 504
        assert await spent(client) >= 700


async def test_without_reported_usage_the_whole_exchange_is_estimated(tmp_path: Path) -> None:
    answer = sse(delta(content="word " * 400), finish("stop"), chunk(usage=None))
    async with charged(tmp_path, lambda _: answer) as client:
        await client.get("/chat/stream", params={"query": "long " * 700}, headers=as_("alice"))
        assert 1100 <= await spent(client) < 5000
