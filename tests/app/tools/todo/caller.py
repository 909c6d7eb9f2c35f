"""A model that keeps the list which it is told to keep, and a caller of one session who sees that list."""

from dataclasses import dataclass
from typing import Any

import httpx
from pydantic_core import to_json

from tests.chat.played import JSON, asks, says, turns
from tests.players.openai_player import Answer, PlayedRequest


def dutiful(request: PlayedRequest) -> Answer:
    """A model that hands the question to todoUpdate as its arguments and answers with the result."""
    last = request.body["messages"][-1]
    turn = asks(("todoUpdate", last["content"])) if last["role"] == "user" else says(last["content"])
    return turns(turn)(request)


@dataclass(frozen=True, slots=True)
class Caller:
    """Speaks with a service whose model is :func:`dutiful`, or any other, in one session."""

    client: httpx.AsyncClient
    session: str = "s-1"

    async def updated(self, **arguments: object) -> dict[str, Any]:
        """The record of a todoUpdate with these arguments."""
        params = {"query": to_json(arguments).decode(), "sessionId": self.session}
        answer = await self.client.get("/todo/chat", params=params, headers=JSON)
        assert answer.status_code == 200, answer.text
        record: dict[str, Any] = answer.json()["tool_calls"][0]
        return record

    async def shown(self) -> dict[str, Any]:
        """The list of the session as a client sees it."""
        answer = await self.client.get(f"/todo/{self.session}")
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "no-store"
        document: dict[str, Any] = answer.json()
        return document
