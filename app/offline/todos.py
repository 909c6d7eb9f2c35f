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


class TodoList:
    """The steps of a question and how far they are, read from what this turn has brought so far."""

    def __init__(self, tools: Toolbox, question: Question, texts: list[str], calls: Sequence[ToolCall]) -> None:
        """Take the steps as written, and all calls of this turn, in order."""
        self._tools, self._texts, self._calls, self._chinese = tools, texts, calls, question.chinese
        self._writer = tools.writer.definition.name if tools.writer else ""
        self._updates: list[ToolResponse] = []
        self._steps: list[_Step] = []

    def proceed(self, responses: Sequence[ToolResponse]) -> tuple[PlannedCall, ...] | str:
        """What to call now, else what became of each step.

        Each step is planned by itself, and gets its results: they come in the order in which the steps ask.
        """
        self._updates = [each for each in responses if each.name == self._writer]
        results = iter([each for each in responses if each.name != self._writer])
        for place, text in enumerate(self._texts[:_MOST_STEPS], start=1):
            asked = replace(question_in_context(self._texts[:place]), chinese=self._chinese)
            planned = plan(asked, self._tools.others)
            own = tuple(result for _, result in zip(planned.calls, results, strict=False))
            self._steps.append(_Step(text, asked, planned, own))
        return self._next_calls() or self._answer()

    def _next_calls(self) -> tuple[PlannedCall, ...]:
        """First the list alone, then the next steps, with the list where it has changed."""
        if self._tools.writer is None:
            return ()
        wanted = {_list_parameter(self._tools.writer) or "": self._items()}
        written = [parsed_arguments(each) for each in self._calls if each.name == self._writer]
        is_kept = any(map(is_failure, self._updates)) or written[-1:] == [wanted]
        update = () if is_kept else (PlannedCall(self._tools.writer, wanted),)
        doable = sum(bool(each.planned.calls) for each in self._steps)
        batch = [each for each in self._steps if each.is_open][: -(-doable // _MOST_BATCHES)] if written else []
        return (*update, *(call for each in batch for call in each.planned.calls))

    def _items(self) -> list[dict[str, str]]:
        current = next((each for each in self._steps if each.is_open), None)
        items = []
        for number, step in enumerate(self._steps, start=1):
            status = "completed" if step.is_done else "in_progress" if step is current else "pending"
            items.append({"id": str(number), "text": step.text, "status": status})
        return items

    def _answer(self) -> str:
        """What became of each step, and what could not be written down."""
        lines = [f"{number}. {self._told(each)}" for number, each in enumerate(self._steps, start=1)]
        lines += [told(each, Reader(self._chinese)) for each in self._updates if is_failure(each)]
        return "\n".join([*lines, *left_out(self._texts[_MOST_STEPS:], _MOST_STEPS, self._chinese)])

    def _told(self, step: _Step) -> str:
        """What became of a step; without a result that it is still pending, and why."""
        text = say("no_step", self._chinese)
        if step.results or step.planned.incomplete:
            text = from_results(step.results, self._calls, step.question, step.planned, self._tools.others)
        state = "" if step.is_done else say("pending", self._chinese)
        colon = say("colon", self._chinese)
        return f"{step.text}{state}" + (f"{colon.rstrip()}\n{text}" if "\n" in text else f"{colon}{text}")
