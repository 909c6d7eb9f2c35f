"""How many tool calls one question may cause."""

from dataclasses import dataclass, field

from pydantic_core import to_json

from app.messages import ToolCall
from app.tool_calling.errors import ToolExecutionError
from app.tool_calling.events import parsed_arguments

__all__ = ["CallCounter", "ToolCallLimits"]


@dataclass(frozen=True, slots=True)
class ToolCallLimits:
    """Bounds for one question; the first two are Spring AI 2.0.1's."""

    per_tool: int = 40
    in_total: int = 150
    identical: int = 3
    """Calls of one tool with the same arguments."""


@dataclass(slots=True)
class CallCounter:
    """Counts the calls of one question."""

    limits: ToolCallLimits
    _seen: dict[tuple[str, ...], int] = field(default_factory=dict)

    def refusal(self, call: ToolCall) -> ToolExecutionError | None:
        """Count a call; say why it must not run, if so."""
        identical = (call.name, _canonical(call))
        for key in ((), (call.name,), identical):
            self._seen[key] = self._seen.get(key, 0) + 1
        if self._seen[()] > self.limits.in_total:
            return _refusal(f"this question has used up its {self.limits.in_total} tool calls")
        if self._seen[(call.name,)] > self.limits.per_tool:
            return _refusal(f"this question has used up its {self.limits.per_tool} calls of this tool")
        if self._seen[identical] > self.limits.identical:
            return _refusal("this very call was made before in this question", kind="repeated-call")
        return None


def _canonical(call: ToolCall) -> str:
    arguments = parsed_arguments(call)
    if isinstance(arguments, dict):
        arguments = dict(sorted(arguments.items()))
    return to_json(arguments, inf_nan_mode="constants").decode()


def _refusal(message: str, kind: str = "limit") -> ToolExecutionError:
    return ToolExecutionError(message, kind=kind, hint="answer from the results that you have")
