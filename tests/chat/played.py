"""Turns of a model that :class:`OpenAIPlayer` plays, whole or as a stream, and questions that it is asked over HTTP."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import to_json

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, chunk, delta, finish, message, sse, whole
from tests.serving import service

JSON = {"Accept": "application/json"}
EVENTS = {"Accept": "text/event-stream"}

Turn = Mapping[str, Any]
USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}


def says(text: str) -> Turn:
    """A turn that answers."""
    return {"content": text}


def asks(*calls: tuple[str, object], text: str | None = None) -> Turn:
    """A turn that asks for tools; arguments are text as a model writes it, or a value to write as JSON."""
    functions = [
        {"name": name, "arguments": given if isinstance(given, str) else to_json(given).decode()}
        for name, given in calls
    ]
    return {
        "content": text,
        "tool_calls": [{"id": f"c{n}", "type": "function", "function": each} for n, each in enumerate(functions)],
    }


def update(*items: tuple[str, str]) -> tuple[str, object]:
    """A call of todoUpdate with texts and statuses."""
    listed = [{"id": str(n), "text": text, "status": status} for n, (text, status) in enumerate(items, start=1)]
    return "todoUpdate", {"items": listed}


def clock(zone: str) -> tuple[str, object]:
    """A call of the time tool."""
    return "getCityTimeFunction", {"timeZoneId": zone}


def turns(*given: Turn) -> Callable[[PlayedRequest], Answer]:
    """Play these turns in order; beyond the last one the model has nothing to say."""
    remaining = iter(given)

    def answer(request: PlayedRequest) -> Answer:
        fields = next(remaining, {"content": ""})
        reason = "tool_calls" if "tool_calls" in fields else "stop"
        if not request.body.get("stream"):
            return whole(message(reason, USAGE, **fields))
        text = fields["content"] or ""
        pieces = [delta(content=text[at : at + 5]) for at in range(0, len(text), 5)]
        pieces += [delta(tool_calls=[call | {"index": n}]) for n, call in enumerate(fields.get("tool_calls", ()))]
        return sse(*pieces, finish(reason), chunk(usage=USAGE))

    return answer


async def asked(
    *given: Turn, path: str = "/todo/chat", params: Mapping[str, str] | None = None, **environment: str
) -> tuple[dict[str, Any], list[PlayedRequest]]:
    """The document of the answer to one question, and what the model was given turn by turn."""
    async with OpenAIPlayer(turns(*given)) as player, service(OPENAI_BASE_URL=player.base_url, **environment) as client:
        answer = await client.get(path, params=params, headers=JSON)
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document, player.requests


def results(request: PlayedRequest) -> list[str]:
    """The tool results at the end of what a model was given, in order."""
    messages = request.body["messages"]
    last = max(place for place, each in enumerate(messages) if each["role"] != "tool")
    return [each["content"] for each in messages[last + 1 :]]
