"""Answers that wait for approval, as a client sees and decides them."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx

from tests.chat.played import JSON, USAGE, asks
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, Script, delta, finish, message, sse, whole
from tests.players.redis_server import RedisServer
from tests.serving import service

__all__ = ["LIGHTS", "approve", "careful", "lit", "replicas", "waiting"]

LIGHTS = "tests.service.api.sessions.lights"
"""The package with the folder ``light``."""


def careful(request: PlayedRequest) -> Answer:
    """A model that thinks, asks for its first tool as often as the question says please, and tells the results."""
    messages = request.body["messages"]
    last = max(place for place, each in enumerate(messages) if each["role"] == "user")
    results = [each["content"] for each in messages[last:] if each["role"] == "tool"]
    if len(results) == messages[last]["content"].count("please"):
        told = f"It is {' and '.join(results)}."
        return sse(delta(content=told), finish("stop")) if request.body.get("stream") else whole(message(content=told))
    name = next(each["function"]["name"] for each in request.body["tools"] if "Light" in each["function"]["name"])
    turn = asks((name, {"on": True}))
    if request.body.get("stream"):
        return sse(delta(tool_calls=[turn["tool_calls"][0] | {"index": 0}]), finish("tool_calls"))
    return whole(message("tool_calls", USAGE, **turn, reasoning_content="It is dark."))


@asynccontextmanager
async def lit(**variables: str) -> AsyncGenerator[tuple[httpx.AsyncClient, OpenAIPlayer], None]:
    """One service with lights, and its model."""
    async with OpenAIPlayer(careful) as player, service(LIGHTS, OPENAI_BASE_URL=player.base_url, **variables) as client:
        yield client, player


@asynccontextmanager
async def replicas(
    *folders: str, script: Script = careful, **variables: str
) -> AsyncGenerator[tuple[list[httpx.AsyncClient], OpenAIPlayer, RedisServer], None]:
    """A service with lights, and one with other folders, that share a Redis."""
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(RedisServer())
        player = await stack.enter_async_context(OpenAIPlayer(script))
        variables = {"REDIS_URL": redis.url, "OPENAI_BASE_URL": player.base_url, **variables}
        one = await stack.enter_async_context(service(LIGHTS, **variables))
        other = await stack.enter_async_context(service(*folders, **variables))
        yield [one, other], player, redis


async def waiting(client: httpx.AsyncClient, path: str = "/light/attic", **parameters: str) -> tuple[str, str]:
    """Ask what needs an approval; where it is decided, and the id of the call."""
    answer = (await client.get(path, params=parameters, headers=JSON)).json()
    assert answer["finish_reason"] == "approval_required"
    return f"/approvals/{answer['approval']['id']}", answer["approval"]["calls"][0]["id"]


async def approve(client: httpx.AsyncClient, place: str, call: str, **headers: str) -> httpx.Response:
    decisions: dict[str, Any] = {"decisions": {call: {"approved": True}}}
    return await client.post(place, json=decisions, headers=JSON | headers)
