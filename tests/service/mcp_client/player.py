"""An MCP server over HTTP without the SDK: the legacy lane with session ids, and faults on request."""

from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

__all__ = ["McpPlayer", "Received"]


@dataclass(frozen=True)
class Received:
    """One message as it came."""

    method: str
    headers: dict[str, str]
    params: dict[str, Any]


@dataclass
class McpPlayer:
    """Has one tool, ``look``; what is set here holds from the next request on."""

    status: int = 200
    """The status of every response, unless it is 200."""
    names: deque[str] = field(default_factory=lambda: deque(["look"]))
    """The tools; each listing has them in another order."""
    is_endless: bool = False
    """Whether each page of its list leads to another one, with ten tools each."""
    is_circular: bool = False
    """Whether each page of its list leads to the second one."""
    refusal: Response = field(default_factory=lambda: Response(status_code=404))
    """The response to a request of a session that is not known."""
    forgets: bool = False
    """Whether it knows no session at all."""
    rejection: tuple[int, dict[str, Any]] | None = None
    """Status and error in place of the result of every call."""
    answer: Response | None = None
    """Takes the place of the next result of a call."""
    result: dict[str, Any] = field(default_factory=lambda: {"content": [{"type": "text", "text": "seen"}]})
    """The result of every call."""
    more: dict[str, Any] = field(default_factory=dict)
    """What the listing of its tools says besides."""
    received: list[Received] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    _numbers: "count[int]" = field(default_factory=count)

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[Route("/mcp", self._answer, methods=["POST", "DELETE"])])

    def methods(self) -> list[str]:
        return [each.method for each in self.received]

    def calls(self) -> list[Received]:
        return [each for each in self.received if each.method == "tools/call"]

    async def _answer(self, request: Request) -> Response:
        session = request.headers.get("mcp-session-id", "")
        if request.method == "DELETE":
            self.sessions.discard(session)
            return Response(status_code=204)
        message = await request.json()
        method, params = message["method"], message.get("params", {})
        self.received.append(Received(method, dict(request.headers), params))
        if self.status != 200:
            return Response("SECRET of the server", self.status)
        if method != "initialize" and method != "server/discover" and (self.forgets or session not in self.sessions):
            return self.refusal
        if "id" not in message:
            return Response(status_code=202)
        if method == "tools/call" and self.answer is not None:
            answer, self.answer = self.answer, None
            return answer
        if method == "tools/call" and self.rejection is not None:
            status, error = self.rejection
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error}, status)
        return self._result(message["id"], method, params)

    def _result(self, number: Any, method: str, params: dict[str, Any]) -> Response:
        headers: dict[str, str] = {}
        result: dict[str, Any]
        if method == "initialize":
            session = f"session-{next(self._numbers)}"
            self.sessions.add(session)
            headers["mcp-session-id"] = session
            about = {"name": "player", "version": "0"}
            result = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": about,
            }
        elif method == "tools/list":
            result = self._listed(params)
        elif method == "tools/call":
            result = self.result
        else:
            error = {"code": -32601, "message": "no such method"}
            return JSONResponse({"jsonrpc": "2.0", "id": number, "error": error})
        return JSONResponse({"jsonrpc": "2.0", "id": number, "result": result}, headers=headers)

    def _listed(self, params: dict[str, Any]) -> dict[str, Any]:
        page = int(params.get("cursor", 0))
        names = [f"look{page}-{number}" for number in range(10)] if self.is_endless else [*self.names]
        self.names.rotate()
        tools = [{"name": name, "inputSchema": {"type": "object"}, **self.more} for name in names]
        following = page + 1 if self.is_endless else 1 if self.is_circular else None
        return {"tools": tools, **({"nextCursor": str(following)} if following else {})}
