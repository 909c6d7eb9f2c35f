"""What a question asks beyond its words: the steps of a plan; and the question before it that a follow-up is about."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from app.offline import lexicon
from app.offline.figures import wanted_days
from app.offline.languages import text_to_handle
from app.offline.question import Found, Question, Span, blanked, concepts_in, is_chinese
from app.offline.slots import found_in

__all__ = ["question_in_context", "steps_of"]

_MOST_BEFORE, _LONGEST = 8, 300
"""Follow-ups of follow-ups that are traced back, and the characters of one."""
_LONGEST_STEP = 200
_SEPARATOR = re.compile(r"(?<![0-9]):|\n")
# What steps are cut at: their numbers, else semicolons and lines, else commas.
_NUMBERED = re.compile(r"(?<![0-9A-Za-z./-])\(?(?:[0-9]{1,2}|[一二三四五六七八九十]{1,2})[.、):](?![0-9])")
_LISTED = (re.compile(r"[;\n]"), re.compile(r"[,。]|\.\s|\band then\b|\bthen\b|然后|接着"))
# A text that ends a request to translate: "translate that into French", 把结果翻译成英文.
_REFERRED = re.compile(rf"(?:^|(?<=\W)|(?<=[把将])){lexicon.REFERENCE}(?=翻|译|\s*(?:in)?to\b|$)")


def question_in_context(
    asked: Sequence[str], answer: str = "", about: Callable[[str], bool] = lambda _: True
) -> Question:
    """Read the last thing that the user said; one that only names a place or the like is about what was asked before.

    Args:
        asked: What the user said in the conversation, oldest first, never empty.
        answer: What the model said before it.
        about: Whether a tool is about a concept: a follow-up goes on with what a tool could answer.
    """
    question = Question.of(asked[-1])
    if answer and _refers(question):
        return replace(Question.of(f"{asked[-1].strip(' .。?？')}:\n{answer}"), chinese=question.chinese)
    if _follow_up(question) is None:
        return question
    read: list[Question] = []
    for text in asked[-_MOST_BEFORE:]:
        read.append(_read(Question.of(text), read, about))
    return read[-1]


def steps_of(question: Question) -> list[str]:
    """The steps that a question asks to be planned, as written; none when it asks for no plan."""
    quoted = [match.span() for match in lexicon.QUOTED.finditer(question.flat)]
    flat, word = blanked(question.flat, quoted), lexicon.PLAN.search(blanked(question.command, quoted))
    start = None if lexicon.FORBIDDEN.match(flat) else _start_of_steps(flat, word)
    if start is None or lexicon.LIST_CHANGED.search(flat, 0, start):
        return []
    steps = list(filter(None, (_step(question, *span) for span in _pieces(flat, start))))
    return steps if len(steps) > 1 or (steps and word and re.fullmatch(lexicon.LIST, word[0])) else []


def _start_of_steps(flat: str, word: re.Match[str] | None) -> int | None:
    numbered = _NUMBERED.search(flat)
    if numbered and not flat[: numbered.start()].strip():
        return numbered.start()
    if word is None or lexicon.TRANSLATE.search(flat, 0, word.start()):
        return None
    separator, at_once = _SEPARATOR.search(flat, word.end()), lexicon.PLAN_AT_ONCE.match(flat)
    starts = [*([numbered.start()] if numbered else []), *([separator.end()] if separator else [])]
    return min((each for each in starts if each >= word.end()), default=at_once.end() if at_once else None)


def _pieces(flat: str, start: int) -> Iterator[Span]:
    marks = ([match.span() for match in mark.finditer(flat, start)] for mark in (_NUMBERED, *_LISTED))
    cuts = next(filter(None, marks), [])
    return zip([start, *(end for _, end in cuts)], [*(begin for begin, _ in cuts), len(flat)], strict=True)


def _step(question: Question, start: int, end: int) -> str:
    opening = lexicon.STEP_OPENING.match(question.flat, start, end)
    text = " ".join(question.raw[opening.end() if opening else start : end].split())
    return text.strip(" ,，.。;；")[:_LONGEST_STEP]


def _refers(question: Question) -> bool:
    """Whether a translation is asked for of what was said before."""
    if question.payloads or not lexicon.TRANSLATE.search(question.flat):
        return False
    return text_to_handle(question) is None and _REFERRED.search(question.flat) is not None


def _follow_up(question: Question) -> re.Match[str] | None:
    """The parts of a question that may go on with another: by its small words, or since it only names something."""
    match = lexicon.FOLLOW_UP.fullmatch(question.flat) if len(question.flat) <= _LONGEST else None
    is_bare = not _is_about(question) and any(_is_only(question, role) for role in ("place", "day", "language"))
    return match if match and (match["lead"] or match["tail"] or is_bare) else None


def _is_about(question: Question, about: Callable[[str], bool] = lambda _: True) -> bool:
    return any(about(concept) for concept, _ in concepts_in(question.command))


def _is_only(question: Question, role: str) -> bool:
    """Whether a question names nothing but something of a role."""
    spans = _spans(found_in(question, role))
    return bool(spans) and lexicon.BETWEEN.fullmatch(blanked(question.flat, spans)) is not None


def _spans(found: list[Found]) -> list[Span]:
    return [(each.start, each.end) for each in found]


def _read(question: Question, earlier: list[Question], about: Callable[[str], bool]) -> Question:
    match = _follow_up(question) if earlier else None
    if match is None:
        return question
    before = next((each for each in reversed(earlier) if _is_about(each, about)), earlier[-1])
    if steps := steps_of(before):
        # What follows a plan goes on with its last step, and is no other plan.
        before = Question.of(steps[-1])
    rest = Question.of(question.raw[slice(*match.span("rest"))])
    put = _translation if lexicon.TRANSLATE.search(before.command) else _in_full
    in_full = put(before, rest, bool(match["lead"] or match["tail"]))
    if in_full is None:
        return question
    return replace(Question.of(in_full), chinese=is_chinese(match["lead"] + match["tail"], (), before.chinese))


def _in_full(before: Question, rest: Question, follows: bool) -> str | None:
    """The question before with another place or another day, or another question about the same place."""
    there, then = _spans(found_in(before, "place")), _spans(found_in(before, "day"))
    if _is_only(rest, "place") or (follows and _is_listed_name(rest)):
        return _put(before, there, rest.raw) or _added(before, rest.raw, "in ")
    if _is_only(rest, "day"):
        is_after = any(each.value.kind == "after" for each in found_in(rest, "day"))
        day = _day_after(before) if is_after else rest.raw
        return _put(before, then, day) or _added(before, day)
    if follows and there and not found_in(rest, "place") and _is_about(rest):
        return _added(rest, before.raw[slice(*there[0])], "in ")
    return None


def _day_after(before: Question) -> str:
    wanted = wanted_days(found_in(before, "day"))
    ahead = (wanted.offset or 0 if wanted else 0) + 1
    return f"{ahead}天以后" if before.chinese else f"in {ahead} days"


def _translation(before: Question, rest: Question, follows: bool) -> str | None:
    """The translation before into another language, or of another text."""
    if _is_only(rest, "language"):
        return _put(before, _spans(found_in(before, "language")), rest.raw)
    new = rest.raw.strip()[1:-1] if lexicon.QUOTED.fullmatch(rest.flat.strip()) else None
    if new is None and follows and not lexicon.NO_NEW_TEXT.search(rest.flat) and not _is_about(rest):
        new = rest.raw
    text = text_to_handle(before)
    found = re.search(rf"(?<![A-Za-z]){re.escape(text)}(?![A-Za-z])", before.raw) if text else None
    spans = [*before.payloads[:1], *([found.span()] if found else [])]
    return _put(before, spans[:1], new) if new else None


def _is_listed_name(rest: Question) -> bool:
    """Whether something would count as a place if it stood beside one in a list."""
    beside = found_in(Question.of(f"Paris and {rest.raw}" if rest.raw.isascii() else f"巴黎、{rest.raw}"), "place")
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
