"""What a parameter means, judged by its name, its description and its schema."""

import re
from enum import Enum, auto

from app.chat_models.offline.schemas import Parameter

__all__ = ["Role", "is_source", "is_target", "role_of"]


class Role(Enum):
    """The meanings that the offline model can fill from a question."""

    CHOICE = auto()
    BOOLEAN = auto()
    ARRAY = auto()
    OBJECT = auto()
    DAYS = auto()
    NUMBER = auto()
    TIME_ZONE = auto()
    LANGUAGE = auto()
    TEXT = auto()
    PLACE = auto()
    DATE_TIME = auto()
    DURATION = auto()
    DATE = auto()
    TIME_OF_DAY = auto()
    EMAIL = auto()
    URL = auto()
    IDENTIFIER = auto()
    NAME = auto()
    SUBJECT = auto()
    OTHER = auto()


_BY_TYPE = {"boolean": Role.BOOLEAN, "array": Role.ARRAY, "object": Role.OBJECT}
_BY_FORMAT = {
    "date-time": Role.DATE_TIME,
    "duration": Role.DURATION,
    "date": Role.DATE,
    "time": Role.TIME_OF_DAY,
    "email": Role.EMAIL,
    "uri": Role.URL,
    "uuid": Role.IDENTIFIER,
}
_PLACE = r"\b(?:city|cities|place|location|town|destination|country|region)\b|城市|地点|地名|地区|目的地|出发地|国家"
_BY_NAME = (
    (Role.TIME_ZONE, re.compile(r"\btime ?zone|\btz\b|时区")),
    (Role.LANGUAGE, re.compile(r"\b(?:lang|language|locale)\b|语言|语种")),
    (Role.PLACE, re.compile(_PLACE)),
    (Role.EMAIL, re.compile(r"\be ?mail\b|邮箱")),
    (Role.URL, re.compile(r"\b(?:url|uri|link)\b|网址|链接")),
    (Role.DATE_TIME, re.compile(r"\b(?:date ?time|timestamp)\b")),
    (Role.DATE, re.compile(r"\b(?:date|day)\b|日期")),
    (Role.TIME_OF_DAY, re.compile(r"\b(?:time|clock)\b|时间|时刻")),
    (Role.IDENTIFIER, re.compile(r"\b(?:id|no|code|number|sku|isbn|uuid|symbol)\b|编号|单号|号码|代码|序号")),
    (Role.TEXT, re.compile(r"^(?:q|text|content|contents|sentence|message|body|input|source text)$|文本|内容|原文")),
    (
        Role.SUBJECT,
        re.compile(r"\b(?:query|question|keywords?|search|prompt|topic|subject|title|term)\b|关键词|主题|标题|问题"),
    ),
    (Role.NAME, re.compile(r"\bname\b|姓名|名字|名称")),
)
_BY_DESCRIPTION = (
    (Role.TIME_ZONE, re.compile(r"\btime ?zone\b|时区")),
    (Role.LANGUAGE, re.compile(r"\blanguage\b|语言|语种")),
    (Role.TEXT, re.compile(r"\b(?:content|text|message|sentence)\b|文本|内容|原文")),
    (Role.PLACE, re.compile(_PLACE)),
)
_BY_BARE_NAME = ((Role.PLACE, re.compile(r"^(?:from|to|origin|departure|arrival|source|target)$")),)
_ISO_8601 = re.compile(r"\biso 8601\b")
_DAYS = re.compile(r"\bdays?\b|天数|几天|多少天")
_SOURCE = re.compile(r"\b(?:from|source|src|origin|start|departure)\b|源|原|出发|起点")
_TARGET = re.compile(r"\b(?:to|target|dest|destination|end|arrival|into)\b|目标|目的|终点")


def role_of(parameter: Parameter) -> Role:
    """Judge a parameter: its type first, then its format, its name, and its description last."""
    kind = parameter.type
    if parameter.choices:
        return Role.CHOICE
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    if kind in ("integer", "number"):
        return _number_role(parameter)
    given = parameter.schema.get("format")
    by_format = _BY_FORMAT.get(given) if isinstance(given, str) else None
    return by_format or _by_words(parameter)


def is_source(parameter: Parameter) -> bool:
    """Whether a parameter is where something comes from."""
    return _first(_SOURCE, _TARGET, parameter)


def is_target(parameter: Parameter) -> bool:
    """Whether a parameter is where something goes to."""
    return _first(_TARGET, _SOURCE, parameter)


def _number_role(parameter: Parameter) -> Role:
    if _DAYS.search(parameter.words) or (parameter.type == "integer" and _DAYS.search(parameter.about)):
        return Role.DAYS
    return Role.IDENTIFIER if re.search(r"\bid\b|编号|单号", parameter.words) else Role.NUMBER


def _by_words(parameter: Parameter) -> Role:
    by_name = next((role for role, words in _BY_NAME if words.search(parameter.words)), None)
    by_description = next((role for role, words in _BY_DESCRIPTION if words.search(parameter.about)), None)
    by_bare_name = next((role for role, words in _BY_BARE_NAME if words.search(parameter.words)), None)
    if by_name is Role.TIME_OF_DAY and _ISO_8601.search(parameter.about):
        return Role.DATE_TIME
    return by_name or by_description or by_bare_name or Role.OTHER


def _first(pattern: re.Pattern[str], opposite: re.Pattern[str], parameter: Parameter) -> bool:
    if pattern.search(parameter.words) or opposite.search(parameter.words):
        return bool(pattern.search(parameter.words))
    return bool(pattern.search(parameter.about)) and not opposite.search(parameter.about)
