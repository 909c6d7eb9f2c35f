"""What a tool is about and what it takes, read out of its definition, however odd its JSON Schema is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from app.offline import lexicon
from app.offline.question import CONCEPT, Question, folded_words, terms
from app.tool_calling.definition import ToolDefinition

__all__ = ["KnownTool", "Parameter"]

_MOST_PARAMETERS, _DEEPEST = 50, 4
_ENOUGH, _ENOUGH_WITHOUT_THE_NAME = 2.0, 4.0
"""A tool whose name is about something else must be close in other ways: an alarm also has a time."""
_INDIRECT = ("$ref", "anyOf", "oneOf", "allOf")
_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_BY_FORMAT = {"date-time": "date_time", "time": "time_of_day", "uri": "url", "uuid": "id"}
_BY_FORMAT |= {each: each for each in ("duration", "date", "email")}
# What the name of a parameter says about its role, the first that fits; for some roles also its description.
_ROLES = {
    "time_zone": re.compile(r"\btime ?zone|\btz\b|时区"),
    "language": re.compile(r"\b(?:lang|language|locale)\b|语言|语种"),
    "place": re.compile(
        r"\b(?:city|cities|place|location|town|destination|country|region)\b|城市|地点|地名|地区|目的地|出发地|国家"
    ),
    "email": re.compile(r"\be ?mail\b|邮箱"),
    "url": re.compile(r"\b(?:url|uri|link)\b|网址|链接"),
    "date_time": re.compile(r"\b(?:date ?time|timestamp)\b"),
    "date": re.compile(r"\b(?:date|day)\b|日期"),
    "time_of_day": re.compile(r"\b(?:time|clock)\b|时间|时刻"),
    "id": re.compile(r"\b(?:id|no|code|number|sku|isbn|uuid|symbol)\b|编号|单号|号码|代码|序号"),
    "text": re.compile(r"^q$|\b(?:texts?|contents?|sentence|message|body|input)\b|文本|内容|原文"),
    "subject": re.compile(
        r"\b(?:query|question|keywords?|search|prompt|topic|subject|title|term)\b|关键词|主题|标题|问题"
    ),
    "name": re.compile(r"\bname\b|姓名|名字|名称"),
}
_DESCRIBED = ("time_zone", "language", "text", "place")
_BARE_PLACE = re.compile(r"^(?:from|to|origin|departure|arrival|source|target)$")
_ISO_8601, _DAYS, _NUMBERED = (
    re.compile(r"\biso 8601\b"),
    re.compile(r"\bdays?\b|天数|几天|多少天"),
    re.compile(r"\bid\b|编号|单号"),
)
# A name that no sentence holds by chance: it has a capital inside, an underscore or a digit.
_DISTINCTIVE = re.compile(r".[A-Z]|[_0-9-]")


@dataclass(frozen=True)
class Parameter:
    """One value that a tool takes; ``root`` is the whole schema, for references."""

    name: str
    schema: Mapping[str, Any]
    required: bool
    root: Mapping[str, Any]
    depth: int = 0

    @staticmethod
    def of(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> list["Parameter"]:
        """Read the parameters that a schema tells, in their order; nothing below the depth that is read."""
        properties, listed = schema.get("properties"), schema.get("required")
        if not isinstance(properties, dict) or depth > _DEEPEST:
            return []
        required = listed if isinstance(listed, list) else []
        names = [name for name in list(properties)[:_MOST_PARAMETERS] if isinstance(name, str)]
        return [
            Parameter(each[:100], _resolved(properties[each], root), each in required, root, depth) for each in names
        ]

    @cached_property
    def words(self) -> str:
        """The name in words, folded."""
        return folded_words(self.name)

    @property
    def description(self) -> str:
        """The description as given, or nothing."""
        text = self.schema.get("description")
        return text[:500] if isinstance(text, str) else ""

    @cached_property
    def about(self) -> str:
        """Name and description in words, folded."""
        return f"{self.words} {folded_words(self.description)}"

    @cached_property
    def type(self) -> str:
        """The first type that is not null; a guess where none is given."""
        given = self.schema.get("type")
        types = given if isinstance(given, list) else [given]
        guess = "object" if isinstance(self.schema.get("properties"), dict) else "string"
        return next((str(each) for each in types if each in _TYPES), guess)

    @cached_property
    def choices(self) -> list[Any]:
        """The values of an enumeration; empty where there is none."""
        given = [self.schema["const"]] if "const" in self.schema else self.schema.get("enum")
        return given[:200] if isinstance(given, list) else []

    @cached_property
    def items(self) -> "Parameter":
        """What an array holds."""
        return Parameter(
            self.name, _resolved(self.schema.get("items"), self.root), self.required, self.root, self.depth + 1
        )

    @property
    def properties(self) -> list["Parameter"]:
        """What an object holds."""
        return Parameter.of(self.schema, self.root, self.depth + 1)

    @cached_property
    def role(self) -> str:
        """What it asks for, judged by its type first, then its format and pattern, its name, and its description."""
        if self.choices or self.type in ("boolean", "array", "object"):
            return "choice" if self.choices else self.type
        if self.type in ("integer", "number"):
            counts_days = _DAYS.search(self.words) or (self.type == "integer" and _DAYS.search(self.about))
            return "days" if counts_days else "id" if _NUMBERED.search(self.words) else "number"
        given = self.schema.get("format")
        if given is None and isinstance(self.schema.get("pattern"), str):
            return "pattern"
        by_format = _BY_FORMAT.get(given) if isinstance(given, str) else None
        by_name = next((role for role, words in _ROLES.items() if words.search(self.words)), None)
        if by_name == "time_of_day" and _ISO_8601.search(self.about):
            by_name = "date_time"
        described = next((role for role in _DESCRIBED if _ROLES[role].search(self.about)), None)
        return by_format or by_name or described or ("place" if _BARE_PLACE.search(self.words) else "other")

    def is_side(self, wanted: re.Pattern[str], opposite: re.Pattern[str]) -> bool:
        """Whether it is where something comes from, or goes to, by its name, else by its description."""
        if wanted.search(self.words) or opposite.search(self.words):
            return wanted.search(self.words) is not None
        return wanted.search(self.about) is not None and not opposite.search(self.about)

    @cached_property
    def is_source(self) -> bool:
        """Whether it is where something comes from."""
        return self.is_side(lexicon.SOURCE, lexicon.TARGET)

    @cached_property
    def is_plain(self) -> bool:
        """Whether any question may give it as ``name=value``: a number or a plain word with a name of its own."""
        return len(self.words) > 1 and self.role in ("number", "days", "other", "id", "name")

    def number(self, key: str) -> float | None:
        """A numeric keyword, such as ``minimum``."""
        value = self.schema.get(key)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None


@dataclass(frozen=True)
class KnownTool:
    """A tool and what it is about."""

    definition: ToolDefinition

    @property
    def name(self) -> str:
        """Its name."""
        return self.definition.name

    @cached_property
    def parameters(self) -> list[Parameter]:
        """What it takes."""
        return Parameter.of(self.definition.input_schema, self.definition.input_schema)

    @cached_property
    def roles(self) -> list[str]:
        """What its parameters ask for, in their order."""
        return [each.role for each in self.parameters]

    @cached_property
    def result_fields(self) -> Mapping[str, Mapping[str, Any]]:
        """The schemas of the fields of its results by their names, wherever they stand."""
        schema = self.definition.output_schema
        parts = [schema, *_mapping(schema.get("$defs")).values()]
        fields = [item for part in parts for item in _mapping(_mapping(part).get("properties")).items()]
        return {key: each for key, each in fields if isinstance(each, Mapping)}

    @cached_property
    def name_terms(self) -> frozenset[str]:
        """What its name is about; a clock that is asked for the date tells it as well."""
        found = frozenset(terms(folded_words(self.name)))
        return found | {f"{CONCEPT}date"} if f"{CONCEPT}time" in found else found

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """How strongly each term speaks for it: 3 in its name, 2 in its description, 1 in its parameters."""
        weights: dict[str, float] = {}
        for parameter in self.parameters:
            for text in (parameter.about, *(each for each in parameter.choices if isinstance(each, str))):
                weights.update(dict.fromkeys(terms(folded_words(text)), 1.0))
        weights.update(dict.fromkeys(terms(folded_words(self.definition.description)), 2.0))
        return weights | dict.fromkeys(self.name_terms, 3.0)

    def score(self, about: Mapping[str, int]) -> tuple[float, int]:
        """How close it is to what a text is about, and where that begins, negative; nothing when it is not close."""
        shared = self.weights.keys() & about.keys()
        score = sum(self.weights[term] * (0.5 if term.startswith("pair:") else 1) for term in shared)
        concepts = {each for each in self.name_terms if each.startswith(CONCEPT)}
        # A name that is more than concepts asks for no other words in a question about it.
        is_fitting = concepts != self.name_terms or not concepts or not concepts.isdisjoint(about)
        is_enough = score >= (_ENOUGH if is_fitting else _ENOUGH_WITHOUT_THE_NAME)
        return (score, -min(about[term] for term in shared)) if is_enough else (0, 0)

    @property
    def undoes(self) -> bool:
        """Whether it takes something back."""
        return lexicon.UNDOES.search(f"{self.name} {self.definition.description}".lower()) is not None

    def is_about(self, concept: str) -> bool:
        """Whether anything about it speaks of a concept."""
        return CONCEPT + concept in self.weights

    def is_named_in(self, question: Question) -> bool:
        """Whether the question gives its very name; a plain word counts only in front of arguments."""
        found = re.search(rf"(?<![\w-]){re.escape(self.name)}(?![\w-])", question.raw)
        is_in_front = found is not None and found.start() == 0 and bool(self._pairs(question, is_named=True))
        return found is not None and (is_in_front or _DISTINCTIVE.search(self.name) is not None)

    def pairs_in(self, question: Question) -> dict[str, str]:
        """The arguments that a question gives as ``name: value``, as written, by the folded name.

        Where the tool itself is named, a list or a text goes on to the next name; else a number or a plain word may also
        be given as ``name is value``.
        """
        return self._pairs(question, is_named=self.is_named_in(question))

    def _pairs(self, question: Question, *, is_named: bool) -> dict[str, str]:
        by_name = {each.name.lower(): each for each in self.parameters if is_named or each.is_plain}
        names = "|".join(map(re.escape, sorted(filter(None, by_name), key=len, reverse=True)))
        sign = r"\s*[:=]" if is_named else r" ?(?:=|:|为|是|is\b) ?(?=[\w.+-])"
        starts = list(re.finditer(rf"(?<![\w-])({names}){sign}", question.flat)) if names else []
        ends = [*(match.start() for match in starts[1:]), len(question.raw)]
        given: dict[str, str] = {}
        for match, end in zip(starts, ends, strict=False):
            text = question.raw[match.end() : end].strip(" ,;，；\n")
            if not is_named or by_name[match[1]].type not in ("array", "string"):
                text = re.split(r"[,;，；\n]" if is_named else r"[^\w.+-]", text)[0]
            given.setdefault(match[1], text.strip(" \"“”'"))
        return {name: text for name, text in given.items() if text}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _resolved(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    """Follow references, and alternatives to the first that is not null."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return {}
    reference, found = schema.get("$ref"), root
    alternatives = next((each for key in _INDIRECT[1:] if isinstance(each := schema.get(key), list)), [])
    if isinstance(reference, str):
        for step in reference.removeprefix("#").strip("/").split("/"):
            found = _mapping(found).get(step)
        alternatives = [found]
    elif not alternatives:
        return schema
    resolved = [_resolved(each, root, depth + 1) for each in alternatives[:5]]
    first = next((each for each in resolved if each and each.get("type") != "null"), {})
    return {**first, **{key: value for key, value in schema.items() if key not in _INDIRECT}}
