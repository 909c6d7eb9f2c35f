"""Limits of one chat request: rounds of tool calls, calls in total, calls of one tool, and identical calls."""

from dataclasses import dataclass, field, replace

from pydantic_core import to_json

from toolchat.messages import ToolCall
from toolchat.tool_calling.definition import ToolMetadata
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.events import parse_arguments

__all__ = ["CallCounter", "ToolCallLimits"]


@dataclass(frozen=True, slots=True)
class ToolCallLimits:
    """Limits of one chat request.

    The defaults of ``per_tool`` and ``in_total`` are those of Spring AI 2.0.1. A tool's ``max_calls`` and
    ``max_identical_calls`` take the place of ``per_tool`` and ``identical``.
    """

    per_tool: int = 40
    in_total: int = 150
    identical: int = 3
    """Calls of one tool with the same arguments."""
    rounds: int = 10
    """Rounds of tool calls; after the last one the model has to answer without tools."""

    def within(self, most: int | None) -> "ToolCallLimits":
        """Copy with at most ``most`` calls in total; ``None`` changes nothing."""
        return self if most is None or most >= self.in_total else replace(self, in_total=max(most, 0))


@dataclass(slots=True)
class CallCounter:
    """Counts the calls of one chat request and refuses those beyond the limits."""

    limits: ToolCallLimits
    _total: int = 0
    _by_tool: dict[str, list[ToolCall]] = field(default_factory=dict)

    def count(self, call: ToolCall, tool: ToolMetadata) -> ToolExecutionError | None:
        """Count a call; returns the error for the model if the call must not run."""
        per_tool = tool.max_calls or self.limits.per_tool
        identical = tool.max_identical_calls or self.limits.identical
        earlier = self._by_tool.setdefault(call.name, [])
        self._total += 1
        if self._total > self.limits.in_total:
            return _refusal(f"this question has used up its {self.limits.in_total} tool calls")
        if len(earlier) >= per_tool:
            return _refusal(f"this question has used up its {per_tool} calls of this tool")
        # Arguments are compared only once there are enough calls, so that an ordinary request never pays for it.
        repeated = len(earlier) >= identical and _number_of(call, earlier) >= identical
        earlier.append(call)
        return _refusal("this very call was made before in this question", kind="repeated-call") if repeated else None


def _number_of(call: ToolCall, earlier: list[ToolCall]) -> int:
    """How many earlier calls have the same arguments."""
    arguments = _canonical_arguments(call)
    return sum(_canonical_arguments(each) == arguments for each in earlier)


def _canonical_arguments(call: ToolCall) -> str:
    arguments = parse_arguments(call)
    if isinstance(arguments, dict):
        arguments = dict(sorted(arguments.items()))
    return to_json(arguments, inf_nan_mode="constants").decode()


def _refusal(message: str, kind: str = "limit") -> ToolExecutionError:
    return ToolExecutionError(message, kind=kind, hint="answer from the results that you have")
