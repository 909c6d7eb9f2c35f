"""A server on 127.0.0.1 that plays an OpenAI-compatible upstream, byte for byte.

    async with OpenAIPlayer([sse(delta(content="Hello"), finish("stop"))]) as player:
        ...  # point OPENAI_BASE_URL at player.base_url
        assert player.requests[0].body["stream"] is True

A script is a list of answers, given out in order (a request beyond its end gets a 500), or a function from the
request to its answer, such as :func:`sensible_model`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.players.player import Answer as Answer, Ending, PlayedRequest as PlayedRequest, Player

Script = Iterable[Answer] | Callable[[PlayedRequest], Answer]


def whole(value: object, status: int = 200, **headers: str) -> Answer:
    """Answer with one JSON document."""
    return body(json.dumps(value).encode(), status, **({"Content-Type": "application/json"} | headers))


def body(content: bytes, status: int = 200, **headers: str) -> Answer:
    """Answer with any bytes; ``Retry_After="1"`` is the header ``Retry-After``."""
    return Answer([content], status, {name.replace("_", "-"): value for name, value in headers.items()})


def sse(*chunks: object, done: bool = True, ending: Ending = "whole") -> Answer:
    """Answer with a stream: dicts become ``data:`` lines of JSON, bytes are sent as they are."""
    pieces = [one if isinstance(one, bytes) else event(one) for one in chunks]
    return Answer(pieces + [b"data: [DONE]\n\n"] * done, 200, {"Content-Type": "text/event-stream"}, ending)


def bytewise(answer: Answer) -> Answer:
    """The same answer, one byte at a time."""
    content = b"".join(answer.pieces)
    return Answer([content[at : at + 1] for at in range(len(content))], answer.status, answer.headers, answer.ending)


def event(value: object) -> bytes:
    """One server-sent event with a JSON value."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(choice: object = None, **fields: Any) -> dict[str, Any]:
    """A chunk of a stream with one choice, or with none."""
    choices = [] if choice is None else [choice]
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "played", "choices": choices, **fields}


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk whose delta has the given fields."""
    return chunk({"index": 0, "delta": fields, "finish_reason": finish_reason})


def finish(reason: str | None) -> dict[str, Any]:
    """A chunk with an empty delta and a finish reason."""
    return delta(reason)


def message(finish_reason: str | None = "stop", usage: object = None, **fields: Any) -> dict[str, Any]:
    """A whole chat completion whose message has the given fields."""
    choice = {"index": 0, "message": {"role": "assistant", **fields}, "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": "played", "choices": [choice], "usage": usage}


def sensible_model(arguments: Mapping[str, Any] | None = None) -> Callable[[PlayedRequest], Answer]:
    """Play a model with sense: ask for the first offered tool, then answer with a text that quotes its results.

    Without a tool it answers at once. It streams when asked to.
    """

    def answer(request: PlayedRequest) -> Answer:
        if not isinstance(request.body, dict) or not isinstance(request.body.get("messages"), list):
            return whole({"error": {"message": "no messages", "type": "invalid_request_error", "code": None}}, 400)
        fields = _sensible_turn(request.body, arguments or {})
        reason = "tool_calls" if "tool_calls" in fields else "stop"
        usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
        if not request.body.get("stream"):
            return whole(message(reason, usage, **fields))
        return sse(*_streamed(fields), finish(reason), chunk(usage=usage))

    return answer


def _sensible_turn(request: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    results = [one["content"] for one in _since_last_user(request["messages"]) if one["role"] == "tool"]
    tools = request.get("tools")
    if tools and not results:
        function = {"name": tools[0]["function"]["name"], "arguments": json.dumps(arguments)}
        return {"content": None, "tool_calls": [{"id": "call_played", "type": "function", "function": function}]}
    return {"content": f"The tools say: {' | '.join(results)}" if results else "No tool was needed."}


def _since_last_user(messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    last = max((place for place, one in enumerate(messages) if one["role"] == "user"), default=-1)
    return messages[last + 1 :]


def _streamed(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    if "tool_calls" in fields:
        call = fields["tool_calls"][0]
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        begin = {"index": 0, **call, "function": {"name": name, "arguments": ""}}
        rest = [{"index": 0, "function": {"arguments": arguments[at : at + 4]}} for at in range(0, len(arguments), 4)]
        return [delta(role="assistant", content=None, tool_calls=[one]) for one in (begin, *rest)]
    text = fields["content"]
    return [delta(role="assistant", content=text[at : at + 5]) for at in range(0, len(text), 5)]


class OpenAIPlayer(Player[PlayedRequest]):
    """The server; ``OPENAI_BASE_URL`` has to be its ``base_url``."""

    path = "/v1"
    request_type = PlayedRequest
