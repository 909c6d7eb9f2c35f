"""A question of several steps, worked through with a todo list: written down, done step by step, and ticked off."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.chat_models.offline.answers import from_results
from app.chat_models.offline.choosing import KnownTool
from app.chat_models.offline.following import question_in_context
from app.chat_models.offline.planning import Plan, PlannedCall, plan
from app.chat_models.offline.question import Question
from app.chat_models.offline.remarks import left_out, list_unchanged
from app.chat_models.offline.results import Reader, is_failure, told
from app.chat_models.offline.schemas import parameters_of
from app.chat_models.offline.steps import asks_for_the_list, changes_the_list
from app.messages import ToolCall, ToolResponse
from app.tool_calling.definition import ToolDefinition
from app.tool_calling.events import parsed_arguments

__all__ = ["TodoList", "Toolbox"]

_MOST_STEPS = 20
_MOST_BATCHES = 7
"""Rounds of calls in which the steps are done. One that only writes the list comes before them and one behind: the
ten rounds that a question usually gets must not be used up, since the last one takes the tools away."""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools on offer; those of a todo list stand apart, so that only a question about a list can reach them."""

    others: tuple[KnownTool, ...]
    writer: ToolDefinition | None = None
    """Takes a whole list."""
    reader: KnownTool | None = None
    """Shows the list."""

    @classmethod
    def of(cls, tools: tuple[KnownTool, ...]) -> "Toolbox":
        """Sort the tools; nothing is set apart unless there is one that takes items with a text and a status."""
        about = [each for each in tools if "concept:todo" in each.name_concepts]
        writer = next((each for each in about if _list_parameter(each.definition)), None)
        if writer is None:
            return cls(tools)
        reader = next((each for each in about if not list(parameters_of(each.definition.input_schema))), None)
        others = tuple(each for each in tools if each is not writer and each is not reader)
        return cls(others, writer.definition, reader)

    def plan(self, question: Question) -> Plan:
        """Plan the calls for a question without steps; the list is read when the question is about it."""
        if self.reader is None or not asks_for_the_list(question):
            return plan(question, self.others)
        planned = plan(question, (*self.others, self.reader))
        if not planned.calls and not planned.incomplete:
            planned = Plan((PlannedCall(self.reader.definition, {}),))
        said = list_unchanged(question.chinese) if changes_the_list(question) else ()
        return replace(planned, remarks=(*planned.remarks, *said))


def _list_parameter(tool: ToolDefinition) -> str | None:
    lists = (each for each in parameters_of(tool.input_schema) if each.type == "array")
    return next(
        (each.name for each in lists if {"text", "status"} <= {one.name for one in each.items.properties}), None
    )


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

    def told(self, calls: Sequence[ToolCall]) -> str:
        """What became of it; without a result that it is still pending, and why."""
        say = Reader(self.question.chinese).say
        text = say("没有适合这一步的工具。", "None of the tools can do this step.")
        if self.results or self.planned.incomplete:
            text = from_results(self.results, calls, self.question, self.planned)
        state = "" if self.is_done else say("（仍是待办）", " (still pending)")
        gap = "\n" if "\n" in text else say("", " ")
        return f"{self.text}{state}{say('：', ':')}{gap}{text}"


@dataclass(frozen=True, slots=True)
class TodoList:
    """The steps of a question and how far they are, read from what this turn has brought so far."""

    writer: ToolDefinition
    calls: Sequence[ToolCall]
    """All calls of this turn, in order."""
    updates: Sequence[ToolResponse]
    """What the writer answered."""
    steps: Sequence[_Step]

    @classmethod
    def of(
        cls,
        texts: list[str],
        writer: ToolDefinition,
        tools: tuple[KnownTool, ...],
        calls: Sequence[ToolCall],
        responses: Sequence[ToolResponse],
        *,
        chinese: bool,
    ) -> "TodoList":
        """Plan each step by itself, and give it its results: they come in the order in which the steps ask."""
        results = iter([each for each in responses if each.name != writer.name])
        steps = []
        for place in range(min(len(texts), _MOST_STEPS)):
            asked = replace(question_in_context(texts[: place + 1]), chinese=chinese)
            planned = plan(asked, tools)
            own = tuple(result for _, result in zip(planned.calls, results, strict=False))
            steps.append(_Step(texts[place], asked, planned, own))
        return cls(writer, calls, [each for each in responses if each.name == writer.name], steps)

    def next_calls(self) -> tuple[PlannedCall, ...]:
        """What to call now: first the list alone, then the next steps, with the list where it has changed."""
        wanted = {_list_parameter(self.writer) or "": self._items()}
        written = [parsed_arguments(each) for each in self.calls if each.name == self.writer.name]
        is_kept = any(map(is_failure, self.updates)) or written[-1:] == [wanted]
        update = () if is_kept else (PlannedCall(self.writer, wanted),)
        doable = sum(bool(each.planned.calls) for each in self.steps)
        batch = [each for each in self.steps if each.is_open][: -(-doable // _MOST_BATCHES)] if written else []
        return (*update, *(call for each in batch for call in each.planned.calls))

    def answer(self, texts: list[str], *, chinese: bool) -> str:
        """What became of each step, and what could not be written down."""
        lines = [f"{n}. {each.told(self.calls)}" for n, each in enumerate(self.steps, start=1)]
        lines += [told(each, Reader(chinese)) for each in self.updates if is_failure(each)]
        return "\n".join([*lines, *left_out(texts[_MOST_STEPS:], _MOST_STEPS, chinese)])

    def _items(self) -> list[dict[str, str]]:
        current = next((each for each in self.steps if each.is_open), None)
        statuses = (
            "completed" if each.is_done else "in_progress" if each is current else "pending" for each in self.steps
        )
        return [
            {"id": str(n), "text": step.text, "status": status}
            for n, (step, status) in enumerate(zip(self.steps, statuses, strict=True), start=1)
        ]
