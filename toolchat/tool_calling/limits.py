"""How many tool calls one question may cause."""

from dataclasses import dataclass, field, replace

from pydantic_core import to_json

from toolchat.messages import ToolCall
from toolchat.tool_calling.definition import ToolMetadata
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.events import parse_arguments

__all__ = ["CallCounter", "ToolCallLimits"]


@dataclass(frozen=True, slots=True)
class ToolCallLimits:
    """Bounds for one question; the first two are Spring AI 2.0.1's. A tool may have its own first and last."""

    per_tool: int = 40
    in_total: int = 150
    identical: int = 3
    """Calls of one tool with the same arguments."""

    def within(self, most: int | None) -> "ToolCallLimits":
        """The same limits where no more than so many calls are left in all; ``None`` changes nothing."""
        return self if most is None or most >= self.in_total else replace(self, in_total=max(most, 0))


@dataclass(slots=True)
class CallCounter:
    """Counts the calls of one question."""

    limits: ToolCallLimits
    _total: int = 0
    _by_tool: dict[str, list[ToolCall]] = field(default_factory=dict)

    def refusal(self, call: ToolCall, tool: ToolMetadata) -> ToolExecutionError | None:
        """Count a call; say why it must not run, if so. The tool's own limits take the place of the service's."""
        per_tool = tool.max_calls or self.limits.per_tool
        identical = tool.max_identical_calls or self.limits.identical
        earlier = self._by_tool.setdefault(call.name, [])
        self._total += 1
        if self._total > self.limits.in_total:
            return _refusal(f"this question has used up its {self.limits.in_total} tool calls")
        if len(earlier) >= per_tool:
            return _refusal(f"this question has used up its {per_tool} calls of this tool")
        repeated = len(earlier) >= identical and _times(call, earlier) >= identical
        earlier.append(call)
        return _refusal("this very call was made before in this question", kind="repeated-call") if repeated else None


def _times(call: ToolCall, earlier: list[ToolCall]) -> int:
    asked = _canonical(call)
    return sum(_canonical(each) == asked for each in earlier)


def _canonical(call: ToolCall) -> str:
    arguments = parse_arguments(call)
    if isinstance(arguments, dict):
        arguments = dict(sorted(arguments.items()))
    return to_json(arguments, inf_nan_mode="constants").decode()


def _refusal(message: str, kind: str = "limit") -> ToolExecutionError:
    return ToolExecutionError(message, kind=kind, hint="answer from the results that you have")
