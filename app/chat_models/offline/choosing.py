"""Which of the offered tools a question is about."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.chat_models.offline.question import Question, Span
from app.chat_models.offline.schemas import parameters_of
from app.chat_models.offline.vocabulary import (
    TRANSLATE,
    TRANSLATE_VERB,
    TermWeights,
    folded_words,
    is_concept,
    terms,
)
from app.tool_calling.definition import ToolDefinition

__all__ = ["Choice", "KnownTool", "chosen", "known"]

_ENOUGH = 2.0
_ENOUGH_WITHOUT_THE_NAME = 4.0
"""A tool whose name is about something else must be close in other ways: an alarm also has a time."""


@dataclass(frozen=True, slots=True)
class KnownTool:
    """A tool and what it is about."""

    definition: ToolDefinition
    weights: TermWeights
    """How strongly each term speaks for the tool: 3 in its name, 2 in its description, 1 in its parameters."""
    name_concepts: frozenset[str]


@dataclass(frozen=True, slots=True)
class Choice:
    """A tool, and the part of the question that it is to answer."""

    tool: ToolDefinition
    part: Question


@dataclass(frozen=True, slots=True)
class _Hit:
    tool: KnownTool
    score: float
    position: int


def known(tool: ToolDefinition) -> KnownTool:
    """Read what a tool is about from its name, its description and its parameters."""
    name = terms(folded_words(tool.name))
    weights: dict[str, float] = {}
    for text in parameters_of(tool.input_schema).texts():
        weights.update(dict.fromkeys(terms(folded_words(text)), 1.0))
    weights.update(dict.fromkeys(terms(folded_words(tool.description)), 2.0))
    weights.update(dict.fromkeys(name, 3.0))
    return KnownTool(tool, weights, frozenset(filter(is_concept, name)))


def chosen(question: Question, tools: tuple[KnownTool, ...]) -> list[Choice]:
    """Pick tools clause by clause, each once, in the order of the question; none for chit-chat."""
    hits = _by_clause(question, tools)
    found = list(dict.fromkeys(hit.tool.definition.name for _, hit in hits if hit))
    if len(found) > 1:
        return list(_parts(question, hits))
    best = next((hit for _, hit in hits if hit), None) or _best(_command(question, tools), tools)
    return [Choice(best.tool.definition, question)] if best else []


def _by_clause(question: Question, tools: tuple[KnownTool, ...]) -> list[tuple[Span, _Hit | None]]:
    command = _command(question, tools)
    return [(span, _best(command[span[0] : span[1]], tools)) for span in question.clauses()]


def _parts(question: Question, hits: list[tuple[Span, _Hit | None]]) -> Iterator[Choice]:
    """Give each tool its clauses; a clause that names none belongs to the one before, in Chinese to the next."""
    if question.chinese:
        hits = list(_filled(hits[::-1]))[::-1]
    hits = list(_filled(list(_filled(hits))[::-1]))[::-1]
    spans: dict[str, list[Span]] = {}
    owners = {}
    for span, hit in hits:
        if hit is not None:
            spans.setdefault(hit.tool.definition.name, []).append(span)
            owners[hit.tool.definition.name] = hit.tool.definition
    return (Choice(owners[name], question.part(own)) for name, own in spans.items())


def _filled(hits: list[tuple[Span, _Hit | None]]) -> Iterator[tuple[Span, _Hit | None]]:
    last = None
    for span, hit in hits:
        last = hit or last
        yield span, last


def _command(question: Question, tools: tuple[KnownTool, ...]) -> str:
    """The text to choose by: where something can be translated, each clause ends with that verb."""
    command = question.command
    if not any(f"concept:{TRANSLATE}" in tool.weights for tool in tools):
        return command
    for start, end in question.clauses():
        verb = TRANSLATE_VERB.search(command, start, end)
        if verb is not None:
            command = command[: verb.end()] + " " * (end - verb.end()) + command[end:]
    return command


def _best(text: str, tools: tuple[KnownTool, ...]) -> _Hit | None:
    about = terms(text)
    hits = [hit for tool in tools if (hit := _hit(tool, about))]
    return max(hits, key=lambda hit: (hit.score, -hit.position), default=None)


def _hit(tool: KnownTool, about: Mapping[str, int]) -> _Hit | None:
    shared = tool.weights.keys() & about.keys()
    score = sum(tool.weights[term] * (0.5 if term.startswith("pair:") else 1) for term in shared)
    about_its_name = not tool.name_concepts or not tool.name_concepts.isdisjoint(about)
    if score < (_ENOUGH if about_its_name else _ENOUGH_WITHOUT_THE_NAME):
        return None
    return _Hit(tool, score, min(about[term] for term in shared))
