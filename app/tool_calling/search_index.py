"""Finding tools by what they are for: BM25 over names, descriptions and parameters."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from app.folding import folded, folded_name
from app.tool_calling.definition import ToolDefinition

__all__ = ["ToolIndex"]

# The usual values of BM25: how soon a repeated term stops to count, and how much a long text is held back.
_SATURATION, _LENGTH_WEIGHT = 1.2, 0.75
_NAME_WEIGHT = 3
"""How often each term of a name counts: it says what the tool is, a description also says what it is not."""
_LEAST_SHARE = 0.25
"""Share of the best score below which a tool has little more in common with the query than words like "the"."""
_MAX_QUERY_CHARS = 1000
"""A model's query is a few words; what is longer is read up to here."""

_UNSPACED = "぀-ヿ㐀-䶿一-鿿豈-﫿가-힯"
"""Kana, Chinese characters and Hangul, as a range of a regular expression: written without blanks between words."""
_RUNS = re.compile(rf"([{_UNSPACED}]+)|[^\W_{_UNSPACED}]+")
_CASE_CHANGES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_AROUND_A_NAME = ".,;:!?'\"`()[]{}<>。，、；：！？“”‘’「」（）"


class ToolIndex:
    """A set of tools that can be searched; made once, since a search costs a hundredth of it."""

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self._tools = tuple(tools)
        self._places = {tool.name: place for place, tool in enumerate(self._tools)}
        self._scores = _scores([_counted(tool) for tool in self._tools])

    def search(self, query: str, most: int) -> list[ToolDefinition]:
        """The tools that fit best, best first; a tool whose very name stands in the query comes before all others."""
        query = query[:_MAX_QUERY_CHARS]
        found: defaultdict[int, float] = defaultdict(float)
        for term in dict.fromkeys(_terms(query)):
            for place, score in self._scores.get(term, ()):
                found[place] += score
        least = _LEAST_SHARE * max(found.values(), default=0.0)
        named = self._named(query)
        places = named + sorted(
            (place for place, score in found.items() if score >= least and place not in named),
            key=lambda place: (-found[place], place),
        )
        return [self._tools[place] for place in places[:most]]

    def _named(self, query: str) -> list[int]:
        words = (query, *(word.strip(_AROUND_A_NAME) for word in query.split()))
        return [self._places[name] for name in dict.fromkeys(words) if name in self._places]


def _scores(counts: Sequence[Counter[str]]) -> Mapping[str, Sequence[tuple[int, float]]]:
    """For each term the tools that have it, by place, each with what the term adds to its score."""
    mean = sum(count.total() for count in counts) / max(len(counts), 1)
    found: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for place, count in enumerate(counts):
        held_back = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * count.total() / max(mean, 1))
        for term, often in count.items():
            found[term].append((place, often * (_SATURATION + 1) / (often + held_back)))
    return {term: _weighted(places, len(counts)) for term, places in found.items()}


def _weighted(places: list[tuple[int, float]], tools: int) -> list[tuple[int, float]]:
    rarity = math.log(1 + (tools - len(places) + 0.5) / (len(places) + 0.5))
    return [(place, rarity * score) for place, score in places]


def _counted(tool: ToolDefinition) -> Counter[str]:
    count = Counter({term: _NAME_WEIGHT * often for term, often in Counter(_terms(tool.name, single=True)).items()})
    for text in (tool.description, *_parameters(tool.input_schema)):
        count.update(_terms(text, single=True))
    return count


def _parameters(schema: Mapping[str, Any]) -> Iterator[str]:
    """Names and descriptions of all parameters, nested ones too; without recursion, since schemas may be foreign."""
    pending: list[Any] = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, list | tuple):
            pending.extend(part)
        elif isinstance(part, Mapping):
            properties, description = part.get("properties"), part.get("description")
            yield from map(str, properties) if isinstance(properties, Mapping) else ()
            yield from (description,) if isinstance(description, str) else ()
            pending.extend(part.values())


def _terms(text: str, *, single: bool = False) -> Iterator[str]:
    """What a text is compared by; ``single`` adds each character of what is written without blanks.

    Tools have the single characters and queries do not, unless one stands alone: it shall be found, but two words that
    share a character have nothing else in common.
    """
    for run in _RUNS.finditer(text):
        if run[1]:
            yield from _pairs(folded_name(run[1]), single=single)
        else:
            yield from _words(run[0])


def _pairs(run: str, *, single: bool) -> Iterable[str]:
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    return [*pairs, *run] if single or not pairs else pairs


@lru_cache(maxsize=4096)  # tools say the same words again and again, and an index is made while others wait
def _words(run: str) -> tuple[str, ...]:
    """A word's parts at its changes of case, and neighbours joined: GitHub is also asked for as github."""
    parts = [folded(part) for part in _CASE_CHANGES.split(run)]
    return tuple(map(_singular, (*parts, *(first + second for first, second in pairwise(parts)))))


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") else word[:-1]
