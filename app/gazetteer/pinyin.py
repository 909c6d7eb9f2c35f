"""Chinese names in Latin letters, as atlases print them."""

import os
from collections.abc import Callable
from functools import cache

from app.gazetteer.gazetteer import Place, find_place, lesser_places
from app.gazetteer.regions import provinces

__all__ = ["is_loaded", "romanised", "spelling_of"]

# Characters whose usual reading is not the one in names of places: what pypinyin says, and what is meant.
_READINGS = {
    "都": ("dou", "du"),
    "长": ("zhang", "chang"),
    "朝": ("zhao", "chao"),
    "勒": ("lei", "le"),
    "佛": ("fu", "fo"),
    "厦": ("sha", "xia"),
    "藏": ("cang", "zang"),
    "什": ("shen", "shi"),
    "蚌": ("bang", "beng"),
}


def spelling_of(name: str) -> Place | None:
    """Look up a place of China or Taiwan, no province, by its name in simplified characters."""
    if name.removesuffix("市") in provinces():
        return None
    place = _lesser().get(name) or find_place(name)
    return place if place and place.country in ("China", "Taiwan") else None


def romanised(name: str) -> str:
    """Write a name in simplified characters as one capitalised word without tones, such as ``Changsha``.

    ``ü`` becomes ``u``, as in ``Luliang``. Ask :func:`spelling_of` first: it knows the names that this gets wrong, and
    the first name that is read here costs 0.1 s and 12 MB, so it belongs in a thread.
    """
    syllables = _pypinyin()(name)
    if len(syllables) == len(name):
        syllables = [_in_a_place(*pair) for pair in zip(name, syllables, strict=True)]
    return "".join(syllables).capitalize()


def is_loaded() -> bool:
    """Whether :func:`romanised` answers at once."""
    return _pypinyin.cache_info().currsize > 0


@cache
def _pypinyin() -> Callable[[str], list[str]]:
    # Its 47,000 phrases take 44 MB more; the few of them that are names of places stand in a table of ours.
    os.environ["PYPINYIN_NO_PHRASES"] = "1"
    from pypinyin import lazy_pinyin

    return lazy_pinyin


def _in_a_place(character: str, syllable: str) -> str:
    usual, meant = _READINGS.get(character, ("", ""))
    if syllable == usual and usual:
        return meant
    return syllable.replace("v", "u")


@cache
def _lesser() -> dict[str, Place]:
    return {name: place for place in lesser_places() for name in place.names[1:]}
