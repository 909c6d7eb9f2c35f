"""A follow-up such as ``what about Paris?`` or ``那纽约呢？``, put into the words of the question before it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from app.offline import lexicon
from app.offline.languages import named_languages, text_to_handle
from app.offline.numbers import Found, horizon
from app.offline.places import places
from app.offline.question import QUOTED, Question, Span, blanked, is_chinese, question_of
from app.offline.words import concepts_in

__all__ = ["question_in_context"]

_MOST_BEFORE = 8
"""Follow-ups of follow-ups that are traced back."""
_LONGEST = 300
# A text that ends a request to translate: "translate that into French", 把结果翻译成英文.
_REFERRED = re.compile(rf"(?:^|(?<=\W)|(?<=[把将])){lexicon.REFERENCE.pattern}(?=翻|译|\s*(?:in)?to\b|$)")


def question_in_context(
    asked: Sequence[str], answer: str = "", about: Callable[[str], bool] = lambda _: True
) -> Question:
    """Read the last thing that the user said; one that only names a place or the like is about what was asked before.

    Args:
        asked: What the user said in the conversation, oldest first, never empty.
        answer: What the model said before it.
        about: Whether a tool is about a concept: a follow-up goes on with what a tool could answer.
    """
    question = question_of(asked[-1])
    if answer and _refers(question):
        return replace(question_of(f"{asked[-1].strip(' .。?？')}:\n{answer}"), chinese=question.chinese)
    if _follow_up(question) is None:
        return question
    read: list[Question] = []
    for text in asked[-_MOST_BEFORE:]:
        read.append(_read(question_of(text), read, about))
    return read[-1]


def _refers(question: Question) -> bool:
    """Whether a translation is asked for of what was said before."""
    if question.payloads or not lexicon.TRANSLATE_VERB.search(question.flat):
        return False
    return text_to_handle(question) is None and _REFERRED.search(question.flat) is not None


def _follow_up(question: Question) -> re.Match[str] | None:
    """The parts of a question that may go on with another: by its small words, or since it only names something."""
    match = lexicon.FOLLOW_UP.fullmatch(question.flat) if len(question.flat) <= _LONGEST else None
    return match if match and (match["lead"] or match["tail"] or _is_bare(question)) else None


def _is_bare(question: Question) -> bool:
    """Whether a question is nothing but a name or a day."""
    return not _is_about(question) and any(_is_only(spans, question) for spans in _named(question))


def _is_about(question: Question, about: Callable[[str], bool] = lambda _: True) -> bool:
    return any(about(concept) for concept, _ in concepts_in(question.command))


def _named(question: Question) -> tuple[list[Span], list[Span], list[Span]]:
    """Where a question names places, days and languages."""
    days = [match.span() for match in lexicon.DAY.finditer(question.command)]
    return _spans(places(question)), days, _spans(named_languages(question.command))


def _spans(found: list[Found]) -> list[Span]:
    return [(each.start, each.end) for each in found]


def _is_only(spans: list[Span], question: Question) -> bool:
    return bool(spans) and lexicon.BETWEEN.fullmatch(blanked(question.flat, tuple(spans))) is not None


def _read(question: Question, earlier: list[Question], about: Callable[[str], bool]) -> Question:
    match = _follow_up(question) if earlier else None
    if match is None:
        return question
    before = next((each for each in reversed(earlier) if _is_about(each, about)), earlier[-1])
    rest = question_of(question.raw[slice(*match.span("rest"))])
    put = _translation if lexicon.TRANSLATE_VERB.search(before.command) else _in_full
    in_full = put(before, rest, bool(match["lead"] or match["tail"]))
    if in_full is None:
        return question
    return replace(question_of(in_full), chinese=is_chinese(match["lead"] + match["tail"], (), before.chinese))


def _in_full(before: Question, rest: Question, follows: bool) -> str | None:
    """The question before with another place or another day, or another question about the same place."""
    there, then, _ = _named(before)
    new_place, new_day, _ = _named(rest)
    if _is_only(new_place, rest) or (follows and _is_listed_name(rest)):
        return _put(before, there, rest.raw) or _added(before, rest.raw, "in ")
    if _is_only(new_day, rest):
        day = _day_after(before) if lexicon.DAY_AFTER.search(rest.flat) else rest.raw
        return _put(before, then, day) or _added(before, day)
    if follows and there and not new_place and _is_about(rest):
        return _added(rest, before.raw[slice(*there[0])], "in ")
    return None


def _day_after(before: Question) -> str:
    wanted = horizon(before.command)
    ahead = (wanted.offset or 0 if wanted else 0) + 1
    return f"{ahead}天以后" if before.chinese else f"in {ahead} days"


def _translation(before: Question, rest: Question, follows: bool) -> str | None:
    """The translation before into another language, or of another text."""
    if _is_only(_named(rest)[2], rest):
        return _put(before, _named(before)[2], rest.raw)
    new = rest.raw.strip()[1:-1] if QUOTED.fullmatch(rest.flat.strip()) else None
    if new is None and follows and not lexicon.NO_NEW_TEXT.search(rest.flat) and not _is_about(rest):
        new = rest.raw
    text = text_to_handle(before)
    found = re.search(rf"(?<![A-Za-z]){re.escape(text)}(?![A-Za-z])", before.raw) if text else None
    spans = [*before.payloads[:1], *([found.span()] if found else [])]
    return _put(before, spans[:1], new) if new else None


def _is_listed_name(rest: Question) -> bool:
    """Whether something would count as a place if it stood beside one in a list."""
    beside = places(question_of(f"Paris and {rest.raw}" if rest.raw.isascii() else f"巴黎、{rest.raw}"))
    return len(beside) == 2 and beside[1].end - beside[1].start == len(rest.raw)


def _put(before: Question, spans: list[Span], new: str) -> str | None:
    """Replace parts of a question; those that stand side by side give way to one."""
    pieces: list[str] = []
    end = 0
    for start, stop in spans:
        if not pieces or not lexicon.BETWEEN.fullmatch(before.flat, end, start):
            pieces += [before.raw[end:start], new]
        end = stop
    return "".join((*pieces, before.raw[end:])) if pieces else None


def _added(question: Question, detail: str, preposition: str = "") -> str:
    return f"{detail}{question.raw}" if question.chinese else f"{question.raw.rstrip(' ?.!')} {preposition}{detail}"
