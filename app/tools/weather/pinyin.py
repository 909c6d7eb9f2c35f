"""Chinese names in Latin letters, as atlases print them."""

from collections.abc import Callable
from functools import cache

from app.tools.weather.place_names import READINGS

__all__ = ["is_loaded", "load", "romanised"]

_Syllables = Callable[[str], list[str]]


@cache
def load() -> _Syllables:
    """Import pypinyin: about 0.2 s, so the first time belongs in a thread."""
    from pypinyin import lazy_pinyin

    return lazy_pinyin


def is_loaded() -> bool:
    """Whether :func:`romanised` answers at once."""
    return load.cache_info().currsize > 0


def romanised(name: str) -> str:
    """Write a name in simplified characters as one capitalised word without tones, such as ``Changsha``.

    ``ü`` becomes ``u``, as in ``Luliang``. The names that this gets wrong are in :mod:`place_names`.
    """
    syllables = load()(name)
    if len(syllables) == len(name):
        syllables = [_in_a_place(*pair) for pair in zip(name, syllables, strict=True)]
    return "".join(syllables).capitalize()


def _in_a_place(character: str, syllable: str) -> str:
    usual, meant = READINGS.get(character, ("", ""))
    if syllable == usual and usual:
        return meant
    return syllable.replace("v", "u")
