"""What stands beside a place's name to say which place of that name is meant: Paris, Texas and 德克萨斯州的巴黎."""

import re

from app.folding import folded_name
from app.places.gazetteer import Place, find_place
from app.places.regions import belongs, is_country, is_region

__all__ = ["Qualified", "qualified"]

Qualified = tuple[int, int, bool]
"""Where a name with its qualifier begins and ends, and whether the qualifier belongs to the place."""

_WORD = r"[A-Za-zÀ-ɏ][\w'’-]*|[A-Z](?:\.[A-Z])+\.?"
_BEHIND = re.compile(rf"\s*,\s*((?:{_WORD})(?:\s(?:{_WORD})){{0,3}})")
_BESIDE_MORE = re.compile(r"\s*(?:,|&|\band\b|\bor\b|和|与|、)")
_STATE = re.compile(r"[㐀-鿿·]{1,8}?[州省邦郡县縣]的?$")
_NO_QUALIFIER = re.compile(
    r"(?:please|thanks|thank|what|how|when|where|who|why|will|would|is|are|was|and|or|but|can|could|tell|show|give|do"
    r"|does|then|ok|okay|sir|i|it|its|the|a|my|me|you|we|in|at|on|for|to|now|right|today|tomorrow|tonight|yesterday"
    r"|next|this|last|weather|time|forecast|temperature|monday|tuesday|wednesday|thursday|friday|saturday|sunday"
    r"|utc|gmt|translate|europe|asia|africa|also|plus)\b"
)
_ALSO_CITIES = {"new york", "washington", "quebec"}
_NAMESAKES = {("Vancouver, Canada", "washington")}
"""Cities of the table whose lesser namesake lies in a state that is called like a city."""


def qualified(text: str, start: int, end: int, place: Place) -> Qualified | None:
    """Find the qualifier of a place named at ``text[start:end]``; ``None`` when the name stands alone.

    A place that the gazetteer knows may be the next of a list instead, as in ``Paris, London and Tokyo``.
    """
    return _behind(text, start, end, place) or _in_front(folded_name(text), start, end, place)


def _behind(text: str, start: int, end: int, place: Place) -> Qualified | None:
    match = _BEHIND.match(text, end)
    words = match[1].split(" ") if match else []
    for count in range(len(words), 0, -1):
        name = folded_name(" ".join(words[:count])).replace("'s", "").strip(".")
        stop = _end(match, words, count)
        if belongs(name, place):
            return start, stop, True
        if _is_other_qualifier(name, words[0], text[stop:], place):
            return start, stop, False
    return _unknown(match, words, start)


def _unknown(match: re.Match[str] | None, words: list[str], start: int) -> Qualified | None:
    """A capitalised name that nobody knows qualifies a place, unless a known place begins there."""
    count = next((n for n, word in enumerate(words) if not word[:1].isupper()), len(words))
    names = [" ".join(words[:n]) for n in range(count, 0, -1)]
    if not names or any(find_place(name) for name in names) or _NO_QUALIFIER.match(folded_name(names[0])):
        return None
    return start, _end(match, words, count), False


def _end(match: re.Match[str] | None, words: list[str], count: int) -> int:
    return (match.start(1) if match else 0) + len(" ".join(words[:count]))


def _is_other_qualifier(name: str, first: str, rest: str, place: Place) -> bool:
    if len(name) <= 3 and not first.isupper():
        return False
    if is_region(name):
        return name not in _ALSO_CITIES or (place.english, name) in _NAMESAKES
    listed = _BESIDE_MORE.match(rest) is not None or not place.country
    return is_country(name) and not listed


def _in_front(flat: str, start: int, end: int, place: Place) -> Qualified | None:
    """A Chinese qualifier: a country's or a region's name just before the place's."""
    before = flat[max(start - 12, 0) : start]
    shift = start - len(before)
    for size in range(len(before), 1, -1):
        name = re.sub(r"的$", "", before[-size:])
        bare = re.sub(r"[州省]$", "", name)
        known = name if is_country(name) or is_region(name) else bare
        if not name.isascii() and (belongs(known, place) or is_country(known) or is_region(known)):
            is_list = find_place(name) is not None and find_place(name.removesuffix("州")) is not None
            return (start - size, end, True) if belongs(known, place) else _foreign(start - size, end, is_list, name)
    state = _STATE.search(before)
    if state is None or not place.country:
        return None
    own = _is_own_province(state[0], place)
    return None if own and "省" not in state[0] else (shift + state.start(), end, own)


def _foreign(start: int, end: int, is_list: bool, name: str) -> Qualified | None:
    return None if is_list and not is_country(name) else (start, end, False)


def _is_own_province(text: str, place: Place) -> bool:
    named = text.removesuffix("的")
    city = any(find_place(named[-size:]) is not None for size in range(2, len(named) + 1))
    return city or place.country in ("China", "Taiwan")
