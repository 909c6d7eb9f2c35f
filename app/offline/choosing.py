"""Which of the offered tools a question is about."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from app.offline import lexicon
from app.offline.parameters import Parameter, parameters_of
from app.offline.question import Question, Span
from app.offline.words import CONCEPT, folded_words, terms
from app.tool_calling.definition import ToolDefinition

__all__ = ["Choice", "KnownTool", "chosen", "pairs_in"]

_ENOUGH = 2.0
_ENOUGH_WITHOUT_THE_NAME = 4.0
"""A tool whose name is about something else must be close in other ways: an alarm also has a time."""
# A name that no sentence holds by chance: it has a capital inside, an underscore or a digit.
_DISTINCTIVE = re.compile(r".[A-Z]|[_0-9-]")


@dataclass(frozen=True)
class KnownTool:
    """A tool and what it is about."""

    definition: ToolDefinition

    @cached_property
    def parameters(self) -> list[Parameter]:
        """What it takes."""
        return parameters_of(self.definition.input_schema)

    @cached_property
    def roles(self) -> list[str]:
        """What its parameters ask for, in their order."""
        return [each.role for each in self.parameters]

    @cached_property
    def result_fields(self) -> Mapping[str, Mapping[str, Any]]:
        """The schemas of the fields of its results by their names, wherever they stand."""
        schema = self.definition.output_schema
        parts = [schema, *_mapping(schema.get("$defs")).values()]
        fields = [item for part in parts for item in _mapping(_mapping(part).get("properties")).items()]
        return {key: each for key, each in fields if isinstance(each, Mapping)}

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """How strongly each term speaks for it: 3 in its name, 2 in its description, 1 in its parameters."""
        weights: dict[str, float] = {}
        for parameter in self.parameters:
            values = [choice for choice in parameter.choices if isinstance(choice, str)]
            for text in (parameter.name, parameter.description, *values):
                weights.update(dict.fromkeys(terms(folded_words(text)), 1.0))
        weights.update(dict.fromkeys(terms(folded_words(self.definition.description)), 2.0))
        return weights | dict.fromkeys(terms(folded_words(self.definition.name)), 3.0)

    @cached_property
    def name_concepts(self) -> frozenset[str]:
        """What its name is about."""
        return frozenset(each for each in terms(folded_words(self.definition.name)) if each.startswith(CONCEPT))

    @cached_property
    def has_a_name_of_its_own(self) -> bool:
        """Whether its name is more than concepts: no other words may be asked of a question about it."""
        name = terms(folded_words(self.definition.name))
        return not self.name_concepts or len(name) > len(self.name_concepts)

    @property
    def undoes(self) -> bool:
        """Whether it takes something back."""
        return lexicon.UNDOES.search(f"{self.definition.name} {self.definition.description}".lower()) is not None

    def is_about(self, concept: str) -> bool:
        """Whether anything about it speaks of a concept."""
        return CONCEPT + concept in self.weights

    def is_named_in(self, question: Question) -> bool:
        """Whether the question gives its very name; a plain word counts only in front of arguments."""
        name = self.definition.name
        found = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", question.raw)
        distinctive = _DISTINCTIVE.search(name) or (found and found.start() == 0 and pairs_in(question, self))
        return found is not None and bool(distinctive)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Choice:
    """A tool, and the part of the question that it is to answer."""

    tool: KnownTool
    part: Question


@dataclass(frozen=True, slots=True)
class _Hit:
    tool: KnownTool
    score: float
    position: int


def chosen(question: Question, tools: tuple[KnownTool, ...]) -> list[Choice]:
    """Pick tools by their names, else clause by clause, each once, in the order of the question; none for chit-chat."""
    named = [tool for tool in tools if tool.is_named_in(question)]
    if named:
        return [Choice(tool, question) for tool in named]
    command = _command(question, tools)
    hits = [(span, _best(command[slice(*span)], tools)) for span in question.clauses()]
    if len({hit.tool.definition.name for _, hit in hits if hit}) > 1:
        return _parts(question, hits)
    best = next((hit for _, hit in hits if hit), None) or _best(command, tools)
    return [Choice(best.tool, question)] if best else []


def pairs_in(question: Question, tool: KnownTool) -> dict[str, str]:
    """The arguments that a question gives as ``name: value``, as written; a list or a text goes on to the next name."""
    by_name = {each.name.lower(): each for each in tool.parameters}
    names = "|".join(map(re.escape, sorted(filter(None, by_name), key=len, reverse=True)))
    starts = list(re.finditer(rf"(?<![\w-])({names})\s*[:=]", question.flat)) if names else []
    given: dict[str, str] = {}
    for number, match in enumerate(starts, start=1):
        end = starts[number].start() if number < len(starts) else len(question.raw)
        text = question.raw[match.end() : end].strip(" ,;，；\n")
        if by_name[match[1]].type not in ("array", "string"):
            text = re.split(r"[,;，；\n]", text)[0]
        given.setdefault(match[1], text.strip(" \"“”'"))
    return {name: text for name, text in given.items() if text}


def _parts(question: Question, hits: list[tuple[Span, _Hit | None]]) -> list[Choice]:
    """Give each tool its clauses; a clause that names none belongs to the one before, in Chinese to the next."""
    named = [n for n, (_, hit) in enumerate(hits) if hit]
    spans: dict[int, list[Span]] = {}
    owners: dict[int, KnownTool] = {}
    for n, (span, _) in enumerate(hits):
        before, behind = [at for at in named if at <= n], [at for at in named if at >= n]
        nearest = behind[0] if not before or (question.chinese and behind) else before[-1]
        tool = next(hit.tool for _, hit in hits[nearest : nearest + 1] if hit)
        owners[id(tool)] = tool
        spans.setdefault(id(tool), []).append(span)
    return [Choice(owners[key], question.part(own)) for key, own in spans.items()]


def _command(question: Question, tools: tuple[KnownTool, ...]) -> str:
    """The text to choose by: where something can be translated, each clause ends with that verb."""
    command = question.command
    if not any(tool.is_about("translate") for tool in tools):
        return command
    for start, end in question.clauses():
        verb = lexicon.TRANSLATE_VERB.search(command, start, end)
        if verb is not None:
            command = command[: verb.start()] + "翻译".ljust(end - verb.start()) + command[end:]
    return command


def _best(text: str, tools: tuple[KnownTool, ...]) -> _Hit | None:
    about = terms(text)
    hits = [hit for tool in tools if (hit := _hit(tool, about))]
    return max(hits, key=lambda hit: (hit.score, -hit.position), default=None)


def _hit(tool: KnownTool, about: Mapping[str, int]) -> _Hit | None:
    shared = tool.weights.keys() & about.keys()
    score = sum(tool.weights[term] * (0.5 if term.startswith("pair:") else 1) for term in shared)
    about_its_name = tool.has_a_name_of_its_own or not tool.name_concepts.isdisjoint(about)
    if score < (_ENOUGH if about_its_name else _ENOUGH_WITHOUT_THE_NAME):
        return None
    return _Hit(tool, score, min(about[term] for term in shared))
