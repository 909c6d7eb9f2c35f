"""Choosing among the values of an enumeration, and between yes and no."""

import re
from typing import Any

from app.chat_models.offline.numbers import numbers
from app.chat_models.offline.question import Question
from app.chat_models.offline.schemas import Parameter
from app.chat_models.offline.vocabulary import concepts_in, folded_words
from app.languages import Language

__all__ = ["chosen_values", "is_wanted"]

_SYNONYMS = """
celsius c metric: 摄氏 公制
fahrenheit f imperial: 华氏 英制
on open enable enabled: 打开 开启 启用
off close closed disable disabled: 关闭 关掉 关上 停用
asc ascending: 升序 从小到大
desc descending: 降序 从大到小
high urgent: 高 紧急
medium normal: 中等 普通 一般
low: 低
small: 小杯 小号 小份 小
large big: 大杯 大号 大份 大
red: 红
green: 绿
blue: 蓝
yellow: 黄
white: 白
black: 黑
economy: 经济舱
business: 商务舱
first: 头等舱
daily: 每天 每日
weekly: 每周
monthly: 每月
male: 男
female: 女
"""
_NEGATION = re.compile(r"不要|不用|不|别|没|无需|无|关|\b(?:no|not|without|don't|dont|off|disable|exclude)\b")
_ON = re.compile(r"打开|开启|启用|包括|包含|需要|\b(?:on|enable|with|include|including)\b")
_OFF = re.compile(r"关闭|关掉|关上|停用|\b(?:off|disable)\b")


def chosen_values(parameter: Parameter, question: Question, language: Language | None) -> list[Any]:
    """Find the values that the question mentions, in its order; a language where the values are languages."""
    text, choices = question.command, parameter.choices
    if language is not None:
        wanted = (language.code.lower(), language.english.lower(), language.chinese)
        spoken = [each for each in choices if isinstance(each, str) and each.lower() in wanted]
        if spoken:
            return spoken[:1]
    found = [
        (at, -len(str(each)[:50]), index) for index, each in enumerate(choices) if (at := _mentioned(each, text)) >= 0
    ]
    return [choices[index] for _, _, index in sorted(found)]


def is_wanted(parameter: Parameter, question: Question) -> bool | None:
    """Whether the question asks for something, or asks to leave it out; ``None`` when it does not mention it."""
    text = question.command
    if re.search(r"\b(?:on|enabled?|state|power)\b|开关", parameter.words):
        return False if _OFF.search(text) else True if _ON.search(text) else None
    position = min(_positions(parameter, text), default=None)
    return None if position is None else _NEGATION.search(text, max(position - 12, 0), position) is None


def _positions(parameter: Parameter, text: str) -> list[int]:
    about = {concept for concept, _ in concepts_in(parameter.about)}
    words = [word for word in parameter.words.split() if len(word) > 3 and word not in ("include", "with", "show")]
    named = [match.start() for word in words if (match := re.search(re.escape(word.removesuffix("s")), text))]
    return named + [position for concept, position in concepts_in(text) if concept in about]


def _mentioned(choice: Any, text: str) -> int:
    if isinstance(choice, bool) or choice is None:
        return -1
    if isinstance(choice, int | float):
        return next((each.start for each in numbers(text) if each.value == choice), -1)
    if not isinstance(choice, str) or not choice.strip():
        return -1
    words = folded_words(choice[:100])
    return min((at for each in (words, *_synonyms(words)) if each and (at := _position(each, text)) >= 0), default=-1)


def _position(word: str, text: str) -> int:
    if not word.isascii():
        return text.find(word)
    match = re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text)
    return match.start() if match else -1


def _synonyms(word: str) -> list[str]:
    for line in _SYNONYMS.strip().splitlines():
        english, _, chinese = line.partition(": ")
        if word in english.split():
            return [*chinese.split(), *(each for each in english.split() if len(each) > 1)]
    return []
