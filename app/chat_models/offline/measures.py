"""Which number of a question belongs to which parameter."""

import re
from collections.abc import Iterator

from app.chat_models.offline.numbers import Number, numbers
from app.chat_models.offline.question import Question
from app.chat_models.offline.schemas import Parameter

__all__ = ["measured_number"]

_UNITS = """
side sides face faces: 面
hour hours: 小时 钟头 h hour
minute minutes: 分钟 分 min minute
second seconds: 秒 sec second
person persons people guest guests passengers: 人 位 people person guest
count number quantity limit top amount size copies: 个 次 条 份 件 本 张 颗 times dice piece cop item
amount price money budget cost: 元 块 美元 欧元 日元 dollar usd eur rmb cny yuan
age years: 岁 year
year: 年
month: 月
weight: 公斤 千克 斤 克 kg gram pound
height: 厘米 米 cm
distance length radius: 公里 千米 米 km mile meter 位 字
temperature degrees: 度 degree
percent percentage rate: % 百分 percent
page pages: 页 page
floor: 层 楼 floor
"""
_NO_QUANTITY = re.compile(r"[一两]$|^[零〇万千百]+$")


def measured_number(parameter: Parameter, question: Question, taken: set[object]) -> Number | None:
    """Find the number with the parameter's word or unit beside it; else, where one is required, the first free one."""
    text = question.command if question.command.strip() else question.flat
    free = [each for each in _quantities(text) if ("number", each.start) not in taken]
    free = free or [each for each in _quantities(question.flat) if ("number", each.start) not in taken]
    words = set(_words(parameter))
    beside = next((each for each in free if _is_beside(each, question.flat, words)), None)
    if beside is not None or not parameter.required:
        return beside
    return next((each for each in free if not _NO_QUANTITY.search(text[each.start : each.end])), None)


def _quantities(text: str) -> Iterator[Number]:
    return (each for each in numbers(text) if abs(each.value) < 1e15)


def _is_beside(number: Number, text: str, words: set[str]) -> bool:
    after = text[number.end : number.end + 16].lstrip(" -")
    before = text[max(number.start - 16, 0) : number.start].rstrip(" :=#")
    return any(after.startswith(word) or (len(word) > 1 and before.endswith(word)) for word in words)


def _words(parameter: Parameter) -> Iterator[str]:
    named = parameter.words.split()
    yield from (word for word in named if len(word) > 1)
    yield from re.findall(r"[㐀-鿿]{2,4}", parameter.about)
    for line in _UNITS.strip().splitlines():
        english, _, units = line.partition(": ")
        if not set(english.split()).isdisjoint(named):
            yield from units.split()
