"""Romanisation of Chinese place names, as in atlases."""

import os
from collections.abc import Callable
from functools import cache

from app.places.gazetteer import Place, find_place, lesser_places, provinces

# Characters whose reading in place names differs from the usual one: pypinyin's reading, the one in place names.
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


def find_chinese_place(name: str) -> Place | None:
    """Look up a place of China or Taiwan, except provinces, by its name in simplified characters."""
    if name.removesuffix("市") in provinces():
        return None
    place = _lesser().get(name) or find_place(name)
    return place if place and place.country in ("China", "Taiwan") else None


def romanize(name: str) -> str:
    """Write a name in simplified characters as one capitalised word without tones, such as ``Changsha``.

    ``ü`` becomes ``u``, as in ``Luliang``. Call :func:`find_chinese_place` first: it has the names that are wrong here.
    The first call takes 0.1 s and 12 MB, so run it in a thread.
    """
    syllables = _pypinyin()(name)
    if len(syllables) == len(name):
        syllables = [_in_a_place(*pair) for pair in zip(name, syllables, strict=True)]
    return "".join(syllables).capitalize()


def is_loaded() -> bool:
    """Whether :func:`romanize` returns at once."""
    return _pypinyin.cache_info().currsize > 0


@cache
def _pypinyin() -> Callable[[str], list[str]]:
    # Its 47,000 phrases take 44 MB more; the few that are place names are in the gazetteer's table.
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
