"""What may be asked of WeatherAPI as a place.

It knows words that are no places: ``auto:ip`` and addresses would answer with the weather of this server, ``metar:``,
``iata:`` and ``id:`` with places that nobody named.
"""

import re
import unicodedata

from app.tool_calling.errors import ToolExecutionError

__all__ = ["MAX_NAME", "checked_name", "refusal"]

MAX_NAME = 80
"""Longest name in characters; the longest real ones have about 60."""

_HINT = "give the English or pinyin name of a city, with its country, such as 'Suzhou, Jiangsu, China'"
_PUNCTUATION = frozenset(" ,.'-()&·、;")
_COORDINATES = re.compile(r"([+-]?\d{1,2}(?:\.\d{1,10})?) ?, ?([+-]?\d{1,3}(?:\.\d{1,10})?)", re.ASCII)
_ADDRESS = re.compile(r"\d *\. *\d+ *\. *\d")
_POSTCODE = re.compile("[0-9]{5}")


def checked_name(city: str) -> str:
    """Bring a name to NFKC with single blanks; ``latitude,longitude`` passes too.

    Raises:
        ToolExecutionError: ``invalid-place``.
    """
    if len(city) > 4 * MAX_NAME:
        raise refusal(f"the city is longer than {MAX_NAME} characters")
    if any(unicodedata.category(character)[0] == "C" for character in city):
        raise refusal("the city holds control characters")
    name = " ".join(unicodedata.normalize("NFKC", city).replace("\u2019", "'").split())
    if not name:
        raise refusal("the city is empty")
    if len(name) > MAX_NAME:
        raise refusal(f"the city is longer than {MAX_NAME} characters")
    if coordinates := _COORDINATES.fullmatch(name):
        return _on_earth(*coordinates.groups())
    if not _looks_like_a_name(name):
        raise refusal("the city is not the name of a place")
    return name


def refusal(message: str) -> ToolExecutionError:
    """The answer to what cannot be looked up as it is."""
    return ToolExecutionError(message, kind="invalid-place", hint=_HINT)


def _on_earth(latitude: str, longitude: str) -> str:
    if abs(float(latitude)) > 90 or abs(float(longitude)) > 180:
        raise refusal("these coordinates are not on Earth")
    return f"{latitude},{longitude}"


def _looks_like_a_name(name: str) -> bool:
    """Letters of any script and a little punctuation, or a postcode; no colon, slash, address or URL."""
    if any(unicodedata.category(each)[0] not in "LMN" and each not in _PUNCTUATION for each in name):
        return False
    if _ADDRESS.search(name):
        return False
    return any(each.isalpha() for each in name) or _POSTCODE.fullmatch(name) is not None
