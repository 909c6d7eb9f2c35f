"""A question of several steps, worked through with a todo list: written down, done step by step, and ticked off."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.messages import ToolCall, ToolResponse
from app.offline.following import question_in_context
from app.offline.phrases import listed, say
from app.offline.planning import Plan, PlannedCall, left_out
from app.offline.question import Question
from app.offline.talking import from_results
from app.offline.telling import Reader, is_failure
from app.offline.tools import KnownTool
from app.tool_calling.events import parsed_arguments

__all__ = ["TodoList", "list_parameter", "still_open"]

_MOST_STEPS = 20
_MOST_BATCHES = 7
"""Rounds of calls in which the steps are done. One that only writes the list comes before them and one behind: the
ten rounds that a question usually gets must not be used up, since the last one takes the tools away."""


def list_parameter(tool: KnownTool) -> str | None:
    """The parameter by which a tool takes a whole todo list: items with a text and a status."""
    lists = [each for each in tool.parameters if each.type == "array" and each.inner]
    return next((each.name for each in lists if {"text", "status"} <= {one.name for one in each.inner[0].inner}), None)


def still_open(calls: Sequence[ToolCall], chinese: bool) -> list[str]:
    """What the last list of this turn leaves open, for a plan that was cut off: its tools are not offered any more."""
    given = [parsed_arguments(each) for each in reversed(calls)]
    lists = [value for each in given if isinstance(each, dict) for value in each.values() if isinstance(value, list)]
    items = [each for each in next(iter(lists), []) if isinstance(each, dict) and {"text", "status"} <= each.keys()]
    texts = [str(each["text"]) for each in items if each["status"] != "completed"]
    return [say("still_open", chinese, names=listed(texts, chinese))] if texts else []


@dataclass(frozen=True, slots=True)
class _Step:
    text: str
    planned: Plan
    results: tuple[ToolResponse, ...]

    @property
    def is_open(self) -> bool:
        return len(self.results) < len(self.planned.calls)

    @property
    def is_done(self) -> bool:
        return bool(self.results) and not self.is_open and not any(map(is_failure, self.results))


class TodoList:
    """The steps of a question and how far they are, read from what this turn has brought so far."""

    def __init__(
        self, writer: KnownTool, question: Question, texts: list[str], plan: Callable[[Question], Plan]
    ) -> None:
        """Take the tool that writes a list, the steps as written, and how each is planned by itself."""
        self._writer, self._texts, self._chinese = writer, texts, question.chinese
        asked = [question_in_context(texts[:n]) for n in range(1, len(texts[:_MOST_STEPS]) + 1)]
        self._plans = [plan(replace(each, chinese=question.chinese)) for each in asked]

    def proceed(
        self, calls: Sequence[ToolCall], responses: Sequence[ToolResponse], tools: Sequence[KnownTool]
    ) -> tuple[PlannedCall, ...] | str:
        """What to call now, else what became of each step; results come in the order in which the steps ask."""
        updates = [each for each in responses if each.name == self._writer.name]
        results = iter([each for each in responses if each.name != self._writer.name])
        steps = []
        for text, planned in zip(self._texts, self._plans, strict=False):
            steps.append(_Step(text, planned, tuple(each for _, each in zip(planned.calls, results, strict=False))))
        written = [parsed_arguments(each) for each in calls if each.name == self._writer.name]
        if following := self._next_calls(steps, written, can_write=not any(map(is_failure, updates))):
            return following
        lines = [f"{number}. {self._told(each, calls, tools)}" for number, each in enumerate(steps, start=1)]
        lines += [Reader(self._chinese).told(each) for each in updates if is_failure(each)]
        return "\n".join([*lines, *left_out(self._texts[_MOST_STEPS:], _MOST_STEPS, self._chinese)])

    def _next_calls(self, steps: list[_Step], written: list[object], *, can_write: bool) -> tuple[PlannedCall, ...]:
        """First the list alone, then the next steps, with the list where it has changed."""
        current = next((each for each in steps if each.is_open), None)
        items = []
        for number, step in enumerate(steps, start=1):
            status = "completed" if step.is_done else "in_progress" if step is current else "pending"
            items.append({"id": str(number), "text": step.text, "status": status})
        wanted = {list_parameter(self._writer) or "": items}
        update = (PlannedCall(self._writer, wanted),) if can_write and written[-1:] != [wanted] else ()
        doable = sum(bool(each.planned.calls) for each in steps)
        batch = [each for each in steps if each.is_open][: -(-doable // _MOST_BATCHES)] if written else []
        return (*update, *(call for each in batch for call in each.planned.calls))

    def _told(self, step: _Step, calls: Sequence[ToolCall], tools: Sequence[KnownTool]) -> str:
        """What became of a step; without a result that it is still pending, and why."""
        text = say("no_step", self._chinese)
        if step.results or step.planned.incomplete:
            text = from_results(step.results, calls, step.planned, tools)
        state = "" if step.is_done else say("pending", self._chinese)
        colon = say("colon", self._chinese)
        return f"{step.text}{state}" + (f"{colon.rstrip()}\n{text}" if "\n" in text else f"{colon}{text}")
