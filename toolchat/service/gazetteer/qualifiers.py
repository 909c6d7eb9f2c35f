"""Qualifiers of place names, which tell places of the same name apart: Paris, Texas and 德克萨斯州的巴黎."""

import re
from collections.abc import Iterator

from toolchat.service.gazetteer.gazetteer import Place, find_place, lesser_places, mentions
from toolchat.service.gazetteer.regions import belongs, is_country, is_region
from toolchat.tool_calling.text_normalization import normalize_name

_Qualified = tuple[int, int, bool]
"""Start and end of a name with its qualifier, and whether the qualifier belongs to the place."""

_WORD = r"[A-Za-zÀ-ɏ][\w'’-]*|[A-Z](?:\.[A-Z])+\.?"
_BEHIND = re.compile(rf"\s*,\s*((?:{_WORD})(?:\s(?:{_WORD})){{0,3}})")
_GOES_ON = re.compile(r"\s*(?:,|&|\band\b|\bor\b|和|与|、)")
_STATE = re.compile(r"[㐀-鿿·]{1,8}?[州省邦郡县縣]的?$")
_ALSO_CITIES = ("new york", "washington", "quebec")
# Cities whose lesser namesake is in a state with the name of a city.
_NAMESAKES = {("Vancouver, Canada", "washington")}
# After "<place>," these words continue the sentence and are no qualifier.
_NO_QUALIFIER = re.compile(
    r"(?:please|thanks|thank|what|how|when|where|who|why|will|would|is|are|was|and|or|but|can|could|tell|show|give|do"
    r"|does|then|ok|okay|sir|i|it|its|the|a|my|me|you|we|in|at|on|for|to|now|right|today|tomorrow|tonight|yesterday"
    r"|next|this|last|weather|time|forecast|temperature|monday|tuesday|wednesday|thursday|friday|saturday|sunday"
    r"|utc|gmt|translate|europe|asia|africa|also|plus|which|should)\b"
)


def places_in(text: str) -> Iterator[tuple[Place | None, tuple[int, int]]]:
    """Find the places in a text, each with the position of its name and its qualifier, and qualified ones first.

    A known place behind another may be the next one of a list, as in ``Paris, London and Tokyo``. With a qualifier that
    no known place of the name has (``Paris, Narnia``), the place is ``None``. Lesser places count where the text goes
    on as it does after a place: ``漯河的天气``.
    """
    found = [(_find_qualifier(text, each.start, each.end, each.place), each) for each in mentions(text)]
    for qualified, each in sorted(found, key=lambda each: each[0] is None):
        start, end, is_own = qualified or (each.start, each.end, True)
        yield each.place if is_own else None, (start, end)
    for place in lesser_places():
        for match in re.finditer(rf"(?:{'|'.join(place.names[1:])})(?=[和与、的天今明后]|未来|现在|$)", text):
            yield place, match.span()


def _find_qualifier(text: str, start: int, end: int, place: Place) -> _Qualified | None:
    return _behind(text, start, end, place) or _in_front(normalize_name(text), start, end, place)


def _behind(text: str, start: int, end: int, place: Place) -> _Qualified | None:
    """The longest known qualifier after the name, or an unknown capitalised name."""
    match = _BEHIND.match(text, end)
    if match is None:
        return None
    words = match[1].split(" ")
    names = [" ".join(words[:count]) for count in range(len(words), 0, -1)]
    for name in names:
        plain, stop = normalize_name(name).replace("'s", "").strip("."), match.start(1) + len(name)
        if belongs(plain, place):
            return start, stop, True
        if _is_other_qualifier(plain, words[0], text[stop:], place):
            return start, stop, False
    capital = [name for name in names if all(word[:1].isupper() for word in name.split(" "))]
    if not capital or any(map(find_place, capital)) or _NO_QUALIFIER.match(normalize_name(capital[0])):
        return None
    return start, match.start(1) + len(capital[0]), False


def _is_other_qualifier(name: str, first: str, rest: str, place: Place) -> bool:
    if len(name) <= 3 and not first.isupper():
        return False
    if is_region(name):
        return name not in _ALSO_CITIES or (place.english, name) in _NAMESAKES
    return is_country(name) and not _GOES_ON.match(rest) and bool(place.country)


def _in_front(flat: str, start: int, end: int, place: Place) -> _Qualified | None:
    """A Chinese qualifier: the name of a country or region directly before the place's name."""
    before = flat[max(start - 12, 0) : start]
    for size in range(len(before), 1, -1):
        name = before[-size:].removesuffix("的")
        known = name if is_country(name) or is_region(name) else re.sub(r"[州省]$", "", name)
        if not name.isascii() and (belongs(known, place) or is_country(known) or is_region(known)):
            is_city = find_place(name) is not None and find_place(name.removesuffix("州")) is not None
            is_own = belongs(known, place)
            return None if is_city and not is_own and not is_country(name) else (start - size, end, is_own)
    state = _STATE.search(before)
    if state is None or not place.country:
        return None
    is_own = _is_own_province(state[0].removesuffix("的"), place)
    return None if is_own and "省" not in state[0] else (start - len(before) + state.start(), end, is_own)


def _is_own_province(named: str, place: Place) -> bool:
    is_city = any(find_place(named[-size:]) is not None for size in range(2, len(named) + 1))
    return is_city or place.country in ("China", "Taiwan")
