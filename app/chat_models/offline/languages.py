"""Languages that a question names: what it wants put into them, and what is in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from app.folding import simplified
from app.languages import Language, language_of, languages
from app.places.gazetteer import find_place

__all__ = ["Targets", "source_language", "target_language", "target_spans", "targets"]

_PAIR = re.compile(r"(?P<source>[中英日韩法德俄汉])(?:译|翻|译成|翻译成)(?P<target>[中英日韩法德俄汉])")
_SHORT = {"中": "zh", "汉": "zh", "英": "en", "日": "ja", "韩": "ko", "法": "fr", "德": "de", "俄": "ru"}
_INTO = re.compile(
    r"(?:翻译|翻譯|翻|译|譯|转换|转)?(?:成|为|為|到)\s*$|译\s*$|(?:用|讲|说)\s*$|\b(?:into|to|in)\s*(?:the )?$"
)
_OUT_OF = re.compile(r"(?:从|由|這句|这句|这段|把|将)\s*$|\bfrom\s*(?:the )?$")


_ITEM = r"(?:[㐀-鿿]{1,7}[语語文话話体體]|mandarin|[a-z][a-z-]+(?: (?:chinese|mandarin))?)"
_NO_LANGUAGES = ("me", "us", "him", "her", "them", "it", "you", "everyone", "know", "meet", "see", "go", "do", "be")
_BETWEEN = r"(?:\s*(?:,\s*and\b|,|&|\band\b|、|和|与|與|跟|以及|及)\s*)"
_LIST = rf"{_ITEM}(?:{_BETWEEN}{_ITEM}){{0,19}}"
_TARGETS = re.compile(
    rf"(?:\s|^)(?P<into>into|to|in)\s+(?:the )?(?P<english>{_LIST})"
    r"(?P<rest>(?:[\s.!?,;。]|\band\b|\bthen\b|\balso\b)*$)?"
    rf"|(?:翻译|翻譯|翻|译|譯)(?:成|为|為|到|作)\s*(?P<chinese>{_LIST})"
)


@dataclass(frozen=True, slots=True)
class Targets:
    """The languages that something is wanted in."""

    known: tuple[Language, ...] = ()
    unknown: tuple[str, ...] = ()
    """Names that stand where a language should, and are in no table; folded."""
    start: int = 0
    """Where the words about them begin."""
    ends_the_text: bool = False
    """Whether nothing follows in a text where what is to be translated comes first."""


def targets(text: str) -> Targets:
    """Find all the languages that a folded text wants something put into; none where it lists none."""
    found = [each for match in _TARGETS.finditer(text) if (each := _listed(text, match))]
    return next((each for each in reversed(found) if each.known), found[-1] if found else Targets())


def _listed(text: str, match: re.Match[str]) -> Targets | None:
    listed = match["english"] or match["chinese"]
    items = [each for each in re.split(_BETWEEN, listed) if each]
    named = [(item, _by_name().get(simplified(item))) for item in items]
    known = tuple(dict.fromkeys(language for _, language in named if language))
    unknown = tuple(item for item, language in named if language is None)
    if match["english"] and not _is_a_list(text, match, bool(known)):
        return None
    at_end = match["english"] is not None and match["rest"] is not None
    return Targets(known, unknown if at_end or match["chinese"] else (), match.start(), at_end)


def _is_a_list(text: str, match: re.Match[str], known: bool) -> bool:
    """English lists end the text or name a language; ``to`` and ``in`` are about other things as well."""
    verb = "translat" in text[: match.start()]
    if known or match["into"] == "in" or match["rest"] is None or not verb:
        return known
    named = match["english"]
    return match["into"] == "into" or (named not in _NO_LANGUAGES and " " not in named and find_place(named) is None)


@dataclass(frozen=True, slots=True)
class _Mention:
    language: Language
    start: int
    end: int


def target_language(text: str) -> Language | None:
    """Find the language that a folded text wants something put into."""
    pair = _PAIR.search(text)
    if pair is not None:
        return language_of(_SHORT[pair["target"]])
    named = list(_mentions(text))
    into = next((each.language for each in named if _INTO.search(text, max(each.start - 12, 0), each.start)), None)
    return into or next((each.language for each in reversed(named) if not _is_source(text, each)), None)


def source_language(text: str) -> Language | None:
    """Find the language that a folded text says something is in."""
    pair = _PAIR.search(text)
    if pair is not None:
        return language_of(_SHORT[pair["source"]])
    return next((each.language for each in _mentions(text) if _is_source(text, each)), None)


def target_spans(text: str) -> list[tuple[int, int]]:
    """Where a folded text names languages, apart from those that something is in."""
    return [(each.start, each.end) for each in _mentions(text) if not _is_source(text, each)]


def _is_source(text: str, mention: _Mention) -> bool:
    return _OUT_OF.search(text, max(mention.start - 8, 0), mention.start) is not None


def _mentions(text: str) -> Iterator[_Mention]:
    for match in _pattern().finditer(simplified(text)):
        yield _Mention(_by_name()[match[0]], *match.span())


@cache
def _pattern() -> re.Pattern[str]:
    names = sorted(_by_name(), key=len, reverse=True)
    return re.compile("|".join(rf"\b{name}\b" if name.isascii() else name for name in names))


@cache
def _by_name() -> dict[str, Language]:
    return {name: each for each in languages() for name in each.names}
