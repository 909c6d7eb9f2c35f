"""What happens during a call, as notifications of progress."""

from typing import Any

from pydantic_core import to_json

from app.api.mcp.rpc import Id
from app.chat.request import ChatEvent
from app.tool_calling.events import ToolCallFinished, ToolCallProgress, ToolCallStarted

__all__ = ["ProgressTold"]


class ProgressTold:
    """Writes the notifications of one request.

    A tool that was called tells how far it is; of a question it is told which tools run. A host may rely on it that
    the number grows each time: what does not grow is not told.

    Args:
        token: the client's own.
        of_one_tool: whether the request called a tool, and not ``ask``.
    """

    def __init__(self, token: Id, *, of_one_tool: bool) -> None:
        self._token = token
        self._of_one_tool = of_one_tool
        self._reached: float = -1

    def notification(self, event: ChatEvent) -> bytes:
        """The notification of an event; empty where there is none."""
        told = self._of_tool(event) if self._of_one_tool else self._of_question(event)
        if not told or told["progress"] <= self._reached:
            return b""
        self._reached = told["progress"]
        params = {"progressToken": self._token, **{key: each for key, each in told.items() if each is not None}}
        return to_json({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    def _of_tool(self, event: ChatEvent) -> dict[str, Any]:
        if not isinstance(event, ToolCallProgress):
            return {}
        return {"progress": event.done, "total": event.of, "message": event.text}

    def _of_question(self, event: ChatEvent) -> dict[str, Any]:
        """Nobody knows how many steps a question takes: they are counted."""
        match event:
            case ToolCallStarted():
                message = f"{event.call.name} runs"
            case ToolCallProgress():
                message = str(event)
            case ToolCallFinished():
                message = f"{event.call.name} has ended" + (f": {event.error_kind}" if event.error_kind else "")
            case _:
                return {}
        return {"progress": max(self._reached, 0) + 1, "message": message}
