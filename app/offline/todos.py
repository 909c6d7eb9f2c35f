"""A question of several steps, worked through with a todo list: written down, done step by step, and ticked off."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.messages import ToolCall, ToolResponse
from app.offline import lexicon
from app.offline.choosing import KnownTool
from app.offline.following import question_in_context
from app.offline.phrases import say
from app.offline.planning import Plan, PlannedCall, left_out, plan
from app.offline.question import QUOTED, Question, Span, blanked
from app.offline.talking import from_results
from app.offline.telling import Reader, is_failure, told
from app.tool_calling.events import parsed_arguments

__all__ = ["TodoList", "Toolbox", "steps_of"]

_MOST_STEPS = 20
_LONGEST_STEP = 200
_MOST_BATCHES = 7
"""Rounds of calls in which the steps are done. One that only writes the list comes before them and one behind: the
ten rounds that a question usually gets must not be used up, since the last one takes the tools away."""
_SEPARATOR = re.compile(r"(?<![0-9]):|\n")
# What steps are cut at: their numbers, else semicolons and lines, else commas.
_NUMBERED = re.compile(r"(?<![0-9A-Za-z./-])\(?(?:[0-9]{1,2}|[一二三四五六七八九十]{1,2})[.、):](?![0-9])")
_LISTED = (re.compile(r"[;\n]"), re.compile(r"[,。]|\.\s|\band then\b|\bthen\b|然后|接着"))


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools on offer; those of a todo list stand apart, so that only a question about a list can reach them."""

    others: tuple[KnownTool, ...]
    writer: KnownTool | None = None
    """Takes a whole list."""
    reader: KnownTool | None = None
    """Shows the list."""

    @classmethod
    def of(cls, tools: tuple[KnownTool, ...]) -> "Toolbox":
        """Sort the tools; nothing is set apart unless there is one that takes items with a text and a status."""
        about = [each for each in tools if "concept:todo" in each.name_concepts]
        writer = next((each for each in about if _list_parameter(each)), None)
        if writer is None:
            return cls(tools)
        reader = next((each for each in about if not each.parameters), None)
        return cls(tuple(each for each in tools if each is not writer and each is not reader), writer, reader)

    def plan(self, question: Question) -> Plan:
        """Plan the calls for a question without steps; the list is read when the question is about it."""
        command = question.command
        if self.reader is None or not lexicon.LIST_ASKED_FOR.search(command) or lexicon.FORBIDDEN.match(command):
            return plan(question, self.others)
        changed = lexicon.LIST_CHANGED.search(command)
        planned = Plan() if changed else plan(question, (*self.others, self.reader))
        if not planned.calls and not planned.incomplete:
            planned = Plan((PlannedCall(self.reader, {}),))
        said = (say("list_unchanged", question.chinese),) if changed else ()
        return replace(planned, remarks=(*planned.remarks, *said))


def steps_of(question: Question) -> list[str]:
    """The steps that a question asks to be planned, as written; none when it asks for no plan."""
    quoted = tuple(match.span() for match in QUOTED.finditer(question.flat))
    flat, word = blanked(question.flat, quoted), lexicon.PLAN.search(blanked(question.command, quoted))
    start = None if lexicon.FORBIDDEN.match(flat) else _start_of_steps(flat, word)
    if start is None or lexicon.LIST_CHANGED.search(flat, 0, start):
        return []
    steps = [step for begin, end in _pieces(flat, start) if (step := _step(question, begin, end))]
    return steps if len(steps) > 1 or (steps and word and re.fullmatch(lexicon.LIST, word[0])) else []


def _start_of_steps(flat: str, word: re.Match[str] | None) -> int | None:
    numbered = _NUMBERED.search(flat)
    if numbered and not flat[: numbered.start()].strip():
        return numbered.start()
    if word is None or lexicon.TRANSLATE_VERB.search(flat, 0, word.start()):
        return None
    separator, at_once = _SEPARATOR.search(flat, word.end()), lexicon.PLAN_AT_ONCE.match(flat)
    starts = [numbered.start()] if numbered else []
    starts += [separator.end()] if separator else []
    return min((each for each in starts if each >= word.end()), default=at_once.end() if at_once else None)


def _pieces(flat: str, start: int) -> Iterator[Span]:
    for mark in (_NUMBERED, *_LISTED):
        cuts = [match.span() for match in mark.finditer(flat, start)]
        if cuts:
            break
    yield from zip([start, *(end for _, end in cuts)], [*(begin for begin, _ in cuts), len(flat)], strict=True)


def _step(question: Question, start: int, end: int) -> str:
    opening = lexicon.STEP_OPENING.match(question.flat, start, end)
    text = " ".join(question.raw[opening.end() if opening else start : end].split())
    return text.strip(" ,，.。;；")[:_LONGEST_STEP]


def _list_parameter(tool: KnownTool) -> str | None:
    lists = (each for each in tool.parameters if each.type == "array")
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

    def told(self, calls: Sequence[ToolCall], tools: tuple[KnownTool, ...]) -> str:
        """What became of it; without a result that it is still pending, and why."""
        chinese = self.question.chinese
        text = say("no_step", chinese)
        if self.results or self.planned.incomplete:
            text = from_results(self.results, calls, self.question, self.planned, tools)
        state = "" if self.is_done else say("pending", chinese)
        gap = "\n" if "\n" in text else ""
        return f"{self.text}{state}{say('colon', chinese).rstrip() if gap else say('colon', chinese)}{gap}{text}"


@dataclass(frozen=True, slots=True)
class TodoList:
    """The steps of a question and how far they are, read from what this turn has brought so far."""

    writer: KnownTool
    tools: tuple[KnownTool, ...]
    calls: Sequence[ToolCall]
    """All calls of this turn, in order."""
    updates: Sequence[ToolResponse]
    """What the writer answered."""
    steps: Sequence[_Step]
    beyond: Sequence[str]
    """Steps that are too many."""
    chinese: bool

    @classmethod
    def of(
        cls,
        texts: list[str],
        writer: KnownTool,
        tools: tuple[KnownTool, ...],
        calls: Sequence[ToolCall],
        responses: Sequence[ToolResponse],
        *,
        chinese: bool,
    ) -> "TodoList":
        """Plan each step by itself, and give it its results: they come in the order in which the steps ask."""
        results = iter([each for each in responses if each.name != writer.definition.name])
        steps = []
        for place, text in enumerate(texts[:_MOST_STEPS], start=1):
            asked = replace(question_in_context(texts[:place]), chinese=chinese)
            planned = plan(asked, tools)
            own = tuple(result for _, result in zip(planned.calls, results, strict=False))
            steps.append(_Step(text, asked, planned, own))
        updates = [each for each in responses if each.name == writer.definition.name]
        return cls(writer, tools, calls, updates, steps, texts[_MOST_STEPS:], chinese)

    def next_calls(self) -> tuple[PlannedCall, ...]:
        """What to call now: first the list alone, then the next steps, with the list where it has changed."""
        wanted = {_list_parameter(self.writer) or "": self._items()}
        written = [parsed_arguments(each) for each in self.calls if each.name == self.writer.definition.name]
        is_kept = any(map(is_failure, self.updates)) or written[-1:] == [wanted]
        update = () if is_kept else (PlannedCall(self.writer, wanted),)
        doable = sum(bool(each.planned.calls) for each in self.steps)
        batch = [each for each in self.steps if each.is_open][: -(-doable // _MOST_BATCHES)] if written else []
        return (*update, *(call for each in batch for call in each.planned.calls))

    def answer(self) -> str:
        """What became of each step, and what could not be written down."""
        lines = [f"{n}. {each.told(self.calls, self.tools)}" for n, each in enumerate(self.steps, start=1)]
        lines += [told(each, Reader(self.chinese)) for each in self.updates if is_failure(each)]
        return "\n".join([*lines, *left_out(list(self.beyond), _MOST_STEPS, self.chinese)])

    def _items(self) -> list[dict[str, str]]:
        current = next((each for each in self.steps if each.is_open), None)
        statuses = (
            "completed" if each.is_done else "in_progress" if each is current else "pending" for each in self.steps
        )
        return [
            {"id": str(n), "text": step.text, "status": status}
            for n, (step, status) in enumerate(zip(self.steps, statuses, strict=True), start=1)
        ]
