"""Translation requests: the text to translate and the target languages."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from app.gazetteer.gazetteer import find_place
from app.gazetteer.languages import Language, languages
from app.offline import lexicon
from app.offline.question import Entity, Question, blank_out

__all__ = ["languages_in", "text_to_handle"]

# Stands before a language that something is put into, or is in; the words between several of them.
_OUT_OF = re.compile(r"(?:[从由把将]|[这那]句)\s*$|\bfrom\s*(?:the )?$")
_COMMA = r"\s*(?:,\s*and\b|[,&、和与跟及]|\band\b|以及)\s*"
_NEXT = rf"{lexicon.MARK}{_COMMA}"
_INTO = rf"(?:\b(?:into|to|in)\s*(?:the )?|[译翻转换]?[成为到作译]\s*|[用拿讲说]|{_NEXT}(?:[a-z-]{{1,30}}{_COMMA})?)"
_TARGETS = rf"{_INTO}(?={lexicon.MARK})"
# A language that no table holds: its name in Chinese; in English only at the end, before a colon, or in a list.
_UNKNOWN = (
    rf"(?:[译翻][成为到作]\s*|[用拿](?=[㐀-鿿]+(?:怎么|咋|如何))|{_NEXT})(?P<chinese>[㐀-鿿]{{1,6}}[语文话])"
    rf"|(?:\b(?P<into>into|to|in)\s+(?:the )?|{_NEXT})(?P<english>[a-z][a-z-]{{1,30}})(?=[\s.!?,]*$|\s*:"
    rf"|{_COMMA}{lexicon.MARK})"
)
# Where the text stands: before 用法语怎么说 and 翻译成法语; behind "translate" and "how do you say".
_BEHIND_TEXT = (
    r"[用拿]?(?:{names})(?:(?:怎么|咋|如何)[说讲写]|是[什啥])|(?:翻译|翻|译)[成为到作] ?(?:{names})|是?什么意思"
)
_BEFORE_TEXT = (
    r"[用拿](?:{names})说|翻译(?:一下)?|[中英日韩法德俄]译[中英日韩法德俄]|\bhow (?:(?:do|would|can) (?:you|i|we)"
    r"|to) say\b|\btranslate\b|\bsay(?:ing)?\b|\bwhat does\b|\bwhat(?:'s| is)\b(?: the [a-z]+ words? for\b)?"
    r"|\bthat says\b|说一声|内容[是为]"
)
# What stands around the text and is no part of it.
_OPENING = re.compile(
    rf"(?:{lexicon.POLITE}|最后|然后|再(?!见)|把|将|[这那]?(?:句话|个词|个单词|段话)|[\s\0,]|the (?:word|phrase"
    rf"|sentence|text)s?\b(?=.*\w))+"
)
_INSTRUCTION = re.compile(r"(?:in)?to [a-z-]+\s*[,:]")
_LEADING_LANGUAGE = r"\s*(?:from (?:{names}) )?(?:in)?to (?:the )?(?:{names})[,:]?(?:\s|$)"
_TRAILING = r"\s+mean\b[.?! ]*|\s+from (?:the )?(?:{names})\s*|[,，]?\s+please[.?! ]*|[的,，]$"


def languages_in(question: Question) -> list[Entity]:
    """Find the target languages of a translation: a whole list, or the last language that the question names.

    A value is a ``Language``, or the name as written if it is at a language's position but in no table.
    """
    return _led_to(question) or list(_named(question.command))[-1:]


def _led_to(question: Question) -> list[Entity]:
    """The languages behind words such as "into", with these words."""
    text = question.command
    named = list(_named(text))
    marked = blank_out(text, [each.span for each in named], lexicon.MARK)
    starts = {match.end(): match.start() for match in _compiled(_TARGETS).finditer(marked)}
    known = [replace(each, start=starts[each.start]) for each in named if each.start in starts]
    unknown = [match for match in _compiled(_UNKNOWN).finditer(marked) if _is_meant(text, match)]
    names = [(match, match.span("chinese" if match["chinese"] else "english")) for match in unknown]
    return known + [Entity("language", question.raw[slice(*name)], *match.span()) for match, name in names]


def _named(text: str) -> Iterator[Entity]:
    """The languages that a folded text names, apart from those that something is in."""
    for match in _compiled(r"(?<![a-z])(?:{names})(?![a-z])|(?<=[中英日韩法德俄]译)[中英日韩法德俄]").finditer(text):
        if not _OUT_OF.search(text, max(match.start() - 8, 0), match.start()):
            yield Entity("language", _by_name().get(match[0]) or _by_name()[f"{match[0]}文"], *match.span())


def text_to_handle(question: Question) -> str | None:
    """The text to translate or process, as written: quoted, behind a colon, or beside a verb."""
    if question.payload:
        return question.payload
    flat = question.flat
    if anchor := _compiled(_BEHIND_TEXT).search(flat):
        return _text_between(question, 0, anchor.start()) or _text_between(question, anchor.end(), len(flat))
    if anchor := _compiled(_BEFORE_TEXT).search(flat):
        # What a verb is followed by is meant, even where it is no text: "ok then translate it".
        behind = flat[anchor.end() :].strip()
        start = min((each.start for each in _led_to(question)), default=0)
        # The mark belongs to "what is the Spanish word for dog?", but to what "translate how are you?" is about.
        whole = len(flat.rstrip(" ?")) if anchor[0].startswith(("how", "what")) else len(flat)
        end = start if anchor.end() <= start and flat[anchor.end() : start].strip() else whole
        return _text_between(question, *((anchor.end(), end) if behind else (0, anchor.start())))
    return None


def _is_meant(text: str, match: re.Match[str]) -> bool:
    """Whether an unknown name is meant as a language: English words are about other things as well."""
    if match["chinese"]:
        return True
    verb, name = lexicon.TRANSLATE.search(text, 0, match.start()), match["english"]
    is_name = name not in lexicon.NO_NAMES and find_place(name) is None
    return verb is not None and is_name and (match["into"] != "in" or verb[0].startswith("how"))


def _text_between(question: Question, start: int, end: int) -> str | None:
    flat = question.flat
    for opening in (_OPENING, _compiled(_LEADING_LANGUAGE), _OPENING):
        opened = opening.match(flat, start, end)
        start = opened.end() if opened else start
    ends = (m.start() for m in _compiled(_TRAILING).finditer(flat, start, end) if m.end() == end)
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
