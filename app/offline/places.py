"""Places and time zones that a question names: what is known, what stands beside it, and what only looks like one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

from app.folding import folded
from app.offline import lexicon
from app.offline.numbers import Found
from app.offline.question import Question, Span, blanked
from app.offline.words import concepts_in
from app.places.gazetteer import Place, mentions, zone_ids
from app.places.qualifiers import qualified

__all__ = ["NamedPlace", "places"]


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A place in a question."""

    name: str
    """As it was written."""
    zone: str | None
    """Its time zone; ``None`` for a place that the gazetteer does not know."""
    english: str | None
    """Its name with its country; ``None`` for a bare time zone such as ``UTC+8``, and when it is not known."""

    @property
    def is_place(self) -> bool:
        """Whether it is more than a time zone."""
        return self.zone is None or self.english is not None


_MOST = 60
_MARK = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands for every character of a known name, so that patterns find what stands beside one."""

# Time zones by themselves: Asia/Tokyo; UTC+8, +08:00; 东八区; PST.
_ZONE = re.compile(r"\b[A-Za-z]+(?:/[A-Za-z0-9_+-]+){1,2}", re.ASCII)
_OFFSET = re.compile(r"\b(?:utc|gmt)\s?[+-]\s?[0-9]{1,2}(?::?[0-5][0-9])?|(?<![0-9a-z])[+-][0-9]{1,2}:[0-5][0-9]\b")
_CHINESE_OFFSET = re.compile(r"([东東西])([一二三四五六七八九十]{1,2}|[0-9]{1,2})[区區]")
_ABBREVIATION = re.compile(
    r"\b(?:UTC|GMT|[ECMP][SD]?T|AK[SD]T|HST|JST|KST|IST|BST|CES?T|EES?T|MSK|HKT|SGT|AE[SD]T|NZ[SD]T)\b"
)
_CHINESE_DIGITS = "零一二三四五六七八九十"

_CAPITAL = r"[A-Z][\w'’.-]*(?:,? [A-Z][\w'’.-]*){0,3}"
_AND = r"(?:,\s*and\b|,\s*or\b|,|and\b|or\b|&)"
# Names beside a known one: "in Blorptown and", "Paris and Blorptown"; 巴黎和布洛普镇.
_BESIDE = (
    re.compile(rf"\b(?:in|at|for|of|near)\s+({_CAPITAL})(?=\s*(?:[,&?.!]|and\b|or\b|$))"),
    re.compile(rf"{_MARK}\s*{_AND}\s*(?:in\s+)?({_CAPITAL})"),
    re.compile(rf"({_CAPITAL})\s*{_AND}\s*(?:in\s+)?{_MARK}"),
    re.compile(rf"\bin\s+([a-z][a-z'-]+)\s*(?:,|and\b|or\b|&)\s*(?:in\s+)?{_MARK}"),
    re.compile(rf"{_MARK}\s*(?:,\s*and\b|and\b|or\b|&)\s*(?:in\s+)?([a-z][a-z'-]+)(?=\s*(?:[?!.]|$))"),
    re.compile(rf"{_MARK}(?:和|与|與|跟|及|以及|、|,|还是)\s*([㐀-鿿·]{{2,12}})"),
    re.compile(rf"([㐀-鿿·]{{2,12}}?)(?:和|与|與|跟|及|以及|、|,|还是)\s*{_MARK}"),
)
# Names where none is known: "in little rock today", "Springfield weather"; 阿克苏今天的天气.
_ALONE = (
    re.compile(rf"([㐀-鿿·]{{2,16}}?)(?:{lexicon.FILLER}|[0-9]){{0,8}}+(?:{lexicon.TOPIC})"),
    re.compile(rf"\b(?:in|at|for|of|near)\s+(?:the city of\s+)?({_CAPITAL})"),
    re.compile(r"\b([A-Z][\w'.-]*(?: [A-Z][\w'.-]*){0,3})(?:'s)?\s+(?:weather|forecast|temperature)\b"),
    re.compile(
        r"\b(?:in|at|for|near)\s+([a-z][a-z'-]+(?: [a-z'-]+){0,2}?)"
        r"(?=\s+(?:today|tomorrow|now|right|for|in|next|this|please|the|over|on)\b|\s*[?.!,;]|\s*$)"
    ),
)
# What is cut off a Chinese name in front and behind.
_LEADING = re.compile(rf"^(?:{lexicon.FILLER})+")
_TRAILING = re.compile(rf"(?:{lexicon.FILLER}|{lexicon.TOPIC}|呢|吗|和|与|與|跟|及|更|还是).*$")


def places(question: Question) -> list[Found]:
    """The places and time zones of a question, in order and without overlaps; else what only looks like a place."""
    readable, command = question.readable, question.command
    known = list(_known(readable, command))
    beside = list(_beside(readable, known)) if known else []
    found: list[Found] = []
    for each in sorted(known + beside, key=lambda each: (each.start, -each.end)):
        if not found or each.start >= found[-1].end:
            found.append(each)
    return found or list(islice(_unknown(_ALONE, readable), 1))


def _known(readable: str, flat: str) -> Iterator[Found]:
    for mention in islice(mentions(readable), _MOST):
        yield _qualified(readable, mention.start, mention.end, mention.place)
    for match in _ZONE.finditer(readable):
        if zone := _zones().get(match[0].lower()):
            yield _found(readable, match.span(), zone)
    for match in _OFFSET.finditer(flat):
        yield _found(readable, match.span(), match[0].replace(" ", "").upper())
    for match in _CHINESE_OFFSET.finditer(flat):
        hours = match[2] if match[2].isascii() else str(sum(_CHINESE_DIGITS.index(c) for c in match[2]))
        yield _found(readable, match.span(), f"UTC{'-' if match[1] == '西' else '+'}{hours}")
    for match in _ABBREVIATION.finditer(readable):
        yield _found(readable, match.span(), match[0])


@cache
def _zones() -> dict[str, str]:
    return {zone.lower(): zone for zone in zone_ids() if "/" in zone}


def _found(readable: str, span: Span, zone: str | None = None, english: str | None = None) -> Found:
    return Found("place", NamedPlace(readable[slice(*span)], zone, english), *span)


def _beside(readable: str, known: list[Found]) -> Iterator[Found]:
    marked = blanked(readable, tuple((each.start, each.end) for each in known[:_MOST]), _MARK)
    return (each for each in _unknown(_BESIDE, marked) if not concepts_in_name(each))


def concepts_in_name(found: Found) -> bool:
    """Whether what looks like a name is about something else."""
    return any(True for _ in concepts_in(folded(found.value.name)))


def _unknown(patterns: tuple[re.Pattern[str], ...], text: str) -> Iterator[Found]:
    """Names where the patterns find them, without the small words around them."""
    for pattern in patterns:
        for match in pattern.finditer(text):
            start, end = match.span(1)
            if match[1].isascii() or not "㐀" <= match[1][0] <= "鿿":
                end = start + len(match[1].rstrip(" .,"))
                is_name = not lexicon.NO_LATIN_NAME.search(match[1].lower())
            else:
                start += len(match[1]) - len(_LEADING.sub("", match[1]))
                end = start + len(_TRAILING.sub("", text[start:end]))
                is_name = 2 <= end - start <= 10 and not lexicon.NO_CHINESE_NAME.search(text[start:end])
            if is_name:
                yield _found(text, (start, end))


def _qualified(text: str, start: int, end: int, place: Place) -> Found:
    """A place of the gazetteer; one whose qualifier does not belong to it is a place that nobody knows."""
    wider = qualified(text, start, end, place)
    if wider is None:
        return _found(text, (start, end), place.zone, place.english)
    *span, is_own = wider
    shown = (start, end) if is_own and span[0] != start else (span[0], span[1])
    known = (place.zone, place.english) if is_own else (None, None)
    return Found("place", NamedPlace(text[slice(*shown)], *known), span[0], span[1])
