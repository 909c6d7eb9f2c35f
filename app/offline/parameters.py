"""A tool's parameters out of any JSON Schema, however odd it is, and the role of what each of them asks for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from app.offline import lexicon
from app.offline.words import folded_words, words_of

__all__ = ["Parameter", "parameters_of"]

_MOST_PARAMETERS = 50
_DEEPEST = 4
_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_INDIRECT = ("$ref", "anyOf", "oneOf", "allOf")
_STRUCTURED = ("boolean", "array", "object")
_BY_FORMAT = {"date-time": "date_time", "time": "time_of_day", "uri": "url", "uuid": "id"}
_BY_FORMAT |= {each: each for each in ("duration", "date", "email")}
_PLACE = r"\b(?:city|cities|place|location|town|destination|country|region)\b|城市|地点|地名|地区|目的地|出发地|国家"
_BY_NAME = (
    ("time_zone", re.compile(r"\btime ?zone|\btz\b|时区")),
    ("language", re.compile(r"\b(?:lang|language|locale)\b|语言|语种")),
    ("place", re.compile(_PLACE)),
    ("email", re.compile(r"\be ?mail\b|邮箱")),
    ("url", re.compile(r"\b(?:url|uri|link)\b|网址|链接")),
    ("date_time", re.compile(r"\b(?:date ?time|timestamp)\b")),
    ("date", re.compile(r"\b(?:date|day)\b|日期")),
    ("time_of_day", re.compile(r"\b(?:time|clock)\b|时间|时刻")),
    ("id", re.compile(r"\b(?:id|no|code|number|sku|isbn|uuid|symbol)\b|编号|单号|号码|代码|序号")),
    ("text", re.compile(r"^(?:q|text|content|contents|sentence|message|body|input|source text)$|文本|内容|原文")),
    (
        "subject",
        re.compile(r"\b(?:query|question|keywords?|search|prompt|topic|subject|title|term)\b|关键词|主题|标题|问题"),
    ),
    ("name", re.compile(r"\bname\b|姓名|名字|名称")),
)
_BY_DESCRIPTION = (
    ("time_zone", re.compile(r"\btime ?zone\b|时区")),
    ("language", re.compile(r"\blanguage\b|语言|语种")),
    ("text", re.compile(r"\b(?:content|text|message|sentence)\b|文本|内容|原文")),
    ("place", re.compile(_PLACE)),
)
_BARE_PLACE = re.compile(r"^(?:from|to|origin|departure|arrival|source|target)$")
_ISO_8601 = re.compile(r"\biso 8601\b")
_DAYS = re.compile(r"\bdays?\b|天数|几天|多少天")
_NUMBERED = re.compile(r"\bid\b|编号|单号")


@dataclass(frozen=True)
class Parameter:
    """One value that a tool takes."""

    name: str
    schema: Mapping[str, Any]
    required: bool
    root: Mapping[str, Any]
    """The whole schema, for references."""
    depth: int = 0

    @cached_property
    def words(self) -> str:
        """The name in words, folded."""
        return words_of(self.name)

    @property
    def description(self) -> str:
        """The description as given, or nothing."""
        text = self.schema.get("description")
        return text[:500] if isinstance(text, str) else ""

    @cached_property
    def about(self) -> str:
        """Name and description in words, folded."""
        return f"{self.words} {folded_words(self.description)}"

    @property
    def type(self) -> str:
        """The first type that is not null; a guess where none is given."""
        given = self.schema.get("type")
        types = given if isinstance(given, list) else [given]
        guess = "object" if isinstance(self.schema.get("properties"), dict) else "string"
        return next((str(each) for each in types if each in _TYPES), guess)

    @property
    def choices(self) -> list[Any]:
        """The values of an enumeration; empty where there is none."""
        if "const" in self.schema:
            return [self.schema["const"]]
        given = self.schema.get("enum")
        return given[:200] if isinstance(given, list) else []

    @property
    def items(self) -> "Parameter":
        """What an array holds."""
        return _parameter(self.name, self.schema.get("items"), self.required, self.root, self.depth + 1)

    @property
    def properties(self) -> list["Parameter"]:
        """What an object holds; nothing below the depth that is read."""
        return _parameters(self.schema, self.root, self.depth + 1) if self.depth < _DEEPEST else []

    @cached_property
    def role(self) -> str:
        """What it asks for, judged by its type first, then its format and pattern, its name, and its description."""
        if self.choices:
            return "choice"
        if self.type in _STRUCTURED:
            return self.type
        given, pattern = self.schema.get("format"), self.schema.get("pattern")
        if self.type == "string" and isinstance(pattern, str) and given is None:
            return "pattern"
        by_format = _BY_FORMAT.get(given) if self.type == "string" and isinstance(given, str) else None
        return by_format or self._role_by_words()

    @cached_property
    def is_source(self) -> bool:
        """Whether it is where something comes from."""
        return _is(lexicon.SOURCE, lexicon.TARGET, self)

    @cached_property
    def is_target(self) -> bool:
        """Whether it is where something goes to."""
        return _is(lexicon.TARGET, lexicon.SOURCE, self)

    def number(self, key: str) -> float | None:
        """A numeric keyword, such as ``minimum``."""
        value = self.schema.get(key)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def _role_by_words(self) -> str:
        if self.type in ("integer", "number"):
            counts_days = _DAYS.search(self.words) or (self.type == "integer" and _DAYS.search(self.about))
            return "days" if counts_days else "id" if _NUMBERED.search(self.words) else "number"
        by_name = next((role for role, words in _BY_NAME if words.search(self.words)), None)
        if by_name == "time_of_day" and _ISO_8601.search(self.about):
            return "date_time"
        by_description = next((role for role, words in _BY_DESCRIPTION if words.search(self.about)), None)
        return by_name or by_description or ("place" if _BARE_PLACE.search(self.words) else "other")


def _is(wanted: re.Pattern[str], opposite: re.Pattern[str], parameter: Parameter) -> bool:
    """Whether a parameter is on one side, by its name; where that tells nothing, by its description."""
    text = parameter.words
    if not wanted.search(text) and not opposite.search(text):
        text = parameter.about
        return bool(wanted.search(text)) and not opposite.search(text)
    return bool(wanted.search(text))


def parameters_of(schema: Mapping[str, Any]) -> list[Parameter]:
    """Read the parameters of a tool, in their order."""
    return _parameters(schema, schema, 0)


def _parameters(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> list[Parameter]:
    properties, listed = schema.get("properties"), schema.get("required")
    required = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    if not isinstance(properties, dict):
        return []
    names = [name for name in list(properties)[:_MOST_PARAMETERS] if isinstance(name, str)]
    return [_parameter(name, properties[name], name in required, root, depth) for name in names]


def _parameter(name: str, schema: Any, required: bool, root: Mapping[str, Any], depth: int) -> Parameter:
    return Parameter(name[:100], _resolved(schema, root), required, root, depth)


def _resolved(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    """Follow references, and alternatives to the first that is not null."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return {}
    reference = schema.get("$ref")
    listed = [each for key in ("anyOf", "oneOf", "allOf") if isinstance(each := schema.get(key), list)]
    if isinstance(reference, str):
        alternatives = [_referred(reference, root)]
    elif listed:
        alternatives = listed[0][:5]
    else:
        return schema
    resolved = [_resolved(each, root, depth + 1) for each in alternatives]
    first = next((each for each in resolved if each and each.get("type") != "null"), {})
    return {**first, **{key: value for key, value in schema.items() if key not in _INDIRECT}}


def _referred(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found
