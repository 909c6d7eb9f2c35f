"""A model to talk with, and what has to hold for every conversation that a model is given."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from tests.chat.played import USAGE, asks, clock, says, turns
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, Script, message, whole
from tests.service.observability.reading import figures_of

__all__ = [
    "EVENTS",
    "JSON",
    "GatedPlayer",
    "ask",
    "conversation",
    "faults",
    "history",
    "metric",
    "questions",
    "reply",
    "sociable",
]

JSON = {"Accept": "application/json"}
EVENTS = {"Accept": "text/event-stream"}
_ZONE = re.compile(r"\b[A-Z][a-z]+/[A-Z][a-z]+\b")
_REASONING = {"reasoning_content", "reasoning", "reasoning_details"}


def reply(question: str) -> str:
    """What :func:`sociable` answers to a question."""
    return f"I heard: {question}"


def sociable(request: PlayedRequest) -> Answer:
    """A model that looks at the clock of each zone that the question names, one a round, thinks, and answers."""
    messages = request.body["messages"]
    last = max(place for place, each in enumerate(messages) if each["role"] == "user")
    question, rounds = messages[last]["content"], sum(each["role"] == "assistant" for each in messages[last:])
    zones = _ZONE.findall(question)
    turn = asks(clock(zones[rounds]), text="Let me see.") if rounds < len(zones) else says(reply(question))
    if request.body.get("stream"):
        return turns(turn)(request)
    reason = "tool_calls" if "tool_calls" in turn else "stop"
    return whole(message(reason, USAGE, **turn, reasoning_content=f"Thinking about {question}"))


class GatedPlayer(OpenAIPlayer):
    """Holds its answers back while its gate is closed; it is open at first."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.gate = asyncio.Event()
        self.gate.set()

    async def _send(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.gate.wait()
        await super()._send(answer, reader, writer)


async def ask(client: httpx.AsyncClient, question: str, session: str = "s-1", **headers: str) -> httpx.Response:
    """Ask in a session; the answer comes as text unless the headers say otherwise."""
    return await client.get("/chat", params={"userInput": question, "sessionId": session}, headers=headers)


async def conversation(client: httpx.AsyncClient, session: str = "s-1") -> list[tuple[str, str]]:
    """The kept messages of a session as roles and texts; none when it is not known."""
    answer = await client.get(f"/chat/{session}")
    if answer.status_code == 404:
        return []
    assert answer.status_code == 200, answer.text
    return [(each["role"], each.get("text", "")) for each in answer.json()["messages"]]


async def metric(client: httpx.AsyncClient, name: str, **labels: str) -> float:
    """A figure of the service."""
    return (await figures_of(client))[f"toolchat_{name}", tuple(sorted(labels.items()))]


def history(request: PlayedRequest) -> list[Mapping[str, Any]]:
    """What a model was given of the turns before: all but the instructions and the running turn."""
    messages = request.body["messages"]
    last = max(place for place, each in enumerate(messages) if each["role"] == "user")
    return [each for each in messages[:last] if each["role"] != "system"]


def questions(request: PlayedRequest) -> list[str]:
    """The questions that a model was given, the running one last."""
    return [each["content"] for each in request.body["messages"] if each["role"] == "user"]


def faults(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why a strict provider would refuse a conversation; nothing when it would not."""
    found = [] if messages[0]["role"] == "system" else ["it does not begin with the instructions"]
    last = max(place for place, each in enumerate(messages) if each["role"] == "user")
    before, open_calls = "system", set[str]()
    for place, each in enumerate(messages[1:], start=1):
        role, calls = each["role"], {call["id"] for call in each.get("tool_calls", ())}
        if role == "tool":
            if each["tool_call_id"] not in open_calls:
                found.append(f"{place}: the result of no call")
            open_calls.discard(each["tool_call_id"])
        elif open_calls:
            found.append(f"{place}: calls without results before it")
        if role not in _MAY_FOLLOW[before]:
            found.append(f"{place}: {role} after {before}")
        if place < last and _REASONING & set(each):
            found.append(f"{place}: reasoning of a turn that is over")
        open_calls |= calls
        before = f"{role} with calls" if calls else role
    return found if before in ("user", "tool") else [*found, f"it ends with {before}"]


_MAY_FOLLOW = {
    "system": ("user",),
    "user": ("assistant",),
    "assistant": ("user",),
    "assistant with calls": ("tool",),
    "tool": ("tool", "assistant"),
}
