"""Look-up of languages by their codes, and by the names that people and models use for them."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from app.places.gazetteer import tables
from toolchat.tool_calling.text_normalization import normalize_name

LONGEST_NAME = 40
"""Longer texts are not looked up as a language's name."""


@dataclass(frozen=True, slots=True)
class Language:
    """A language."""

    code: str
    """ISO 639-1, or ISO 639-3 if it has none; ``zh-TW`` for traditional Chinese."""
    english: str
    names: tuple[str, ...]
    """Names that are unambiguous in any sentence, folded, the English one first."""
    aliases: tuple[str, ...]
    """Codes and names that count only where a language is expected: ``it``, ``古文``."""


@cache
def languages() -> tuple[Language, ...]:
    """Every language in the table."""
    return tuple(_language(code, *row) for code, row in tables()["languages"].items())


def language_of(name: str) -> Language | None:
    """Look up a language by a code or a name, or by both (``Japanese (ja)``).

    Ignores case, width, accents, script, brackets and underscores. A BCP 47 tag (``pt-BR``) counts as its language;
    Chinese with a script or a region is simplified or traditional.
    """
    wanted = normalize_language(name)
    return _by_name().get(wanted) or _of_tag(wanted)


def normalize_language(name: str) -> str:
    """The look-up form of a name; a text that is too long for a name is returned unchanged."""
    name = name.strip()
    if len(name) > LONGEST_NAME:
        return name
    text = normalize_name(unicodedata.normalize("NFKC", name)).replace("_", "-")
    return " ".join(re.sub(r"[()\[\]]", " ", text).split())


def _of_tag(tag: str) -> Language | None:
    if not re.fullmatch(r"[a-z]{2,3}(-[a-z0-9]{2,8}){1,4}", tag):
        return None
    language, *rest = tag.split("-")
    found = _by_name().get(language)
    is_traditional = not {"hant", "tw", "hk", "mo"}.isdisjoint(rest) and "hans" not in rest
    return _by_name()["zh-tw"] if found and found.code == "zh" and is_traditional else found


@cache
def _by_name() -> dict[str, Language]:
    found: dict[str, Language] = {}
    for each in languages():
        for name in (each.code, *each.names, *each.aliases):
            found |= dict.fromkeys(map(normalize_language, _forms(name, each.english)), each)
    return found


def _forms(name: str, english: str) -> Iterator[str]:
    yield from (name, f"{name} {english}", f"{english} {name}")
    if name.endswith("语"):
        yield name.removesuffix("语") + "文"


def _language(code: str, english: str, spoken: Sequence[str], aliases: Sequence[str]) -> Language:
    chinese, *others = spoken
    written = [chinese.removesuffix("语") + "文"] if chinese.endswith("语") else []
    return Language(code, english, (english.lower(), chinese, *written, *others), tuple(aliases))
