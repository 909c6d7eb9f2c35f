"""A local server that plays DashScope's native chat endpoints, byte for byte.

Use it as an asynchronous context manager around a script::

    async with DashScopePlayer(calling("get_time", '{"zone": "UTC"}'), saying("It is noon.")) as player:
        ...  # talk to player.base_url
        player.requests[0].messages

A script is a row of :class:`Answer` (one per request, the last one repeats) or one function from a
:class:`Request` to an :class:`Answer`, such as what :func:`sensible_model` gives. The bytes follow the
official samples: no blank after ``data:``, the status in a comment, no ``[DONE]``, usage that grows.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.players.player import Answer as Answer, Ending, PlayedRequest, Player


class Request(PlayedRequest):
    """A request of the native protocol."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body["input"]["messages"]
        return messages

    @property
    def parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = self.body.get("parameters", {})
        return parameters

    @property
    def stream(self) -> bool:
        return self.headers.get("x-dashscope-sse") == "enable"


Script = Callable[[Request], Answer]


def json_answer(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Answer with a JSON body; bytes go out as they are."""
    payload = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    return Answer((payload,), status, {"Content-Type": "application/json", **(headers or {})})


def whole(message: Mapping[str, Any], finish_reason: str = "stop") -> dict[str, Any]:
    """Build the body of an answer that is not streamed."""
    choice = {"finish_reason": finish_reason, "message": {"role": "assistant", "content": "", **message}}
    usage = {"input_tokens": 22, "output_tokens": 17, "total_tokens": 39}
    return {"request_id": "902fee3b", "output": {"text": None, "choices": [choice]}, "usage": usage}


def event(data: object, number: int = 1, *, kind: str = "event:result", status: int = 200) -> bytes:
    """Write one server-sent event as DashScope does; text and bytes stand after ``data:`` as they are."""
    if not isinstance(data, bytes):
        data = (data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)).encode()
    return b"id:%d\n%s\n:HTTP_STATUS/%d\ndata:%s\n\n" % (number, kind.encode(), status, data)


def stream_of(*messages: Mapping[str, Any], finish_reason: str | None = "stop") -> tuple[bytes, ...]:
    """Write one event per delta; the last one carries the finish reason, ``None`` leaves it out."""
    return tuple(_deltas(messages, finish_reason))


def _deltas(messages: tuple[Mapping[str, Any], ...], finish_reason: str | None) -> Iterator[bytes]:
    for number, message in enumerate(messages, 1):
        last = number == len(messages) and finish_reason is not None
        choice = {
            "message": {"content": "", "role": "assistant", **message},
            "finish_reason": finish_reason if last else "null",
        }
        usage = {"total_tokens": 114 + 2 * number, "input_tokens": 114, "output_tokens": 2 * number}
        yield event({"output": {"choices": [choice]}, "usage": usage, "request_id": "71689cfc"}, number)


def sse_answer(*pieces: bytes, ending: Ending = "whole", status: int = 200) -> Answer:
    """Answer with an event stream made of the given bytes."""
    return Answer(pieces, status, {"Content-Type": "text/event-stream;charset=UTF-8"}, ending)


def saying(text: str) -> Script:
    """Answer with a text, in the form that the request asks for."""

    def answer(request: Request) -> Answer:
        if not request.stream:
            return json_answer(whole({"content": text}))
        middle = len(text) // 2
        return sse_answer(*stream_of({"content": text[:middle]}, {"content": text[middle:]}, {}))

    return answer


def calling(name: str, arguments: str, call_id: str = "call_ecc41296dccc47baa01567") -> Script:
    """Ask for one tool; streamed, the arguments come in two fragments as in the official sample."""

    def answer(request: Request) -> Answer:
        middle = len(arguments) // 2
        call = {"type": "function", "id": call_id, "function": {"name": name, "arguments": arguments}}
        if not request.stream:
            return json_answer(whole({"tool_calls": [call]}, "tool_calls"))
        first = call | {"function": {"name": name, "arguments": arguments[:middle]}}
        second = {"type": "function", "id": "", "function": {"arguments": arguments[middle:]}}
        deltas = stream_of({"tool_calls": [first]}, {"tool_calls": [second]}, finish_reason="tool_calls")
        return sse_answer(*deltas)

    return answer


def sensible_model(arguments: Mapping[str, Any] | None = None) -> Script:
    """Play a model: ask for the first offered tool once, then answer with what the tools gave.

    Args:
        arguments: what every call is given; none means ``{}``.
    """

    def answer(request: Request) -> Answer:
        users = [place for place, message in enumerate(request.messages) if message["role"] == "user"]
        results = [message["content"] for message in request.messages[users[-1] :] if message["role"] == "tool"]
        tools = request.parameters.get("tools") or []
        if tools and not results:
            return calling(tools[0]["function"]["name"], json.dumps(dict(arguments or {}), ensure_ascii=False))(request)
        return saying("The tool says: " + " ".join(results) if results else "I have no tool for that.")(request)

    return answer


class DashScopePlayer(Player[Request]):
    """The server; ``DASHSCOPE_BASE_URL`` has to be its ``base_url``."""

    path = "/api/v1"
    request_type = Request

    def __init__(self, *script: Answer | Script) -> None:
        def answer(request: Request) -> Answer:
            step = script[min(len(self.requests), len(script)) - 1]
            return step(request) if callable(step) else step

        super().__init__(answer)
