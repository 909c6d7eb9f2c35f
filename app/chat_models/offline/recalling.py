"""Questions about the conversation itself: what was asked before, and the name that the user gave himself."""

import re
from collections.abc import Sequence

from app.chat_models.offline.question import Question
from app.folding import folded

__all__ = ["recalled"]

_MOST_QUOTED = 10
_LONGEST = 300
_BEFORE = r"(?:刚才|刚刚|刚|之前|前面|上一?次|先前)"
_WHAT_WAS_ASKED = re.compile(
    rf"我{_BEFORE}[都还]?[问说][了过你的些哪是]*(?:什么|啥|哪)|我(?:都|一共|总共)?问[了过你些哪]+(?:什么|啥|问题)"
    rf"|(?:{_BEFORE}的?|[上前]一?个)问题是"
    r"|\bwhat (?:did|have) i (?:just |already )?(?:ask(?:ed)?|sa(?:y|id))\b(?! about)"
    r"|\b(?:what (?:was|were)|repeat) my (?:(?:last|previous|earlier) )?questions?\b"
)
_ALL = re.compile(r"[都些]|一共|总共|\bhave i\b|\bquestions\b|\bso far\b")
_WHO_AM_I = re.compile(r"我(?:的?名字|的?姓名)?[叫是](?:什么|啥|谁)|\bwho am i\b|\bwhat(?:'s| is) my name\b")
_MY_NAME = re.compile(
    r"(?:我(?:的?名字|的?姓名)?叫做?|我的?(?:名字|姓名)是|\bmy name(?:'s| is)|\bcall me)"
    r"(?! ?(?:什么|啥|谁|你|他|她|不|(?:what|who|not|a|when|back|if|at|on|later|in)\b)) ?"
    r"(?P<name>[^?\n,;!。]{1,60}?)\s*(?=[,;!。\n]|\.(?:\s|$)|\band\b|请|今年|来自|$)"
)
_GREETING = re.compile(r"(?:你好|您好|hello|hi|hey|[\s,.!。])*")


def recalled(question: Question, asked: Sequence[str]) -> str | None:
    """Answer from what the user said, in his own words; ``None`` when the question is about something else.

    Args:
        question: The present question.
        asked: What the user said, oldest first, the present question last.
    """
    name = next((name for text in reversed(asked) if (name := _name(text[: 4 * _LONGEST]))), None)
    if _WHAT_WAS_ASKED.search(question.command):
        shown = [_shortened(each) for each in asked[:-1] if each.strip()]
        return _quoted(shown[-_MOST_QUOTED if _ALL.search(question.command) else -1 :], question.chinese)
    if _WHO_AM_I.search(question.command):
        if name is None:
            return "这次对话里你还没有告诉我你的名字。" if question.chinese else "You have not told me your name here."
        return f"你叫{name}。" if question.chinese else f"Your name is {name}."
    if name and _GREETING.fullmatch(_MY_NAME.sub("", question.flat)):
        return f"你好，{name}。" if question.chinese else f"Hello, {name}."
    return None


def _quoted(before: list[str], chinese: bool) -> str:
    if not before:
        return "在这之前你没有问过别的。" if chinese else "You asked nothing before this."
    if chinese:
        return "你刚才问的是：" + "".join(f"“{each}”" for each in before)
    return "You asked: " + ", ".join(f'"{each}"' for each in before)


def _name(text: str) -> str | None:
    found = _MY_NAME.search(folded(text))
    return text[slice(*found.span("name"))].strip() if found else None


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
