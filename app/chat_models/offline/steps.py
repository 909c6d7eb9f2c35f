"""The steps that a question asks to be planned, and questions about the plan that there is."""

import re
from collections.abc import Iterator

from app.chat_models.offline.planning import FORBIDDEN
from app.chat_models.offline.question import QUOTED, Question, Span, blanked
from app.chat_models.offline.vocabulary import TRANSLATE_VERB

__all__ = ["asks_for_the_list", "changes_the_list", "steps_of"]

_LONGEST_STEP = 200
_LIST = r"待办|任务(?:清单|列表)|\bto-?dos?\b|\b(?:todo|task)s? list\b"
_PLAN = re.compile(rf"{_LIST}|计划|规划|步骤|\bplan\b|\bsteps\b")
_ASKED_FOR = re.compile(
    rf"{_LIST}|(?:我的|当前|目前的?)计划|计划(?:进行|进展|完成|怎么样|是什么|还剩)"
    r"|\bthe plan\b|\b(?:my|open|remaining) (?:plan|tasks)\b"
)
_CHANGED = re.compile(r"加到|加入|添加|追加|标记|清空|划掉|删|\b(?:add|append|mark|clear|delete|remove|tick)\b")
_AT_ONCE = re.compile(r"[\s,]*(?:(?:please|请|麻烦你?|帮我|给我|你)\s*)*(?:plan to\b|(?:计划|规划)(?:一下)?)")
_SEPARATOR = re.compile(r"(?<![0-9]):|\n")
_NUMBERED = re.compile(r"(?<![0-9A-Za-z./-])\(?(?:[0-9]{1,2}|[一二三四五六七八九十]{1,2})[.、):](?![0-9])")
_LISTED = (re.compile(r"[;\n]"), re.compile(r"[,。]|\.\s|\band then\b|\bthen\b|然后|接着"))
_OPENING = re.compile(r"(?:[\s,、*•-]|首先|最后|先|再|然后|接着|(?:and|then|first|next|finally|lastly)\b)+")


def asks_for_the_list(question: Question) -> bool:
    """Whether a question is about the todo list that there is."""
    return bool(_ASKED_FOR.search(question.command)) and not FORBIDDEN.match(question.raw)


def changes_the_list(question: Question) -> bool:
    """Whether a question is to add, tick off or remove something."""
    return bool(_CHANGED.search(question.command))


def steps_of(question: Question) -> list[str]:
    """The steps that a question asks to be planned, as written; none when it asks for no plan."""
    quoted = tuple(match.span() for match in QUOTED.finditer(question.flat))
    flat, word = blanked(question.flat, quoted), _PLAN.search(blanked(question.command, quoted))
    start = None if FORBIDDEN.match(question.raw) else _start_of_steps(flat, word)
    if start is None or _CHANGED.search(flat, 0, start):
        return []
    steps = [step for begin, end in _pieces(flat, start) if (step := _step(question, begin, end))]
    return steps if len(steps) > 1 or (steps and word and re.fullmatch(_LIST, word[0])) else []


def _start_of_steps(flat: str, word: re.Match[str] | None) -> int | None:
    numbered = _NUMBERED.search(flat)
    if numbered and not flat[: numbered.start()].strip():
        return numbered.start()
    if word is None or TRANSLATE_VERB.search(flat, 0, word.start()):
        return None
    separator, at_once = _SEPARATOR.search(flat, word.end()), _AT_ONCE.match(flat)
    starts = [numbered.start()] if numbered else []
    starts += [separator.end()] if separator else []
    return min((each for each in starts if each >= word.end()), default=at_once.end() if at_once else None)


def _pieces(flat: str, start: int) -> Iterator[Span]:
    """Cut at numbers, else at semicolons and lines, else at commas."""
    for mark in (_NUMBERED, *_LISTED):
        cuts = [match.span() for match in mark.finditer(flat, start)]
        if cuts:
            break
    yield from zip([start, *(end for _, end in cuts)], [*(begin for begin, _ in cuts), len(flat)], strict=True)


def _step(question: Question, start: int, end: int) -> str:
    opening = _OPENING.match(question.flat, start, end)
    text = " ".join(question.raw[opening.end() if opening else start : end].split())
    return text.strip(" ,，.。;；")[:_LONGEST_STEP]
