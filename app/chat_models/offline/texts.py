"""Places, time zones, texts, names and numbers of things, as a question gives them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

from app.chat_models.offline.companions import companions
from app.chat_models.offline.languages import targets
from app.chat_models.offline.qualifiers import qualified
from app.chat_models.offline.question import Question, Span
from app.folding import folded, simplified
from app.languages import languages
from app.places.gazetteer import mentions, zone_ids

__all__ = ["NamedPlace", "identifiers", "matched", "place_spans", "places", "subject", "text_to_handle"]


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A place in a question."""

    name: str
    """As it was written."""
    zone: str | None
    """Its time zone; ``None`` for a place that the gazetteer does not know."""
    english: str | None
    """Its name with its country; ``None`` for a bare time zone such as ``UTC+8``, and when it is not known."""
    before: str
    """The folded text just before it."""


_MOST_MENTIONS = 60
_Named = tuple[int, int, str, str | None, str | None]
"""Start, end, name, time zone and English name of what a question names."""

_ZONE = re.compile(r"\b[A-Za-z]+(?:/[A-Za-z0-9_+-]+){1,2}", re.ASCII)
_OFFSET = re.compile(r"\b(?:utc|gmt)\s?[+-]\s?[0-9]{1,2}(?::?[0-5][0-9])?|(?<![0-9a-z])[+-][0-9]{1,2}:[0-5][0-9]\b")
_CHINESE_OFFSET = re.compile(r"([东東西])([一二三四五六七八九十]{1,2}|[0-9]{1,2})[区區]")
_ABBREVIATION = re.compile(
    r"\b(?:UTC|GMT|[ECMP][SD]?T|AK[SD]T|HST|JST|KST|IST|BST|CES?T|EES?T|MSK|HKT|SGT|AE[SD]T|NZ[SD]T)\b"
)
_CHINESE_DIGITS = "零一二三四五六七八九十"

_TOPIC = "天气|天氣|气温|氣溫|温度|预报|时间|時間|时区|几点|幾點|下雨|下雪|冷不冷|热不热|空气|日出|日落|有雨|会下"
_FILLER = (
    "请问|请|麻烦|帮我|帮忙|给我|告诉我|告诉|我想知道|想知道|我想|查询一下|查询|查一下|查查|查|看一下|看看|一下|说说|"
    "今天|明天|后天|大后天|昨天|现在|当前|目前|未来|接下来|最近|这周|本周|下周|周末|早上|晚上|下午|在|的|那里|那边|当地|"
    "会不会|会|是不是|有没有|什么|怎么样|如何|你|我|知道|外面|这里|[0-9一二两三四五六七八九十]{1,3}[天日周](?:以后|之后|后)?|以后|之后|后"
)
_CHINESE_PLACE = re.compile(rf"([㐀-鿿·]{{2,16}}?)(?:{_FILLER}|[0-9]){{0,8}}+(?:{_TOPIC})")
_LEADING = re.compile(rf"^(?:{_FILLER})+")
_LATIN_PLACE = re.compile(r"\b(?:in|at|for|of|near)\s+(?:the city of\s+)?([A-Z][\w'.-]*(?:,? [A-Z][\w'.-]*){0,3})")
_LOWER_PLACE = re.compile(
    r"\b(?:in|at|for|near)\s+([a-z][a-z'-]+(?: [a-z'-]+){0,2}?)"
    r"(?=\s+(?:today|tomorrow|now|right|for|in|next|this|please|the|over|on)\b|\s*[?.!,;]|\s*$)"
)
_BARE_PLACE = re.compile(r"\b([A-Z][\w'.-]*(?: [A-Z][\w'.-]*){0,3})(?:'s)?\s+(?:weather|forecast|temperature)\b")
_NO_PLACE = re.compile(
    r"\b(?:the|a|an|me|us|detail|details|general|celsius|fahrenheit|total|short|now|today|"
    r"tomorrow|days|hours|week|weeks|next|morning|evening|afternoon|night|my|your|this|that|"
    r"it|weather|time|forecast|temperature|i|what|monday|tuesday|wednesday|thursday|friday|"
    r"saturday|sunday|advance|case|fact|order|particular|there|here)\b"
)

_SAY_IN = r"(?:{names})(?:怎么说|怎么讲|怎么写|咋说)"
_PUT_INTO = r"(?:翻译|翻譯|翻|译|譯)(?:成|为|為|到|作) ?(?:{names})"
_TRANSLATE = r"(?:翻译|翻譯)(?:一下)?"
_SAY = r"\bhow (?:do|would|can) (?:you|i|we) say\b|\btranslate\b|\bsaying\b|\bthat says\b|说一声|内容是|内容为"
_BEFORE_TEXT = re.compile(r"(?:请问|请|麻烦|帮我|帮忙|给我|你能|能不能|可以|把|将|將|我想|\s)+")
_LEADING_LANGUAGE = r"\s*(?:in)?to (?:{names})[,:]?\s"
_TRAILING_LANGUAGE = r"(?:\s(?:from (?:{names}) )?(?:into|to|in) | ?(?:到|成|为) ?)(?:{names})[.?!。 ]*"
_NO_TEXT = re.compile(
    r"(?:以下|下面|下列|这|這|那|一)?(?:的)?(?:内容|文字|文本|句子|句话|段话|段文字|一句|一段|个|一下|"
    r"the following|this|it|text)(?: (?:text|sentence|content))?[\s,.:。]*"
)
_ID = re.compile(r"#?([a-z]{0,10}[-_]?[0-9][a-z0-9_-]{0,40})(?![a-z0-9_-])")
_SUBJECT_OPENING = re.compile(
    r"(?:please|请|帮我|麻烦|给我|can you|could you|我想|我要|去|search for|search|look up|find|lookup|query|搜索|"
    r"查找|查询|检索|搜一下|查一下|查|找|about|for|关于|一下|the|\s)+"
)


def places(question: Question) -> list[NamedPlace]:
    """The places and time zones that a question names, in order, each once; or what only looks like a place."""
    found: dict[object, NamedPlace] = {}
    command = question.command
    for start, _, name, zone, english in _apart(question):
        place = NamedPlace(name, zone, english, command[max(start - 8, 0) : start])
        found.setdefault(english or zone or folded(name), place)
    return list(found.values())


def place_spans(question: Question) -> list[Span]:
    """Where :func:`places` stand, with their qualifiers, each time that they are named."""
    return [(start, stop) for start, stop, *_ in _apart(question)]


def _apart(question: Question) -> list[_Named]:
    """What a question names, without overlaps; else the first that only looks like a place."""
    command = question.command
    readable = "".join(raw if flat != " " else " " for raw, flat in zip(question.raw, command, strict=True))
    found: list[_Named] = []
    for named in _named(readable, command):
        if not found or named[0] >= found[-1][1]:
            found.append(named)
    return found or list(islice(_unknown_places(readable, command), 1))


def _named(readable: str, command: str) -> list[_Named]:
    """What is known, and the names that are listed beside it, in order; the longest first where they overlap."""
    spans = list(_spans(readable, command))
    beside = companions(readable, [(start, stop) for start, stop, *_ in spans]) if spans else ()
    unknown: list[_Named] = [(start, stop, readable[start:stop], None, None) for start, stop in beside]
    return sorted(spans + unknown, key=lambda each: (each[0], -each[1]))


def _mentioned(readable: str) -> Iterator[_Named]:
    """Places of the gazetteer; one whose qualifier does not belong to it is a place that nobody knows."""
    for each in islice(mentions(readable), _MOST_MENTIONS):
        name, english = readable[each.start : each.end], each.place.english
        wider = qualified(readable, each.start, each.end, each.place)
        if wider is None:
            yield each.start, each.end, name, each.place.zone, english
        else:
            start, end, belongs = wider
            whole = readable[start:end]
            shown = whole if start == each.start or not belongs else name
            yield start, end, shown, each.place.zone if belongs else None, english if belongs else None


def _spans(readable: str, flat: str) -> Iterator[_Named]:
    yield from _mentioned(readable)
    known = {zone.lower(): zone for zone in zone_ids() if "/" in zone}
    for match in _ZONE.finditer(readable):
        if match[0].lower() in known:
            yield *match.span(), match[0], known[match[0].lower()], None
    for match in _OFFSET.finditer(flat):
        yield *match.span(), match[0], match[0].replace(" ", "").upper(), None
    for match in _CHINESE_OFFSET.finditer(flat):
        hours = match[2] if match[2].isascii() else str(sum(_CHINESE_DIGITS.index(c) for c in match[2]))
        yield *match.span(), match[0], f"UTC{'-' if match[1] == '西' else '+'}{hours}", None
    for match in _ABBREVIATION.finditer(readable):
        yield *match.span(), match[0], match[0], None


def text_to_handle(question: Question) -> str | None:
    """The text that something is to be done with, as written: quoted, behind a colon, or beside a verb."""
    if question.payload:
        return question.payload
    flat = simplified(question.flat)
    listed = targets(flat)
    end = listed.start if listed.ends_the_text else len(flat)
    for form, text_is_first in ((_SAY_IN, True), (_PUT_INTO, True), (_TRANSLATE, False), (_SAY, False)):
        anchor = _compiled(form).search(flat)
        if anchor is None:
            continue
        beside = [(0, anchor.start()), (anchor.end(), max(anchor.end(), end))]
        for start, stop in beside if text_is_first else beside[::-1]:
            text = _text_between(question, start, stop)
            if text:
                return text
        if text_is_first:
            return None
    return None


def _text_between(question: Question, start: int, end: int) -> str | None:
    flat = simplified(question.flat)
    for opening in (_BEFORE_TEXT, _compiled(_LEADING_LANGUAGE)):
        opened = opening.match(flat, start, end)
        start = opened.end() if opened else start
    trailing = _compiled(_TRAILING_LANGUAGE)
    ends = (m.start() for m in trailing.finditer(flat, start, end) if m.end() == end)
    end = next(ends, end)
    if _NO_TEXT.fullmatch(flat, start, end):
        return None
    return question.raw[start:end].strip(" ,，:：用拿") or None


@cache
def _compiled(form: str) -> re.Pattern[str]:
    names = {name for each in languages() for name in each.names}
    return re.compile(form.replace("{names}", "|".join(sorted(names, key=len, reverse=True))))


def identifiers(text: str) -> Iterator[tuple[str, int]]:
    """Words with a digit in them, as in a folded text, with where they begin."""
    for match in _ID.finditer(text):
        if match.start() == 0 or not (text[match.start() - 1].isascii() and text[match.start() - 1].isalnum()):
            yield match[1], match.start(1)


def subject(question: Question) -> str:
    """What a search is for: the payload, else the question without its opening."""
    if question.payload:
        return question.payload
    opening = _SUBJECT_OPENING.match(question.flat)
    return question.raw[opening.end() if opening else 0 :].strip(" ?.!。，,？！\n")


def matched(pattern: re.Pattern[str], question: Question) -> str | None:
    """The first group of a match in the folded text, as written."""
    match = pattern.search(question.flat)
    return question.raw[match.start(1) : match.end(1)].strip() or None if match else None


def _unknown_places(readable: str, flat: str) -> Iterator[_Named]:
    for match in _CHINESE_PLACE.finditer(flat):
        name = _LEADING.sub("", match[1])
        if 2 <= len(name) <= 10:
            yield match.end(1) - len(name), match.end(1), name, None, None
    for pattern, text in ((_LATIN_PLACE, readable), (_BARE_PLACE, readable), (_LOWER_PLACE, flat)):
        for match in pattern.finditer(text):
            if not _NO_PLACE.search(match[1].lower()):
                yield *match.span(1), readable[match.start(1) : match.end(1)].strip(" .,"), None, None
