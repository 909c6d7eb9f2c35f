"""Look-up of places by their Chinese and English names, and the places that a sentence mentions.

The names are those of the table and the last parts of the tz database's ids, such as ``new york`` of
``America/New_York``.
"""

import pkgutil
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from toolchat.tool_calling.text_normalization import fold, normalize_name


@dataclass(frozen=True, slots=True)
class Place:
    """A city, or a country with one time zone."""

    names: tuple[str, ...]
    """All of its names, the English one first."""
    zone: str
    """The tz database's id, such as ``Asia/Tokyo``."""
    country: str = ""
    """Its English name; empty for a country itself."""
    region: str = ""
    """The English name of the state or province, if the name alone is ambiguous."""

    @property
    def english(self) -> str:
        """The name with its country, such as ``Tokyo, Japan``."""
        return f"{self.names[0]}, {self.country}" if self.country else self.names[0]

    @property
    def name(self) -> str:
        """The English name without region or country."""
        return self.names[0].partition(", ")[0]


@dataclass(frozen=True, slots=True)
class Mention:
    """A place named in a text."""

    place: Place
    start: int
    """Index of the name's first character."""
    end: int


def find_place(name: str) -> Place | None:
    """Look up a place by its name; ignores case, accents, width, script and a final 市."""
    key = " ".join(normalize_name(unicodedata.normalize("NFKC", name)).replace("_", " ").split()).replace(" ,", ",")
    key = re.sub(r",(?=\S)", ", ", key)
    return _by_name().get(key) or _by_name().get(key.removesuffix("市"))


def place_in(text: str) -> Place | None:
    """Find the first place that a text mentions; of overlapping names the longest counts.

    A Latin name counts only as whole words, and one of up to three letters (``LA``) only in capitals.
    """
    return next((found.place for found in mentions(unicodedata.normalize("NFKC", text))), None)


def mentions(text: str) -> Iterator[Mention]:
    """Find all places that a text mentions, in order and without overlaps; see :func:`place_in`."""
    flat, start = normalize_name(text), 0
    while start < len(flat):
        end = _end_of_name(flat, text, start)
        place = _by_name().get(flat[start:end])
        if place is not None:
            yield Mention(place, start, end)
        start = max(end, start + 1)


def place_names() -> dict[str, str]:
    """Every name that :func:`find_place` knows, folded, with its time zone."""
    return {name: place.zone for name, place in _by_name().items()}


@cache
def zone_ids() -> frozenset[str]:
    """The tz database's ids, from the list in the ``tzdata`` package; the file system is not searched."""
    listed = pkgutil.get_data("tzdata", "zones") or b""
    return frozenset(listed.decode("ascii").split()) - {"Factory", "localtime", "posixrules"}


@cache
def zones_in_lower_case() -> dict[str, str]:
    """The tz database's ids by what they are in lower case: ``asia/tokyo`` is ``Asia/Tokyo``."""
    return {zone.lower(): zone for zone in zone_ids()}


@cache
def known_places() -> tuple[Place, ...]:
    """The places of the table, without those of the tz database, in the table's order."""
    return tuple(_read("places.tsv"))


@cache
def lesser_places() -> tuple[Place, ...]:
    """Places of China and Taiwan that neither :func:`mentions` nor :func:`find_place` finds."""
    return tuple(_read("lesser_places.tsv"))


@cache
def chinese_countries() -> dict[str, str]:
    """The Chinese names of countries with several time zones, and their English names."""
    rows = tables()["countries"].items()
    return {name: country for country, names in rows for name in names if not name.isascii()}


def provinces() -> Mapping[str, str]:
    """China's provinces and municipalities by their Chinese names."""
    found: Mapping[str, str] = tables()["provinces"]
    return found


def belongs(name: str, place: Place) -> bool:
    """Whether a place lies in the country or the region of a folded name."""
    country = find_place(name)
    known = {fold(place.country), fold(place.region), *tables()["countries"].get(place.country, ())}
    return name in known or (country is not None and place.country in country.names)


@cache
def tables() -> Mapping[str, Any]:
    """The tables beside those of places."""
    return tomllib.loads(_text("names.toml"))


def _read(file: str) -> Iterator[Place]:
    for row in _text(file).splitlines():
        if not row.startswith("#"):
            name, region, country, zone, others = row.split("\t")
            yield Place((name, *filter(None, others.split(", "))), zone, country, region)


def _text(file: str) -> str:
    return files(__package__).joinpath(file).read_text("utf-8")


def _end_of_name(text: str, original: str, start: int) -> int:
    """The end of the longest name, or of a word that only looks like one, that begins here; else ``start``."""
    for length in _lengths().get(text[start], ()):
        end = start + length
        name = text[start:end]
        known = name in _not_places() or (name in _by_name() and _stands_alone(text, original, start, end))
        if known and len(name) == length:
            return end
    return start


def _stands_alone(text: str, original: str, start: int, end: int) -> bool:
    if not _is_latin(text[start]):
        return True
    if end - start <= 3 and not original[start:end].isupper():
        return False
    before, after = text[start - 1 : start], text[end : end + 1]
    return not (_is_latin(before) or _is_latin(after))


def _is_latin(character: str) -> bool:
    return character.isalnum() and character < "ʰ"  # the first letter behind the Latin ones


@cache
def _lengths() -> dict[str, tuple[int, ...]]:
    """The lengths of the names that begin with a character, longest first."""
    found: dict[str, set[int]] = {}
    for name in (*_by_name(), *_not_places()):
        found.setdefault(name[0], set()).add(len(name))
    return {first: tuple(sorted(lengths, reverse=True)) for first, lengths in found.items()}


@cache
def _not_places() -> frozenset[str]:
    return frozenset(tables()["not_places"])


@cache
def _by_name() -> dict[str, Place]:
    index = {normalize_name(name): place for place in known_places() for name in place.names}
    for place in known_places():
        index.setdefault(normalize_name(place.english), place)
    for zone in sorted(zone_ids()):
        area, _, rest = zone.partition("/")
        name = rest.rpartition("/")[2].replace("_", " ")
        if area in _AREAS and len(name) > 3 and name not in tables()["not_names"]:
            index.setdefault(normalize_name(name), Place((name,), zone))
    return index


# The other areas hold offsets (Etc) and old names (US), not cities.
_AREAS = frozenset(("Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"))
