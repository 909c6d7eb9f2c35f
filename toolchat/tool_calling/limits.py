"""Limits of one chat request: rounds of tool calls, calls in total, calls of one tool, and identical calls."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

from toolchat.messages import ToolCall
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.definition import number_faults
from toolchat.tool_calling.errors import ToolDefinitionError, ToolExecutionError
from toolchat.tool_calling.events import parse_arguments


@dataclass(frozen=True, slots=True)
class ToolCallLimits:
    """Limits of one chat request.

    The defaults of ``per_tool`` and ``in_total`` are those of Spring AI 2.0.1. A tool's ``max_calls`` and
    ``max_identical_calls`` take the place of ``per_tool`` and ``identical``.
    """

    per_tool: int = 40
    in_total: int = 150
    identical: int = 3
    """Calls of one tool with the same arguments, however the model wrote them."""
    rounds: int = 10
    """Rounds of tool calls; after the last one the model has to answer without a call."""

    def __post_init__(self) -> None:
        for fault in number_faults(self, [(each.name, int, 0) for each in fields(self)]):
            raise ToolDefinitionError(fault)

    def within(self, most: int | None) -> "ToolCallLimits":
        """Copy with at most ``most`` calls in total; ``None`` changes nothing."""
        return self if most is None or most >= self.in_total else replace(self, in_total=max(most, 0))


@dataclass(slots=True)
class CallCounter:
    """Counts the calls of one chat request and refuses those beyond the limits."""

    limits: ToolCallLimits
    _total: int = 0
    _by_tool: dict[str, list[ToolCall]] = field(default_factory=dict)
    _arguments: dict[tuple[str, str], Any] = field(default_factory=dict)
    """The arguments of calls that were compared, by the tool's name and their text."""

    def count(self, call: ToolCall, tool: ToolCallback | None) -> ToolExecutionError | None:
        """Count a call, of ``None`` for an unknown tool; returns the error for the model if it must not run."""
        per_tool = (tool and tool.metadata.max_calls) or self.limits.per_tool
        identical = (tool and tool.metadata.max_identical_calls) or self.limits.identical
        earlier = self._by_tool.setdefault(call.name, [])
        self._total += 1
        if self._total > self.limits.in_total:
            return _refusal(f"this question has used up its {self.limits.in_total} tool calls")
        if len(earlier) >= per_tool:
            return _refusal(f"this question has used up its {per_tool} calls of this tool")
        # Arguments are compared only once there are enough calls, so that an ordinary request never pays for it.
        repeated = len(earlier) >= identical and self._number_of(call, earlier, tool) >= identical
        earlier.append(call)
        return _refusal("this very call was made before in this question", kind="repeated-call") if repeated else None

    def _number_of(self, call: ToolCall, earlier: list[ToolCall], tool: ToolCallback | None) -> int:
        """How many earlier calls have the same arguments."""
        arguments = self._read(call, tool)
        return sum([self._read(each, tool) == arguments for each in earlier])

    def _read(self, call: ToolCall, tool: ToolCallback | None) -> Any:
        key = call.name, call.arguments
        if key not in self._arguments:
            self._arguments[key] = parse_arguments(call) if tool is None else tool.read_arguments(call.arguments)
        return self._arguments[key]


def _refusal(message: str, kind: str = "limit") -> ToolExecutionError:
    return ToolExecutionError(message, kind=kind, hint="answer from the results that you have")
