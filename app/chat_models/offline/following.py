"""A follow-up such as ``what about Paris?`` or ``那纽约呢？``, put into the words of the question before it."""

import re
from collections.abc import Sequence
from dataclasses import replace

from app.chat_models.offline.companions import companions
from app.chat_models.offline.languages import target_spans
from app.chat_models.offline.question import QUOTED, Question, Span, blanked, is_chinese, question_of
from app.chat_models.offline.texts import place_spans, text_to_handle
from app.chat_models.offline.vocabulary import TRANSLATE_VERB, concepts_in

__all__ = ["question_in_context"]

_MOST_BEFORE = 8
"""Follow-ups of follow-ups that are traced back."""
_LONGEST = 300
_FOLLOW_UP = re.compile(
    r"\s*(?P<lead>(?:(?:那么|那|还有|换成|改成|(?:and|but|or|ok|okay|then|so|now|(?:what|how) about)\b)[\s,]*)*)"
    r"(?:(?:in|at|for|of|to|into)\s(?!\S+ (?:days?|weeks?)\b)|在|用)?"
    r"(?P<rest>.+?)(?P<tail>(?:[\s,]*(?:呢|怎么样|如何|怎么说|(?:then|too|as well|please)\b))*)[\s?!.。]*",
    re.DOTALL,
)
_BETWEEN = re.compile(r"(?:[\s,、&?!.。]|\b(?:and|or|in)\b|和|与|與|跟|以及|及|还有)*")
_COUNT = r"[0-9一二两三四五六七八九十]{1,3}"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DAY = re.compile(
    rf"大?后天|明天|今天|昨天|(?:未来|接下来)?{_COUNT}[天周](?:以后|之后|后)?|[这本下]?周末"
    r"|[下这本]个?(?:周|星期|礼拜)[一二三四五六日天]?|(?:周|星期|礼拜)[一二三四五六日天]"
    r"|\b(?:(?:the )?day after tomorrow|tomorrow|today|tonight|yesterday|(?:for )?(?:the )?next \w+ days|in \w+ days?"
    rf"|(?:next|this) (?:week(?:end)?|{_WEEKDAY})|on {_WEEKDAY}|(?:the )?weekend)\b"
)
_NO_TEXT = re.compile(
    r"\b(?:who|whom|what|when|where|why|which|how|is|are|do|does|did|can|could|tell|give|show|sing|write)\b"
    r"|谁|什么|为什么|怎么|哪|讲|告诉"
)


def question_in_context(asked: Sequence[str]) -> Question:
    """Read the last thing that the user said; one that only names a place or the like is about what was asked before.

    Args:
        asked: What the user said in the conversation, oldest first, never empty.
    """
    question = question_of(asked[-1])
    match = _FOLLOW_UP.fullmatch(question.flat) if len(asked) > 1 and len(question.flat) <= _LONGEST else None
    follows = match is not None and bool(match["lead"] or match["tail"])
    if match is None or not (follows or _is_bare(question)):
        return question
    before = question_in_context(asked[-_MOST_BEFORE:-1])
    in_full = _in_full(before, question_of(question.raw[slice(*match.span("rest"))]), follows)
    if in_full is None:
        return question
    return replace(question_of(in_full), chinese=is_chinese(match["lead"] + match["tail"], (), before.chinese))


def _is_bare(question: Question) -> bool:
    """Whether a question is nothing but a name or a day."""
    if _has_topic(question):
        return False
    return any(_are_all(each(question), question) for each in (place_spans, _day_spans, _language_spans))


def _has_topic(question: Question) -> bool:
    return any(True for _ in concepts_in(question.command))


def _in_full(before: Question, rest: Question, follows: bool) -> str | None:
    if TRANSLATE_VERB.search(before.command):
        return _translation(before, rest, follows)
    there, days = place_spans(before), _day_spans(before)
    if _are_all(place_spans(rest), rest) or (follows and _is_listed_name(rest.raw)):
        return _put(before, there, rest.raw) or _added(before, rest.raw, "in ")
    if _are_all(_day_spans(rest), rest):
        return _put(before, days, rest.raw) or _added(before, rest.raw)
    if follows and there and not place_spans(rest) and _has_topic(rest):
        return _added(rest, before.raw[there[0][0] : there[0][1]], "in ")
    return None


def _translation(before: Question, rest: Question, follows: bool) -> str | None:
    if _are_all(_language_spans(rest), rest):
        return _put(before, _language_spans(before), rest.raw)
    new = rest.raw.strip()[1:-1] if QUOTED.fullmatch(rest.flat.strip()) else None
    if new is None and follows and not _NO_TEXT.search(rest.flat) and not _has_topic(rest):
        new = rest.raw
    return _put(before, _text_spans(before), new) if new else None


def _text_spans(before: Question) -> list[Span]:
    text = text_to_handle(before)
    if before.payload or text is None:
        return list(before.payloads[:1])
    found = re.search(rf"(?<![A-Za-z]){re.escape(text)}(?![A-Za-z])", before.raw)
    return [found.span()] if found else []


def _day_spans(question: Question) -> list[Span]:
    return [match.span() for match in _DAY.finditer(question.command)]


def _language_spans(question: Question) -> list[Span]:
    return target_spans(question.command)


def _are_all(spans: list[Span], question: Question) -> bool:
    return bool(spans) and _BETWEEN.fullmatch(blanked(question.flat, tuple(spans))) is not None


def _is_listed_name(name: str) -> bool:
    """Whether something would count as a place if it stood beside one in a list."""
    return any(end - start == len(name) for start, end in companions(f"_,{name}", [(0, 1)]))


def _put(before: Question, spans: list[Span], new: str) -> str | None:
    """Replace parts of a question; those that stand side by side give way to one."""
    pieces: list[str] = []
    end = 0
    for start, stop in spans:
        if not pieces or not _BETWEEN.fullmatch(before.flat, end, start):
            pieces += [before.raw[end:start], new]
        end = stop
    return "".join((*pieces, before.raw[end:])) if pieces else None


def _added(question: Question, detail: str, preposition: str = "") -> str:
    return f"{detail}{question.raw}" if question.chinese else f"{question.raw.rstrip(' ?.!')} {preposition}{detail}"
