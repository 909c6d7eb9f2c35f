"""Values of an enumeration, of a switch and of a number, as a question mentions them or gives them by name."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from app.offline import lexicon
from app.offline.numbers import Found, horizon, numbers
from app.offline.parameters import Parameter
from app.offline.words import concepts_in, folded_words, rows

__all__ = ["days", "is_wanted", "mentioned", "number", "typed"]

# How a description asks for days ahead instead of a number of days.
_WANTS_DAYS_AHEAD = re.compile(r"\b(?:ahead|later|offset|from now|after)\b|之后|以后|以後|后第")
# A switch that is on or off itself.
_IS_A_SWITCH = re.compile(r"\b(?:on|enabled?|state|power)\b|开关")
# Numbers that are hardly meant as one: 一 in 一下, 零 alone.
_NO_QUANTITY = re.compile(r"[一两]$|^[零〇万千百]+$")
_TRUE, _FALSE = ("true", "yes", "on", "是"), ("false", "no", "off", "否")


def typed(text: str, parameter: Parameter) -> Any:
    """A value that was given by name, in the parameter's type; ``None`` where it cannot be that."""
    if parameter.choices:
        return next((each for each in parameter.choices if str(each).lower() == text.lower()), None)
    if parameter.type == "array":
        items = [typed(each.strip(), parameter.items) for each in re.split(r"[,，、;；]", text)[:20] if each.strip()]
        return [each for each in items if each is not None] or None
    if parameter.type == "boolean":
        return text.lower() in _TRUE if text.lower() in (*_TRUE, *_FALSE) else None
    if parameter.type in ("integer", "number"):
        return next((_number_as(parameter, each.value) for each in numbers(text)), None)
    return text if parameter.type == "string" else None


def mentioned(parameter: Parameter, text: str) -> list[Any]:
    """The values of an enumeration that a folded text mentions, in its order."""
    found = [(_place(choice, text), -len(str(choice)[:50]), n) for n, choice in enumerate(parameter.choices)]
    return [parameter.choices[n] for at, _, n in sorted(found) if at >= 0]


def is_wanted(parameter: Parameter, text: str) -> bool | None:
    """Whether something is asked for, or to be left out; ``None`` where a folded text does not mention it."""
    if _IS_A_SWITCH.search(parameter.words):
        return False if lexicon.OFF.search(text) else True if lexicon.ON.search(text) else None
    about = {concept for concept, _ in concepts_in(parameter.words)}
    words = [word for word in parameter.words.split() if len(word) > 3 and word not in ("include", "with", "show")]
    places = [at for word in words if (at := text.find(word.removesuffix("s"))) >= 0]
    places += [at for concept, at in concepts_in(text) if concept in about]
    return lexicon.NEGATION.search(text, max(min(places) - 12, 0), min(places)) is None if places else None


def days(parameter: Parameter, text: str, whole: str) -> float | None:
    """A number of days, within the schema's bounds; without a word about it the smallest, where one is required."""
    wanted = horizon(text) or horizon(whole)
    if wanted is None:
        count = 1 if parameter.required and "default" not in parameter.schema else None
    else:
        ahead = wanted.offset is not None and _WANTS_DAYS_AHEAD.search(parameter.about)
        count = wanted.offset if ahead else wanted.count
    low, high = parameter.number("minimum"), parameter.number("maximum")
    if count is None:
        return None
    at_least = count if low is None else max(count, low)
    return at_least if high is None else min(at_least, high)


def number(parameter: Parameter, texts: tuple[str, str], taken: set[object]) -> float | None:
    """The number with the parameter's word or unit beside it; else, where one is required, the first free one.

    Args:
        parameter: What it is for.
        texts: What is said, and all of the question: the numbers of the first come first.
        taken: What other parameters have got.
    """
    found = [[each for each in numbers(text) if ("number", each.start) not in taken] for text in texts]
    free = [each for each in found[0] or found[1] if abs(each.value) < 1e15]
    words = set(_unit_words(parameter))
    one = next((each for each in free if _is_beside(each, texts[1], words)), None)
    if one is None and parameter.required:
        one = next((each for each in free if not _NO_QUANTITY.search(texts[1][each.start : each.end])), None)
    if one is None:
        return None
    taken.add(("number", one.start))
    return _number_as(parameter, one.value)


def _number_as(parameter: Parameter, value: float) -> float | None:
    whole = int(value) == value
    return None if parameter.type == "integer" and not whole else int(value) if whole else value


def _place(choice: Any, text: str) -> int:
    """Where a value is mentioned; -1 where it is not."""
    if isinstance(choice, int | float) and not isinstance(choice, bool):
        return next((each.start for each in numbers(text) if each.value == choice), -1)
    if not isinstance(choice, str):
        return -1
    words = folded_words(choice[:100])
    found = [_position(each, text) for each in (words, *_synonyms().get(words, ())) if each]
    return min((at for at in found if at >= 0), default=-1)


def _position(word: str, text: str) -> int:
    if not word.isascii():
        return text.find(word)
    match = re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text)
    return match.start() if match else -1


@cache
def _synonyms() -> dict[str, list[str]]:
    return {
        word: [*chinese, *(each for each in english if len(each) > 1)]
        for english, chinese in rows(lexicon.SYNONYMS)
        for word in english
    }


def _is_beside(found: Found, text: str, words: set[str]) -> bool:
    after = text[found.end : found.end + 16].lstrip(" -")
    before = text[max(found.start - 16, 0) : found.start].rstrip(" :=#")
    return any(after.startswith(word) or (len(word) > 1 and before.endswith(word)) for word in words)


def _unit_words(parameter: Parameter) -> Iterator[str]:
    named = parameter.words.split()
    yield from (word for word in named if len(word) > 1)
    yield from re.findall(r"[㐀-鿿]{2,4}", parameter.about)
    yield from (unit for names, units in rows(lexicon.UNITS) if not set(names).isdisjoint(named) for unit in units)
