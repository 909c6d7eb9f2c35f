"""The tools on offer, and a question of several steps: written down in a todo list, done step by step, ticked off."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.messages import ToolCall, ToolResponse
from app.offline import lexicon
from app.offline.following import question_in_context
from app.offline.phrases import listed, say
from app.offline.planning import Plan, PlannedCall, left_out, plan
from app.offline.question import Question
from app.offline.talking import from_results
from app.offline.telling import Reader, is_failure
from app.offline.tools import KnownTool
from app.tool_calling.definition import ToolDefinition
from app.tool_calling.events import parsed_arguments

__all__ = ["Toolbox", "proceed", "still_open"]

_MOST_STEPS, _MOST_PLANS = 20, 64
_MOST_BATCHES = 7
"""Rounds of calls in which the steps are done. One that only writes the list comes before them and one behind: the
ten rounds that a question usually gets must not be used up, since the last one takes the tools away."""


@dataclass(frozen=True)
class Toolbox:
    """The tools on offer; those of a todo list stand apart, so that only a question about a list can reach them."""

    others: tuple[KnownTool, ...]
    writer: KnownTool | None = None
    """Takes a whole list."""
    reader: KnownTool | None = None
    """Shows the list."""
    plans: dict[tuple[Question, bool], Plan] = field(default_factory=dict, repr=False)
    """What was planned for the last questions: each is planned once, for the turn that calls and the one that tells."""

    @classmethod
    def of(cls, definitions: Sequence[ToolDefinition]) -> "Toolbox":
        """Sort the tools; nothing is set apart unless there is one that takes items with a text and a status."""
        tools = tuple(map(KnownTool, definitions))
        about = [each for each in tools if "concept:todo" in each.name_terms]
        writer = next((each for each in about if _list_parameter(each)), None)
        if writer is None:
            return cls(tools)
        reader = next((each for each in about if not each.parameters), None)
        return cls(tuple(each for each in tools if each is not writer and each is not reader), writer, reader)

    @property
    def all(self) -> tuple[KnownTool, ...]:
        """Every tool, the usual ones first."""
        return (*self.others, *filter(None, (self.reader, self.writer)))

    def plan(self, question: Question, *, is_step: bool = False) -> Plan:
        """Plan the calls for a question without steps, or for one step of a plan."""
        key = question, is_step
        if key not in self.plans:
            if len(self.plans) >= _MOST_PLANS:
                self.plans.clear()
            self.plans[key] = plan(question, self.others) if is_step else self._planned(question)
        return self.plans[key]

    def _planned(self, question: Question) -> Plan:
        """Plan with the list's tools where the question names them; the list is read when the question is about it."""
        command = question.command
        if any(each.is_named_in(question) for each in self.all[len(self.others) :]):
            return plan(question, self.all)
        if self.reader is None or not lexicon.LIST_ASKED_FOR.search(command) or lexicon.FORBIDDEN.match(command):
            return plan(question, self.others)
        changed = lexicon.LIST_CHANGED.search(command)
        planned = Plan() if changed else plan(question, (*self.others, self.reader))
        if not planned.calls and not planned.incomplete:
            planned = Plan((PlannedCall(self.reader, {}),))
        said = (say("list_unchanged", question.chinese),) if changed else ()
        return replace(planned, remarks=(*planned.remarks, *said))


@dataclass(frozen=True, slots=True)
class _Step:
    text: str
    question: Question
    planned: Plan
    results: tuple[ToolResponse, ...]

    @property
    def is_open(self) -> bool:
        return len(self.results) < len(self.planned.calls)

    @property
    def is_done(self) -> bool:
        return bool(self.results) and not self.is_open and not any(map(is_failure, self.results))


def proceed(
    tools: Toolbox, question: Question, texts: list[str], calls: Sequence[ToolCall], responses: Sequence[ToolResponse]
) -> tuple[PlannedCall, ...] | str:
    """What to call next for these steps, else what became of each; the calls and responses are those of this turn.

    Each step is planned by itself, and gets its results: they come in the order in which the steps ask.
    """
    writer = tools.writer.name if tools.writer else ""
    updates = [each for each in responses if each.name == writer]
    results = iter([each for each in responses if each.name != writer])
    steps: list[_Step] = []
    for place, text in enumerate(texts[:_MOST_STEPS], start=1):
        asked = replace(question_in_context(texts[:place]), chinese=question.chinese)
        planned = tools.plan(asked, is_step=True)
        steps.append(_Step(text, asked, planned, tuple(each for _, each in zip(planned.calls, results, strict=False))))
    written = [parsed_arguments(each) for each in calls if each.name == writer]
    can_write = not any(map(is_failure, updates))
    if following := _next_calls(tools, steps, written, can_write=can_write):
        return following
    lines = [f"{number}. {_told(each, calls, tools)}" for number, each in enumerate(steps, start=1)]
    lines += [Reader(question.chinese).told(each) for each in updates if is_failure(each)]
    return "\n".join([*lines, *left_out(texts[_MOST_STEPS:], _MOST_STEPS, question.chinese)])


def still_open(calls: Sequence[ToolCall], chinese: bool) -> list[str]:
    """What the last todo list of this turn leaves open, for a plan that was cut off: its tools are not offered any more."""
    for call in reversed(calls):
        arguments = parsed_arguments(call)
        lists = [each for each in arguments.values() if isinstance(each, list)] if isinstance(arguments, dict) else []
        items = [
            each for each in (lists[0] if lists else []) if isinstance(each, dict) and {"text", "status"} <= each.keys()
        ]
        if items:
            texts = [str(each["text"]) for each in items if each["status"] != "completed"]
            return [say("still_open", chinese, names=listed(texts, chinese))] if texts else []
    return []


def _next_calls(tools: Toolbox, steps: list[_Step], written: list[Any], *, can_write: bool) -> tuple[PlannedCall, ...]:
    """First the list alone, then the next steps, with the list where it has changed."""
    if tools.writer is None:
        return ()
    current = next((each for each in steps if each.is_open), None)
    items = []
    for number, step in enumerate(steps, start=1):
        status = "completed" if step.is_done else "in_progress" if step is current else "pending"
        items.append({"id": str(number), "text": step.text, "status": status})
    wanted = {_list_parameter(tools.writer) or "": items}
    update = (PlannedCall(tools.writer, wanted),) if can_write and written[-1:] != [wanted] else ()
    doable = sum(bool(each.planned.calls) for each in steps)
    batch = [each for each in steps if each.is_open][: -(-doable // _MOST_BATCHES)] if written else []
    return (*update, *(call for each in batch for call in each.planned.calls))


def _told(step: _Step, calls: Sequence[ToolCall], tools: Toolbox) -> str:
    """What became of a step; without a result that it is still pending, and why."""
    chinese = step.question.chinese
    text = say("no_step", chinese)
    if step.results or step.planned.incomplete:
        text = from_results(step.results, calls, step.question, step.planned, tools.others)
    state = "" if step.is_done else say("pending", chinese)
    colon = say("colon", chinese)
    return f"{step.text}{state}" + (f"{colon.rstrip()}\n{text}" if "\n" in text else f"{colon}{text}")


def _list_parameter(tool: KnownTool) -> str | None:
    lists = (each for each in tool.parameters if each.type == "array" and each.inner)
    return next((each.name for each in lists if {"text", "status"} <= {one.name for one in each.inner[0].inner}), None)
