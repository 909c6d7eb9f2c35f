"""How time zones, cities and languages are recognised in a question, for parameters that declare it."""

import re
from calendar import day_name, month_name
from collections.abc import Iterator
from functools import cache

from app.places.gazetteer import Place, belongs, lesser_places, mentions, zones_in_lower_case
from app.places.languages import languages
from toolchat import Recognized
from toolchat.tool_calling.text_normalization import normalize_name

_ZONE = re.compile(r"\b[A-Za-z]+(?:/[A-Za-z0-9_+-]+){1,2}|\b(?:UTC|GMT)(?:\s?[+-]\s?[0-9]{1,2}(?::?[0-5][0-9])?)?")
_NAME = r"[A-ZÀ-Þ][\w'’-]{1,30}(?: [A-ZÀ-Þ][\w'’-]{1,30}){0,3}"
_QUALIFIER = re.compile(rf"\s*,\s*({_NAME})")
# A name that no table has: capitals behind a preposition.
_UNKNOWN = re.compile(rf"\b(?:in|at|for|near|about) (?!I\b)({_NAME}(?:, {_NAME})?)")


def find_zone(text: str) -> Iterator[Recognized]:
    """Find time zones: ids, offsets such as ``UTC+8``, and the zones of the places that a text mentions."""
    for match in _ZONE.finditer(text):
        known = zones_in_lower_case().get(match[0].lower()) if "/" in match[0] else match[0].replace(" ", "")
        if known:
            yield Recognized(known, *match.span())
    yield from (Recognized(place.zone, *span) for place, span in _places(text) if place)


def find_city(text: str) -> Iterator[Recognized]:
    """Find places as they are written: of the tables, and unknown names behind ``in``, ``at``, ``for`` and the like."""
    known = [span for _, span in _places(text)]
    known += [match.span() for match in _lesser_form().finditer(text)]
    taken = [*known, *(match.span() for match in _language_form().finditer(text))]
    for match in _UNKNOWN.finditer(text):
        if not any(start < match.end() and match.start(1) < end for start, end in taken) and not _is_day(match[1]):
            known.append(match.span(1))
    yield from (Recognized(text[start:end], start, end) for start, end in sorted(known))


def find_language(text: str) -> Iterator[Recognized]:
    """Find languages by their names in English and Chinese; the value is the code."""
    for match in _language_form().finditer(normalize_name(text)):
        yield Recognized(_codes()[match["latin"] or match[0]], *match.span())


def _places(text: str) -> Iterator[tuple[Place | None, tuple[int, int]]]:
    """The places with their qualifiers, as in ``Paris, Texas``; ``None`` where no known place is meant."""
    for each in mentions(text):
        match = _QUALIFIER.match(text, each.end)
        # A place behind a comma is the next of a row.
        if match is None or (next(mentions(match[1]), None) and not belongs(normalize_name(match[1]), each.place)):
            yield each.place, (each.start, each.end)
        else:
            yield each.place if belongs(normalize_name(match[1]), each.place) else None, (each.start, match.end())


def _is_day(name: str) -> bool:
    return not {*day_name, *month_name, "Celsius", "Fahrenheit"}.isdisjoint(re.findall(r"\w+", name))


@cache
def _lesser_form() -> re.Pattern[str]:
    """Lesser places, where the text goes on as it does after a place: 漯河的天气."""
    names = "|".join(name for place in lesser_places() for name in place.names[1:])
    return re.compile(rf"(?:{names})(?=[和与、的天今明后]|未来|现在|$)")


@cache
def _codes() -> dict[str, str]:
    return {name: each.code for each in languages() for name in each.names}


@cache
def _language_form() -> re.Pattern[str]:
    names = [re.escape(each) for each in sorted(_codes(), key=len, reverse=True)]
    latin, others = ("|".join(each for each in names if each.isascii() == flag) for flag in (True, False))
    return re.compile(rf"(?<![a-zA-Z])(?P<latin>{latin})(?![a-zA-Z])|{others}")
