"""Requests that run a tool without a model, and their responses."""

from typing import Any

import httpx

from tests.serving import Event, events_of

__all__ = ["EVENTS", "key", "problem", "streamed"]

EVENTS = {"Accept": "text/event-stream"}


def key(name: str) -> dict[str, str]:
    return {"Idempotency-Key": name}


def problem(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of a problem document."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["code"]


async def streamed(client: httpx.AsyncClient, path: str, arguments: Any = None, **headers: str) -> list[Event]:
    """The events of a run, without the line of the first one's id."""
    answer = await client.post(path, json=arguments or {}, headers=EVENTS | headers)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8", answer.text
    return events_of(answer.text)
