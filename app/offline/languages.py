"""What is to be translated, and the languages that a question names: what it wants put into them, what is in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from app.folding import simplified
from app.languages import Language, language_of, languages
from app.offline import lexicon
from app.offline.question import Found, Question
from app.places.gazetteer import find_place

__all__ = ["Targets", "named_languages", "source_language", "targets", "text_to_handle"]

# 中译英 and the like.
_SHORT = {"中": "zh", "汉": "zh", "英": "en", "日": "ja", "韩": "ko", "法": "fr", "德": "de", "俄": "ru"}
_PAIR = re.compile(r"(?P<source>[中英日韩法德俄汉])(?:译|翻|译成|翻译成)(?P<target>[中英日韩法德俄汉])(?!\w)")
# Stands before a language that something is put into, or is in.
_INTO = re.compile(r"(?:[翻转]?[译換换]?[成为到]|译|[用讲说]|\b(?:into|to|in)\s*(?:the )?)\s*$")
_OUT_OF = re.compile(r"(?:[从由把将]|[这那]句)\s*$|\bfrom\s*(?:the )?$")
# A list of languages where something is to be put into them, whether they are known or not.
_ITEM = r"(?:[㐀-鿿]{1,7}[语文话体]|mandarin|[a-z][a-z-]{1,30}(?: (?:chinese|mandarin))?)"
_COMMA = r"(?:\s*(?:,\s*and\b|,|&|\band\b|、|和|与|跟|以及|及)\s*)"
_LIST = rf"{_ITEM}(?:{_COMMA}{_ITEM}){{0,19}}"
_TARGETS = re.compile(
    rf"(?:(?:\s|^)(?P<into>into|to|in)\s+(?:the )?|(?P<verb>[译翻][成为到作]|[用拿])\s*)(?P<list>{_LIST})"
    r"(?P<spoken>(?:怎么|咋|如何)[说讲写])?(?P<rest>(?:[\s\0.!?,;:。]|\b(?:and|then|also|please|language)\b)*$|\s*:)?"
)
_NO_LANGUAGES = ("me", "us", "him", "her", "them", "it", "you", "everyone", "know", "meet", "see", "go", "do", "be")

# Where the text stands: before 用法语怎么说 and 翻译成法语, behind "translate" and "how do you say".
_TEXT_FIRST = (
    r"(?:[用拿]?(?:{names}))(?:怎么说|怎么讲|怎么写|咋说|如何说)",
    r"(?:翻译|翻|译)[成为到作] ?(?:{names})",
    r"是?什么意思",
)
_VERB_FIRST = (
    r"[用拿](?:{names})说",
    r"翻译(?:一下)?|[中英日韩法德俄汉]译[中英日韩法德俄汉]",
    r"\bhow (?:(?:do|would|can) (?:you|i|we)|to) say\b|\btranslate\b|\bsay(?:ing)?\b|\bwhat does\b|\bwhat(?:'s| is)\b"
    r"|\bthat says\b|说一声|内容是|内容为",
)
# What stands around the text and is no part of it.
_OPENING = re.compile(
    rf"(?:{lexicon.POLITE}|最后|然后|再|把|将|[这那]?(?:句话|个词|个单词|段话)|[\s\0,]"
    r"|the (?:word|phrase|sentence|text)s?\b(?=.*\w))+"
)
_INSTRUCTION = re.compile(r"(?:in)?to [a-z-]+\s*[,:]")
_LEADING_LANGUAGE = r"\s*(?:from (?:{names}) )?(?:in)?to (?:the )?(?:{names})[,:]?(?:\s|$)"
_TRAILING_LANGUAGE = (
    r"(?: mean\b)?(?:\s(?:from (?:{names}) )?(?:into|to|in) (?:the )?| ?[到成为] ?)(?:{names})(?: language)?"
    r"(?: please)?[.?!,。 ]*|\smean[.?! ]*|[,，]? please[.?! ]*|[的,，]$"
)


@dataclass(frozen=True, slots=True)
class Targets:
    """The languages that something is wanted in."""

    known: tuple[Language, ...] = ()
    unknown: tuple[str, ...] = ()
    """Names that stand where a language should, and are in no table; folded."""
    start: int | None = None
    """Where the words about them begin, if nothing follows in a text where what is to be translated comes first."""


def targets(text: str) -> Targets:
    """Find the languages that a folded text wants something put into: a whole list, or the one that it names."""
    text = simplified(text)
    found = [each for match in _TARGETS.finditer(text) if (each := _listed(text, match))]
    listed = next((each for each in reversed(found) if each.known), found[-1] if found else None)
    if listed:
        return listed
    pair = _PAIR.search(text)
    if pair is not None:
        return Targets(tuple(filter(None, (language_of(_SHORT[pair["target"]]),))))
    named = list(named_languages(text))
    into = [each for each in named if _INTO.search(text, max(each.start - 12, 0), each.start)]
    return Targets(tuple(each.value for each in (into[:1] or named[-1:])))


def source_language(text: str) -> Language | None:
    """Find the language that a folded text says something is in."""
    pair = _PAIR.search(text)
    if pair is not None:
        return language_of(_SHORT[pair["source"]])
    return next((each.value for each in _mentioned(text) if _is_source(text, each)), None)


def named_languages(text: str) -> Iterator[Found]:
    """The languages that a folded text names, apart from those that something is in."""
    return (each for each in _mentioned(text) if not _is_source(text, each))


def text_to_handle(question: Question) -> str | None:
    """The text that something is to be done with, as written: quoted, behind a colon, or beside a verb."""
    if question.payload:
        return question.payload
    flat = simplified(question.flat)
    end = targets(flat).start or len(flat)
    for form in (*_TEXT_FIRST, *_VERB_FIRST):
        anchor = _compiled(form).search(flat)
        if anchor is not None:
            before, behind = (0, anchor.start()), (anchor.end(), max(anchor.end(), end))
            # What a verb is followed by is meant, even where it is no text: "ok then translate it".
            order = (
                (before, behind) if form in _TEXT_FIRST else (behind,) if flat[slice(*behind)].strip() else (before,)
            )
            text = next(filter(None, (_text_between(question, flat, *each) for each in order)), None)
            if text or form in _TEXT_FIRST:
                return text
    return None


def _listed(text: str, match: re.Match[str]) -> Targets | None:
    named = [(each, _by_name().get(each)) for each in re.split(_COMMA, match["list"]) if each]
    known = tuple(dict.fromkeys(language for _, language in named if language))
    if (match["verb"] in ("用", "拿") and not match["spoken"]) or (
        match["into"] and not known and not _is_a_list(text, match)
    ):
        return None
    at_end = match["rest"] is not None
    unknown = tuple(item for item, language in named if language is None)
    return Targets(known, unknown if at_end or match["verb"] else (), match.start() if at_end else None)


def _is_a_list(text: str, match: re.Match[str]) -> bool:
    """Whether English words that name no known language are meant as such: ``to`` is about other things as well."""
    verb, named = lexicon.TRANSLATE.search(text, 0, match.start()), match["list"]
    if match["rest"] is None or not verb:
        return False
    if match["into"] == "to":
        return named not in _NO_LANGUAGES and " " not in named and find_place(named) is None
    return match["into"] == "into" or verb[0].startswith("how")


def _is_source(text: str, named: Found) -> bool:
    return _OUT_OF.search(text, max(named.start - 8, 0), named.start) is not None


def _mentioned(text: str) -> Iterator[Found]:
    for match in _compiled(r"(?<![a-z])(?:{names})(?![a-z])").finditer(simplified(text)):
        yield Found("language", _by_name()[match[0]], *match.span())


def _text_between(question: Question, flat: str, start: int, end: int) -> str | None:
    for opening in (_OPENING, _compiled(_LEADING_LANGUAGE), _OPENING):
        opened = opening.match(flat, start, end)
        start = opened.end() if opened else start
    ends = (m.start() for m in _compiled(_TRAILING_LANGUAGE).finditer(flat, start, end) if m.end() == end)
    end = next(ends, end)
    if lexicon.NO_TEXT.fullmatch(flat, start, end) or _INSTRUCTION.match(flat, start, end):
        return None
    return question.raw[start:end].strip(" ,，:：用拿") or None


@cache
def _compiled(form: str) -> re.Pattern[str]:
    return re.compile(form.replace("{names}", "|".join(sorted(_by_name(), key=len, reverse=True))))


@cache
def _by_name() -> dict[str, Language]:
    return {name: each for each in languages() for name in each.names}
