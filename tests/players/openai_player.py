"""A server on 127.0.0.1 that plays an OpenAI-compatible upstream, byte for byte.

    async with OpenAIPlayer([sse(delta(content="Hello"), finish("stop"))]) as player:
        ...  # point OPENAI_BASE_URL at player.base_url
        assert player.requests[0].body["stream"] is True

A script is a list of answers, given out in order (a request beyond its end gets a 500), or a function from the
request to its answer, such as :func:`sensible_model`.
"""

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

__all__ = [
    "Answer",
    "OpenAIPlayer",
    "PlayedRequest",
    "body",
    "bytewise",
    "chunk",
    "delta",
    "event",
    "finish",
    "message",
    "sensible_model",
    "sse",
    "whole",
]

Ending = Literal["whole", "close", "cut", "reset", "hang"]


@dataclass(frozen=True, slots=True)
class PlayedRequest:
    """A request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Any
    """The parsed JSON body, ``None`` without one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the player sends for one request."""

    pieces: Sequence[bytes] = ()
    """The body; each piece is a chunk of HTTP and a write of its own."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: Ending = "whole"
    """After the pieces: ``whole`` ends the body in order and keeps the connection, ``close`` sends it without any
    framing and ends it by closing, ``cut`` closes inside the body, ``reset`` does so with a TCP reset, ``hang`` stays
    silent until the client leaves."""


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


class OpenAIPlayer:
    """The server; an asynchronous context manager."""

    def __init__(self, script: Script = ()) -> None:
        self.connections = 0
        """Connections accepted so far."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.follow(script)

    def follow(self, script: Script) -> None:
        """Answer by another script from now on, and forget what was requested."""
        self.requests: list[PlayedRequest] = []
        self.asked = asyncio.Event()
        """Set when a request has arrived."""
        self.aborted = asyncio.Event()
        """Set when a client left in the middle of an answer."""
        self._script = script if callable(script) else None
        self._answers = iter(() if callable(script) else script)

    @property
    def base_url(self) -> str:
        """What ``OPENAI_BASE_URL`` has to be."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # left, or stopped: of a cancelled task asyncio's own callback would complain
        finally:
            writer.transport.abort()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = await _read_request(reader)
        self.requests.append(request)
        self.asked.set()
        answer = self._script(request) if self._script else next(self._answers, body(b"no answer left", 500))
        try:
            await self._send(answer, reader, writer)
        except ConnectionError:
            self.aborted.set()
            raise
        if answer.ending == "hang" and await reader.read(1) == b"":
            self.aborted.set()
        if answer.ending in ("close", "cut"):
            writer.close()
            await writer.wait_closed()
        if answer.ending == "reset":
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return answer.ending == "whole"

    async def _send(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        framed = answer.ending != "close"
        framing = "Transfer-Encoding: chunked" if framed else "Connection: close"
        lines = [f"{name}: {value}" for name, value in answer.headers.items()]
        head = "\r\n".join([f"HTTP/1.1 {answer.status} Played", framing, *lines])
        writer.write(f"{head}\r\n\r\n".encode())
        for piece in answer.pieces:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if framed and piece else piece)
            await writer.drain()
            await asyncio.sleep(0)  # lets the client read this piece alone
            if reader.at_eof():
                raise ConnectionResetError
        if answer.ending == "whole":
            writer.write(b"0\r\n\r\n")
        await writer.drain()


async def _read_request(reader: asyncio.StreamReader) -> PlayedRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    content = await reader.readexactly(int(headers.get("content-length", "0")))
    return PlayedRequest(method, path, headers, json.loads(content) if content else None)
