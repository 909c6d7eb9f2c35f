"""A parsed question: its language, clauses, quotations and topics."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

from app.gazetteer.gazetteer import mentions
from app.offline import lexicon
from toolchat.tool_calling.text_normalization import normalize_name

__all__ = ["Entity", "Question", "Span", "blank_out", "concepts_in", "folded_words", "is_chinese", "rows", "terms"]

Span = tuple[int, int]
_LONGEST, _MOST_CLAUSES, _MOST_PAYLOADS, _LONGEST_TEXT = 4000, 40, 20, 2000
"""Limits: characters of a question, its clauses, its quotations, characters of a tool's text. The rest is ignored."""
_MOST_READ, _HEAD, _TAIL = 1000, 700, 300
"""Limits of the unquoted characters: of a longer text, the head and the tail are read."""
_BLANKS = " \0"
# A gap over which patterns would go again and again; its inside gets another blank.
_LONG_GAP = re.compile(r"(?<=\s{3})\s+(?=\s{3})")
_LATIN, _PIECE = re.compile(r"[a-z]+(?:['’][a-z]+)?"), re.compile(r"[a-z]+|[㐀-鿿]+")
# Where one word of an identifier ends and the next begins.
_SEAM = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9㐀-鿿]+")
_STOP = frozenset(f"{lexicon.SMALL_WORDS} {lexicon.TOOL_WORDS}".split())
_STOP_PAIRS = frozenset(lexicon.STOP_PAIRS.split())


@dataclass(frozen=True, slots=True)
class Entity:
    """A value in a question, its role and its position."""

    role: str
    value: Any
    start: int
    end: int

    @property
    def span(self) -> Span:
        """Its position in the text."""
        return self.start, self.end


@dataclass(frozen=True, eq=False)
class Question:
    """A question, or the part of one that a tool answers."""

    raw: str
    """As it was written."""
    flat: str
    """Folded; every position is the same as in ``raw``. Outside the part it is blank."""
    payloads: tuple[Span, ...]
    """Text in quotes, behind a colon or a line break: data for a tool, not part of the request."""
    chinese: bool
    """Whether to answer in Chinese; else in English."""
    overrides: Mapping[str, list[Entity]] = field(default_factory=dict)
    """Entities that replace those of its own words, by role."""
    entities: dict[str, list[Entity]] = field(default_factory=dict, init=False)
    """Cache of the entities extracted so far, by role."""

    @classmethod
    def of(cls, text: str) -> "Question":
        """Parse a question; characters that cannot be encoded are replaced."""
        raw = text[:_LONGEST].encode("utf-8", "replace").decode()
        flat = normalize_name(raw)
        payloads = tuple(_payloads(raw, flat))[:_MOST_PAYLOADS]
        return cls(raw, _bounded(flat, payloads), payloads, is_chinese(flat, payloads))

    @cached_property
    def command(self) -> str:
        """The request itself: ``flat`` with the payloads blank."""
        return blank_out(self.flat, self.payloads)

    @cached_property
    def readable(self) -> str:
        """The command as it was written, capitals and accents included."""
        return "".join(flat if flat in _BLANKS else raw for raw, flat in zip(self.raw, self.command, strict=True))

    @property
    def payload(self) -> str | None:
        """The first payload, as written."""
        return next((self.raw[start:end] for start, end in self.payloads), None)

    def with_entities(self, **entities: list[Entity]) -> "Question":
        """Copy with these entities for their roles instead of its own."""
        other = replace(self, overrides={**self.overrides, **entities})
        other.entities.update(self.entities)
        return other

    def with_quotes_as_command(self) -> "Question":
        """Copy whose quoted text counts as part of the request."""
        return replace(self, flat=_bounded(self.flat, ()), payloads=()) if self.payloads else self

    def part(self, spans: list[Span]) -> "Question":
        """The question from the first of these spans to the last, with what lies between them blank."""
        start, end = spans[0][0], spans[-1][1]
        gaps = [(one[1], other[0]) for one, other in pairwise(spans)]
        inside = [(a - start, b - start) for a, b in self.payloads if any(one <= a < other for one, other in spans)]
        return replace(
            self, raw=self.raw[start:end], flat=blank_out(self.flat, gaps)[start:end], payloads=tuple(inside)
        )

    @cached_property
    def clauses(self) -> list[Span]:
        """Cut the question where it goes on to something else; a payload or a place's name is never cut."""
        kept = [*self.payloads, *((found.start, found.end) for found in mentions(self.readable))]
        cuts = [match.span() for match in lexicon.BREAK.finditer(blank_out(self.flat, kept, lexicon.MARK))]
        spans = zip([0, *(end for _, end in cuts)], [*(end for _, end in cuts), len(self.flat)], strict=True)
        return [(start, end) for start, end in spans if self.flat[start:end].strip(_BLANKS)][:_MOST_CLAUSES]


def blank_out(text: str, spans: Sequence[Span], by: str = " ") -> str:
    """Replace parts of a text by as many blanks."""
    for start, end in spans:
        text = text[:start] + by * (end - start) + text[end:]
    return _bounded(text, ()) if spans and by == " " else text


def is_chinese(flat: str, payloads: Sequence[Span] = (), otherwise: bool = True) -> bool:
    """Whether a folded text is Chinese rather than English, by what is not payload; ``otherwise`` without a word."""
    for text in (blank_out(flat, payloads), flat):
        han, words = sum(map(len, lexicon.HAN.findall(text))), len(_LATIN.findall(text))
        if han or words:
            return han > 0 and han >= words
    return otherwise


def _bounded(flat: str, payloads: Sequence[Span]) -> str:
    """Blank the middle of what is too long to be read, and the inside of long gaps."""
    if len(flat) - sum(end - start for start, end in payloads) > _MOST_READ:
        flat = f"{flat[:_HEAD]}{' ' * (len(flat) - _HEAD - _TAIL)}{flat[-_TAIL:]}"
    return _LONG_GAP.sub(lambda gap: "\0" * len(gap[0]), flat)


def _payloads(raw: str, flat: str) -> Iterator[Span]:
    """What is quoted before the first separator; else what stands behind it, without quotes around all of it."""
    first = len(flat) - len(flat.lstrip())
    separator = next((m.end() for m in lexicon.SEPARATOR.finditer(flat) if m.start() > first), len(flat))
    quoted = [(m.start() + 1, m.end() - 1) for m in lexicon.QUOTED.finditer(flat)]
    before = [span for span in quoted if span[1] < separator]
    text = raw[separator:]
    behind = separator + len(text) - len(text.lstrip()), separator + len(text.rstrip())
    if before or not text.strip():
        return iter(before)
    return iter(quoted[:1] if quoted and (quoted[0][0] - 1, quoted[0][1] + 1) == behind else [behind])


def terms(text: str) -> dict[str, int]:
    """What a folded text is about, each with its first position: concepts, other words, other pairs of characters."""
    found: dict[str, int] = {}
    for concept, position in concepts_in(text):
        found.setdefault(lexicon.CONCEPT + concept, position)
    by_word, _ = _concept_words()
    for piece in _PIECE.finditer(text):
        word, stem, at = piece[0], _stem(piece[0]), piece.start()
        if not word.isascii():
            pairs = {word[n : n + 2]: at + n for n in range(len(word) - 1)}
            found = {f"pair:{pair}": n for pair, n in pairs.items() if pair not in _STOP_PAIRS} | found
        elif len(word) > 1 and {word, stem}.isdisjoint(_STOP) and {word, stem}.isdisjoint(by_word):
            found.setdefault(f"word:{stem}", at)
    return found


def concepts_in(text: str) -> Iterator[tuple[str, int]]:
    """The concepts that a folded text names, with where it does, Latin words first."""
    by_word, chinese = _concept_words()
    phrases = {
        "translate": lexicon.TRANSLATE.search(text),
        "date": lexicon.WHAT_DAY.search(text),
        "time": lexicon.DAY_OR_NIGHT.search(text),
    }
    text = blank_out(text, [match.span() for match in lexicon.NO_TOPIC.finditer(text)])
    for word in _PIECE.finditer(text):
        concept = by_word.get(word[0]) or by_word.get(_stem(word[0])) if word[0].isascii() else None
        if concept is not None:
            yield concept, word.start()
    for match in chinese.finditer(text):
        yield by_word[match[0]], match.start()
    yield from ((concept, phrase.start()) for concept, phrase in phrases.items() if phrase)


def rows(table: str) -> Iterator[tuple[list[str], list[str]]]:
    """Read entries of ``words: other words``."""
    for left, _, right in (entry.partition(":") for entry in table.split(";")):
        yield left.split(), right.split()


def folded_words(text: str) -> str:
    """A text, identifiers in it in words (``getCityTime`` as ``get city time``), folded; bounded."""
    return normalize_name(" ".join(part for part in _SEAM.split(text[:_LONGEST_TEXT]) if part))


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


@cache
def _concept_words() -> tuple[dict[str, str], re.Pattern[str]]:
    by_word = {word: concept for (concept,), words in rows(lexicon.CONCEPTS) for word in words}
    chinese = sorted((word for word in by_word if not word.isascii()), key=len, reverse=True)
    return by_word, re.compile("|".join(chinese))
