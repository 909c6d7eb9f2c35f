"""What is counted: of each answer, of each tool, of all."""

import statistics
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from app.cli.evaluation.questions import Entry

__all__ = ["Answer", "AskedQuestion", "Call", "Question", "Result", "Run", "ToolScore", "judged"]

Call = tuple[str, Any]
"""A tool's name, and its arguments: an object, or what the model wrote in its place."""


@dataclass(frozen=True, slots=True)
class Question:
    """An entry whose tools are here."""

    entry: Entry
    offered: list[str] | None
    """Names of tools; ``None`` for all."""
    expected: list[Call]
    results: Mapping[str, Any]
    """What tools answer instead of being run, by their own names."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model did with a question."""

    calls: list[Call]
    text: str
    tokens: int
    seconds: float
    error: str = ""
    """Why there is no answer."""


@dataclass(slots=True)
class ToolScore:
    """How one tool was called."""

    expected: int = 0
    chosen: int = 0
    """Expected calls for which the tool was called."""
    arguments: int = 0
    """Those of them whose arguments are right."""
    not_called: int = 0
    without_need: int = 0
    """Calls beyond the expected ones."""
    tokens: list[int] = field(default_factory=list)
    """Of each answer that expected or called the tool."""
    seconds: list[float] = field(default_factory=list)

    def add(self, other: "ToolScore") -> None:
        """Count another one as well."""
        for name in ("expected", "chosen", "arguments", "not_called", "without_need", "tokens", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def to_dict(self) -> dict[str, float]:
        """The figures for documents and tables."""
        return {
            "expected": self.expected,
            "chosen": self.chosen,
            "arguments": self.arguments,
            "not_called": self.not_called,
            "without_need": self.without_need,
            "tokens": round(statistics.fmean(self.tokens)),
            "seconds": round(statistics.median(self.seconds), 3),
        }


@dataclass(frozen=True, slots=True)
class Run:
    """A question that was asked once, judged."""

    answer: Answer
    tools: Mapping[str, ToolScore]
    faults: list[str]
    """What is wrong, a line each."""

    @property
    def is_right(self) -> bool:
        """Every expected call and no other, each with the right arguments, and the words as they should be."""
        return not self.faults


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question and all its runs."""

    question: Question
    runs: list[Run]


@dataclass(frozen=True)
class Result:
    """The whole evaluation."""

    provider: str
    model: str
    times: int
    questions: list[AskedQuestion]
    skipped: list[str]
    """Questions whose tools are not registered."""

    @cached_property
    def runs(self) -> list[Run]:
        """Every run of every question."""
        return [run for asked in self.questions for run in asked.runs]

    @property
    def asked(self) -> int:
        """How often anything was asked."""
        return len(self.runs)

    @property
    def right(self) -> int:
        """How many answers are right."""
        return sum(run.is_right for run in self.runs)

    @property
    def share(self) -> float:
        """How many of all, 0 to 1."""
        return self.right / self.asked if self.asked else 0

    @cached_property
    def tools(self) -> dict[str, ToolScore]:
        """The scores by tool, in the order of their names."""
        scores: dict[str, ToolScore] = {}
        for run in self.runs:
            for name, score in run.tools.items():
                scores.setdefault(name, ToolScore()).add(score)
        return dict(sorted(scores.items()))


def judged(question: Question, answer: Answer) -> Run:
    """Hold an answer against what its entry says."""
    names = dict.fromkeys(name for name, _ in (*question.expected, *answer.calls))
    faults = [answer.error] if answer.error else []
    tools: dict[str, ToolScore] = {}
    for name in names:
        expected, actual = (
            [given for called, given in calls if called == name] for calls in (question.expected, answer.calls)
        )
        missed, others = _unmatched(expected, actual)
        tools[name] = _score(expected, actual, missed, answer)
        faults += _faults(name, missed, others)
    entry = question.entry
    faults += [f"the answer lacks {word!r}" for word in entry.has if word not in answer.text and not answer.error]
    faults += [f"the answer has {word!r}" for word in entry.lacks if word in answer.text]
    return Run(answer, tools, faults)


def _score(expected: Sequence[Any], actual: Sequence[Any], missed: Sequence[Any], answer: Answer) -> ToolScore:
    chosen = min(len(expected), len(actual))
    return ToolScore(
        expected=len(expected),
        chosen=chosen,
        arguments=len(expected) - len(missed),
        not_called=len(expected) - chosen,
        without_need=len(actual) - chosen,
        tokens=[answer.tokens],
        seconds=[answer.seconds],
    )


def _unmatched(expected: Sequence[Any], actual: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The expected arguments that no call has, and those that were given instead; in whatever order."""
    missed, left = [], list(actual)
    for wanted in expected:
        found = next((place for place, given in enumerate(left) if _fits(wanted, given)), None)
        if found is None:
            missed.append(wanted)
        else:
            del left[found]
    return missed, left


def _faults(name: str, missed: Sequence[Any], others: Sequence[Any]) -> Iterator[str]:
    for place in range(max(len(missed), len(others))):
        if place >= len(others):
            yield f"not called: {name}({_shown(missed[place])})"
        elif place >= len(missed):
            yield f"without need: {name}({_shown(others[place])})"
        else:
            yield f"other arguments: {name}({_shown(others[place])}) instead of ({_shown(missed[place])})"


def _fits(wanted: Any, given: Any) -> bool:
    """Whether a value is the expected one; capitals, blanks, and 2 for "2" make no difference.

    ``{any: […]}`` is a choice.
    """
    if isinstance(wanted, dict):
        if wanted.keys() == {"any"}:
            return any(_fits(each, given) for each in wanted["any"])
        return (
            isinstance(given, dict)
            and wanted.keys() == given.keys()
            and all(_fits(wanted[key], given[key]) for key in wanted)
        )
    if isinstance(wanted, list):
        return isinstance(given, list) and len(wanted) == len(given) and all(map(_fits, wanted, given))
    return not isinstance(given, dict | list) and _plain(wanted) == _plain(given)


def _plain(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return " ".join(unicodedata.normalize("NFKC", str(value)).casefold().split())


def _shown(given: Any) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in given.items()) if isinstance(given, dict) else repr(given)
