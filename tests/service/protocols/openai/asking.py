"""Requests in OpenAI's format to a service with a played model, and the chunks of its streams."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
from pydantic_core import from_json

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.serving import service
from toolchat.service.settings.service_settings import Tuning

COMPLETIONS = "/v1/chat/completions"
RESPONSES = "/v1/responses"
ROLL = {
    "type": "function",
    "function": {
        "name": "roll",
        "description": "Roll a die",
        "parameters": {"type": "object", "properties": {"sides": {"type": "integer"}}},
    },
}
"""A tool of the client."""


@asynccontextmanager
async def played(
    script: Sequence[Answer] | Callable[[PlayedRequest], Answer],
    *parts: str | Tuning,
    **variables: str,
) -> AsyncGenerator[tuple[httpx.AsyncClient, OpenAIPlayer], None]:
    """A service with a model that responds according to a script."""
    async with (
        OpenAIPlayer(script) as player,
        service(*parts, OPENAI_BASE_URL=player.base_url, MODEL_MAX_ATTEMPTS="1", **variables) as client,
    ):
        yield client, player


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def call(name: str, arguments: str = "{}", identifier: str = "call_1") -> dict[str, Any]:
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(identifier: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identifier, "content": text}


def asks(*calls: dict[str, Any], **fields: Any) -> Answer:
    """A response of the played model with tool calls."""
    return whole(message("tool_calls", content=fields.pop("content", None), tool_calls=list(calls), **fields))


def says(text: str, **fields: Any) -> Answer:
    return whole(message(content=text, **fields))


async def ask(client: httpx.AsyncClient, given: object, **fields: Any) -> dict[str, Any]:
    """Request a response; it must succeed."""
    answer = await client.post(RESPONSES, json={"model": "toolchat", "input": given, **fields})
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def output_of(call_id: str, text: str = "4") -> dict[str, str]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


async def completion(client: httpx.AsyncClient, *messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Request a completion; it must succeed."""
    headers = fields.pop("headers", {})
    body = {"model": "toolchat", "messages": messages or [user("?")], **fields}
    answer = await client.post(COMPLETIONS, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def streamed(client: httpx.AsyncClient, *messages: dict[str, Any], **fields: Any) -> httpx.Response:
    headers = fields.pop("headers", {})
    body = {"model": "toolchat", "messages": messages or [user("?")], "stream": True, **fields}
    return await client.post(COMPLETIONS, json=body, headers=headers)


def chunks_of(text: str) -> list[Any]:
    """The JSON of every data line; ``[DONE]`` as itself."""
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line and not line.startswith(":")]
    return [line if line == "[DONE]" else from_json(line) for line in lines]


def events_of(text: str) -> list[dict[str, Any]]:
    """The events of a stream of Responses, each named like its type."""
    pairs = [each.split("\n") for each in text.split("\n\n") if each.startswith("event: ")]
    events: list[dict[str, Any]] = [from_json(data.removeprefix("data: ")) for _, data in pairs]
    assert [name.removeprefix("event: ") for name, _ in pairs] == [each["type"] for each in events]
    return events


def error_of(answer: httpx.Response) -> tuple[int, str, str | None]:
    """Status, code and param of an error in OpenAI's format."""
    (name,) = answer.json()
    assert name == "error"
    error = answer.json()["error"]
    assert list(error) == ["message", "type", "param", "code"]
    return answer.status_code, error["code"], error["param"]
