"""What the service's tools do, as Open WebUI's page shows it above an answer."""

from typing import Any

from app.chat.request import ChatEvent
from app.tool_calling.events import ToolCallFinished, ToolCallProgress, ToolCallStarted

__all__ = ["OPEN_WEBUI", "ToolStatus"]

OPEN_WEBUI = "open-webui"
"""What ``X-Toolchat-Progress`` and ``OPENAI_API_PROGRESS`` ask for."""


class ToolStatus:
    """Words the status; it is done when no call runs any more."""

    def __init__(self) -> None:
        self._running: dict[str, str] = {}

    def told(self, event: ChatEvent) -> dict[str, Any] | None:
        """The page's event; ``None`` for what it is not told."""
        if isinstance(event, ToolCallStarted):
            self._running[event.call.id] = event.call.name[:64]
            return _status(f"Running {', '.join(self._running.values())} …", done=False)
        if isinstance(event, ToolCallProgress):
            return _status(str(event), done=False)
        if isinstance(event, ToolCallFinished):
            self._running.pop(event.call.id, None)
            outcome = "answered" if event.outcome == "ok" else f"failed ({event.error_kind})"
            described = f"{event.call.name[:64]} {outcome} in {event.duration_ms:.0f} ms"
            return _status(described, done=not self._running)
        return None


def _status(description: str, *, done: bool) -> dict[str, Any]:
    return {"type": "status", "data": {"description": description, "done": done}}
