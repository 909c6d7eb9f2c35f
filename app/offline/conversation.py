"""Conversations: follow-up questions that refer to an earlier one, and plans that run step by step."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from app.offline import lexicon
from app.offline.days import days_after
from app.offline.entities import extract_entities
from app.offline.planning import Plan, PlannedCall, left_out, plan
from app.offline.question import Entity, Question, blank_out, concepts_in, is_chinese
from app.offline.replies import from_results
from app.offline.result_rendering import ResultRenderer, is_failure
from app.offline.templates import render
from app.offline.tool_profiles import ToolProfile
from toolchat.messages import ToolCall, ToolResponse
from toolchat.tool_calling.events import parse_arguments

__all__ = ["TodoList", "list_parameter", "parse_steps", "read_in_context"]

_LONGEST, _LONGEST_STEP = 300, 200
"""Characters of a follow-up, and of a step."""
_MOST_STEPS, _MOST_BATCHES = 20, 7
"""Steps, and rounds of calls in which they are done. One that only writes the list comes before them and one behind:
the ten rounds that a question usually gets must not be used up, since the last one takes the tools away."""


def parse_steps(question: Question) -> list[str]:
    """The steps of the plan that a question asks for, as written; none if it asks for no plan."""
    quoted = [match.span() for match in lexicon.QUOTED.finditer(question.flat)]
    flat, word = blank_out(question.flat, quoted), lexicon.PLAN.search(blank_out(question.command, quoted))
    start = None if lexicon.FORBIDDEN.match(flat) else _start_of_steps(flat, word)
    if start is None or lexicon.LIST_CHANGED.search(flat, 0, start):
        return []
    marks = ([match.span() for match in mark.finditer(flat, start)] for mark in lexicon.STEP_MARKS)
    cuts = next(filter(None, marks), [])
    steps = []
    for begin, end in zip([start, *(end for _, end in cuts)], [*(begin for begin, _ in cuts), len(flat)], strict=True):
        opening = lexicon.STEP_OPENING.match(question.flat, begin, end)
        text = " ".join(question.raw[opening.end() if opening else begin : end].split())
        steps.append(text.strip(" ,，.。;；")[:_LONGEST_STEP])
    steps = [each for each in steps if each]
    return steps if len(steps) > 1 or (steps and word and re.fullmatch(lexicon.LIST, word[0])) else []


def _start_of_steps(flat: str, word: re.Match[str] | None) -> int | None:
    """Behind the colon or at the number that follows the word for a plan; a plan may also begin with a number."""
    numbered = lexicon.STEP_MARKS[0].search(flat)
    if numbered and not flat[: numbered.start()].strip():
        return numbered.start()
    if word is None or lexicon.TRANSLATE.search(flat, 0, word.start()):
        return None
    separator, at_once = lexicon.SEPARATOR.search(flat, word.end()), lexicon.PLAN_AT_ONCE.match(flat)
    starts = [*([numbered.start()] if numbered else []), *([separator.end()] if separator else [])]
    return min((each for each in starts if each >= word.end()), default=at_once.end() if at_once else None)


def read_in_context(asked: Sequence[tuple[str, str]], about: Callable[[str], bool] = lambda _: True) -> list[Question]:
    """Parse the user messages; one that names only a place or the like continues an earlier question.

    Args:
        asked: The user messages of the conversation, oldest first, each with the answer before it.
        about: Whether a tool is about a concept: a follow-up continues a question that a tool could answer.
    """
    read: list[Question] = []
    for answer, text in asked:
        question = Question.of(text)
        answered = (one for one in reversed(read) if any(about(concept) for concept, _ in concepts_in(one.flat)))
        before = next(answered, None)
        question = _going_on(question, before) if before else question
        read.append(_with_what_it_points_at(question, read[-1] if read else None, answer))
    return read


def _with_what_it_points_at(question: Question, before: Question | None, answer: str) -> Question:
    """A request to translate "that" is about the answer before; after a translation, about what was translated."""
    asks = answer and lexicon.TRANSLATE.search(question.command) and lexicon.REFERRED.search(question.command)
    if not asks or extract_entities(question, "text"):
        return question
    if before and lexicon.TRANSLATE.search(before.command) and not lexicon.RESULT.search(question.command):
        return question.with_entities(text=_moved(before, "text"))
    return question.with_entities(text=[Entity("text", answer, 0, 0)])


def _going_on(question: Question, before: Question) -> Question:
    """A follow-up is the question before with what it names itself; one that asks for more lends only the place."""
    match = lexicon.FOLLOW_UP.fullmatch(question.flat) if len(question.flat) <= _LONGEST else None
    if match is None or lexicon.SMALL_TALK.fullmatch(question.flat):
        return question
    steps = parse_steps(before)
    # What follows a plan goes on with its last step, and is no other plan.
    before = Question.of(steps[-1]) if steps else before
    small_words = match["lead"] + match["tail"]
    rest = Question.of(question.raw[slice(*match.span("rest"))])
    if any(concepts_in(rest.command)):
        place = [] if extract_entities(rest, "place") else _moved(before, "place")
        points = small_words or lexicon.THERE.search(question.command)
        return question.with_entities(place=place) if points and place else question
    goes_on = _translation if lexicon.TRANSLATE.search(before.command) else _in_full
    new = goes_on(before, rest, bool(small_words))
    chinese = is_chinese(small_words, (), before.chinese)
    return replace(before, chinese=chinese).with_entities(**new) if new else question


def _moved(question: Question, role: str) -> list[Entity]:
    """Entities for another question, without a position in it."""
    return [replace(each, start=0, end=0) for each in extract_entities(question, role)]


def _names_only(question: Question, *roles: str) -> bool:
    """Whether a question names nothing but something of these roles."""
    spans = sorted(each.span for role in roles for each in extract_entities(question, role))
    return bool(spans) and lexicon.BETWEEN.fullmatch(blank_out(question.flat, spans)) is not None


def _in_full(before: Question, rest: Question, follows: bool) -> dict[str, list[Entity]]:
    """Another place or another day for the question before; other names count where small words say that it follows."""
    # What would count as a place if it stood beside one in a list.
    listed = Question.of(f"Paris and {rest.raw}" if rest.raw.isascii() else f"巴黎、{rest.raw}")
    beside = [each for each in _moved(listed, "place")[1:] if each.value.name == rest.raw]
    if follows and beside:
        return {"place": beside}
    if not _names_only(rest, "place", "day"):
        return {}
    new = {role: found for role in ("place", "day") if (found := _moved(rest, role))}
    if any(each.value.kind == "after" for each in new.get("day", ())):
        new["day"] = [Entity("day", days_after(extract_entities(before, "day")), 0, 0)]
    return new


def _translation(_: Question, rest: Question, follows: bool) -> dict[str, list[Entity]]:
    """Another language or another text for the translation before."""
    if _names_only(rest, "language"):
        return {"language": _moved(rest, "language")}
    is_text = follows and not lexicon.NO_NEW_TEXT.search(rest.flat)
    text = rest.payload or (rest.raw if is_text else None)
    return {"text": [Entity("text", text, 0, 0)]} if text else {}


def list_parameter(tool: ToolProfile) -> str | None:
    """The parameter that takes a whole todo list: items with a text and a status."""
    lists = [each for each in tool.parameters if each.type == "array" and each.inner]
    return next((each.name for each in lists if {"text", "status"} <= {one.name for one in each.inner[0].inner}), None)


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
    """The steps of a plan and their progress, derived from the calls and results of the turn."""

    def __init__(
        self, writer: ToolProfile, question: Question, texts: list[str], tools: tuple[ToolProfile, ...]
    ) -> None:
        """Take the tool that writes a list, the steps as written, and the tools that can do them."""
        self._writer, self._texts, self._chinese = writer, texts, question.chinese
        read = read_in_context([("", each) for each in texts[:_MOST_STEPS]])
        self._plans = [plan(replace(each, chinese=question.chinese), tools) for each in read]

    def proceed(
        self, calls: Sequence[ToolCall], responses: Sequence[ToolResponse], tools: Sequence[ToolProfile]
    ) -> tuple[PlannedCall, ...] | str:
        """The next calls, or the outcome of every step as the answer; results are in the order of the steps' calls."""
        failures = [each for each in responses if each.name == self._writer.name and is_failure(each)]
        results = (each for each in responses if each.name != self._writer.name)
        planned = zip(self._texts, self._plans, strict=False)
        steps = [_Step(text, each, tuple(islice(results, len(each.calls)))) for text, each in planned]
        written = [parse_arguments(each) for each in calls if each.name == self._writer.name]
        if following := self._next_calls(steps, written, can_write=not failures):
            return following
        lines = [f"{number}. {self._outcome(each, tools)}" for number, each in enumerate(steps, start=1)]
        lines += [ResultRenderer(self._chinese).render(each) for each in failures]
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

    def _outcome(self, step: _Step, tools: Sequence[ToolProfile]) -> str:
        """The outcome of a step; without a result, that it is pending and why."""
        text = render("no_step", self._chinese)
        if step.results or step.planned.incomplete:
            text = from_results(step.results, step.planned, tools)
        name = step.text if step.is_done else render("pending", self._chinese, step=step.text)
        return ResultRenderer(self._chinese).headed(name, text)
