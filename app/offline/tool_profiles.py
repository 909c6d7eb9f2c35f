"""Tool profiles: the topics and parameters of a tool, from its definition; any JSON Schema is accepted."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from app.offline import lexicon
from app.offline.numbers import numbers
from app.offline.question import Question, folded_words, terms
from toolchat.tool_calling.definition import ToolDefinition
from toolchat.tool_calling.json_schema import resolve

__all__ = ["Parameter", "ToolProfile"]

_MOST_PARAMETERS, _MOST_ITEMS, _DEEPEST = 50, 20, 4
_BOOLEANS = {"true": True, "yes": True, "on": True, "是": True, "false": False, "no": False, "off": False, "否": False}
_ENOUGH, _ENOUGH_WITHOUT_THE_NAME = 2.0, 4.0
"""A tool whose name is about something else must be close in other ways: an alarm also has a time."""
_INDIRECT = ("$ref", "anyOf", "oneOf", "allOf")
_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_BY_FORMAT = {"date-time": "date_time", "time": "time_of_day", "duration": "duration", "date": "date", "uuid": "id"}
# What the name of a parameter says about its role, the first that fits; for some roles also its description.
_PLACE = r"\b(?:city|cities|place|location|town|destination|country|region)\b|城市|地点|地名|地区|目的地|出发地|国家"
_ROLES = {
    "time_zone": re.compile(r"\btime ?zone|\btz\b|时区"),
    "language": re.compile(r"\b(?:lang|language|locale)\b|语言|语种"),
    "place": re.compile(_PLACE),
    "date_time": re.compile(r"\b(?:date ?time|timestamp)\b"),
    "date": re.compile(r"\b(?:date|day)\b|日期"),
    "time_of_day": re.compile(r"\b(?:time|clock)\b|时间|时刻"),
    "id": re.compile(r"\b(?:id|no|code|number|sku|isbn|uuid|symbol)\b|编号|单号|号码|代码|序号"),
    "text": re.compile(r"^q$|\b(?:texts?|contents?|sentence|message|body|input)\b|文本|内容|原文"),
}
# "to" and "from" are places, unless the description speaks of a person.
_SOMEBODY = re.compile(r"\b(?:name|receiver|recipient|sender|person|user|customer)\b|姓名|名字|[收寄]件人|用户|客户")
_DESCRIBED = ("time_zone", "language", "text", "place")
_BARE_PLACE = re.compile(r"^(?:from|to|origin|departure|arrival|source|target)$")
_DAYS = re.compile(r"\bdays?\b|天数|几天|多少天")
# A name that no sentence holds by chance: it has a capital inside, an underscore or a digit.
_DISTINCTIVE = re.compile(r".[A-Z]|[_0-9-]")


@dataclass(frozen=True)
class Parameter:
    """One value that a tool takes.

    Args:
        name: As the schema gives it; ``words`` is that in words, folded, ``about`` these and the description.
        schema: Without references, and with the first alternative that is not null.
        role: What it asks for, judged by its type first, then its format and pattern, its name, and its description.
        side: ``source`` where something comes from, ``target`` where it goes to, by its name, else its description.
        choices: The values of an enumeration; empty where there is none.
        inner: What an object holds, or the one thing of which an array holds several.
    """

    name: str
    schema: Mapping[str, Any]
    required: bool
    words: str
    about: str
    type: str
    role: str
    side: str
    choices: list[Any]
    inner: list["Parameter"]

    def as_number(self, value: float) -> float | None:
        """A number in its type; ``None`` where it cannot be that."""
        whole = int(value) == value
        return None if self.type == "integer" and not whole else int(value) if whole else value

    def typed(self, text: str) -> Any:
        """A value that was given as a text, in its type; ``None`` where it cannot be that."""
        if self.choices:
            return next((each for each in self.choices if str(each).lower() == text.lower()), None)
        if self.type == "array":
            parts = [each.strip() for each in re.split(r"[,，、;；]", text)[:_MOST_ITEMS]]
            items = [inner.typed(each) for each in parts for inner in self.inner if each]
            return [each for each in items if each is not None] or None
        if self.type in ("integer", "number"):
            return next((self.as_number(each.value) for each in numbers(text)), None)
        return {"boolean": _BOOLEANS.get(text.lower()), "string": text}.get(self.type)

    def number(self, key: str) -> float | None:
        """A numeric keyword, such as ``minimum``."""
        value = self.schema.get(key)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _parameters(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> list[Parameter]:
    """Read the parameters that a schema tells, in their order; nothing below the depth that is read."""
    properties, listed = schema.get("properties"), schema.get("required")
    required = listed if isinstance(listed, list) else []
    properties = properties if isinstance(properties, dict) and depth <= _DEEPEST else {}
    names = [each for each in list(properties)[:_MOST_PARAMETERS] if isinstance(each, str)]
    return [_parameter(each, properties[each], each in required, root, depth) for each in names]


def _parameter(name: str, given: Any, required: bool, root: Mapping[str, Any], depth: int) -> Parameter:
    schema = _resolved(given, root)
    words, description = folded_words(name[:100]), schema.get("description")
    about = f"{words} {folded_words(description[:500] if isinstance(description, str) else '')}"
    stated = schema.get("type")
    types = stated if isinstance(stated, list) else [stated]
    guess = "object" if isinstance(schema.get("properties"), dict) else "string"
    kind = next((str(each) for each in types if each in _TYPES), guess)
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    choices = values[:200] if isinstance(values, list) else []
    inner = _parameters(schema, root, depth + 1) if kind == "object" else []
    if kind == "array" and depth <= _DEEPEST:
        inner = [_parameter(name, schema.get("items"), required, root, depth + 1)]
    role = "choice" if choices else _role(kind, schema, words, about)
    side = _side(words) or _side(about)
    return Parameter(name[:100], schema, required, words, about, kind, role, side, choices, inner)


def _side(text: str) -> str:
    sides = {"source": lexicon.SOURCE, "target": lexicon.TARGET}
    named = [side for side, pattern in sides.items() if pattern.search(text)]
    return named[0] if len(named) == 1 else ""


def _role(kind: str, schema: Mapping[str, Any], words: str, about: str) -> str:
    if kind in ("integer", "number"):
        counts_days = _DAYS.search(words) or (kind == "integer" and _DAYS.search(about))
        return "days" if counts_days else "id" if words.split()[-1:] == ["id"] else "number"
    given = schema.get("format")
    if kind != "string" or (given is None and isinstance(schema.get("pattern"), str)):
        return "pattern" if kind == "string" else kind
    by_format = _BY_FORMAT.get(given) if isinstance(given, str) else None
    by_name = next((role for role, pattern in _ROLES.items() if pattern.search(words)), None)
    if by_name == "time_of_day" and "iso 8601" in about:
        by_name = "moment" if lexicon.WANTS_DURATIONS.search(about) else "date_time"
    described = next((role for role in _DESCRIBED if _ROLES[role].search(about)), None)
    is_place = _BARE_PLACE.search(words) and not _SOMEBODY.search(about)
    return by_format or by_name or described or ("place" if is_place else "other")


def _resolved(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    """Follow references, and alternatives to the first that is not null."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return {}
    reference = schema.get("$ref")
    alternatives = next((each for key in _INDIRECT[1:] if isinstance(each := schema.get(key), list)), [])
    if isinstance(reference, str):
        alternatives = [_target(reference, root)]
    elif not alternatives:
        return schema
    resolved = [_resolved(each, root, depth + 1) for each in alternatives[:5]]
    first = next((each for each in resolved if each and each.get("type") != "null"), {})
    return {**first, **{key: value for key, value in schema.items() if key not in _INDIRECT}}


def _target(reference: str, root: Mapping[str, Any]) -> Any:
    try:
        return resolve(reference, root)
    except LookupError:
        return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


class ToolProfile:
    """A tool, its topics and its parameters.

    Attributes:
        definition: The offered tool.
        parameters: Its parameters; ``roles`` are theirs, in order.
        name_terms: The terms of its name; a tool for the time also counts as one for the date.
        weights: The weight of each term: 3 in its name, 2 in its description, 1 in its parameters.
    """

    def __init__(self, definition: ToolDefinition) -> None:
        self.definition, self.name = definition, definition.name
        self.parameters = _parameters(definition.input_schema, definition.input_schema)
        self.roles = [each.role for each in self.parameters]
        name_terms = set(terms(folded_words(self.name)))
        self.name_terms = name_terms | ({f"{lexicon.CONCEPT}date"} if f"{lexicon.CONCEPT}time" in name_terms else set())
        about = [text for each in self.parameters for text in (each.about, *map(str, each.choices))]
        self.weights = {term: 1.0 for text in about for term in terms(folded_words(text))}
        self.weights |= dict.fromkeys(terms(folded_words(definition.description)), 2.0)
        self.weights |= dict.fromkeys(self.name_terms, 3.0)

    @cached_property
    def result_fields(self) -> Mapping[str, Mapping[str, Any]]:
        """The schemas of its results' fields, at any depth, by name."""
        schema = self.definition.output_schema
        parts = [schema, *_mapping(schema.get("$defs")).values()]
        fields = [item for part in parts for item in _mapping(_mapping(part).get("properties")).items()]
        return {key: each for key, each in fields if isinstance(each, Mapping)}

    def score(self, about: Mapping[str, int]) -> tuple[float, int]:
        """How well it matches the terms of a text, and the negative position of the match; zeros if it does not."""
        shared = self.weights.keys() & about.keys()
        score = sum(self.weights[term] * (0.5 if term.startswith("pair:") else 1) for term in shared)
        concepts = {each for each in self.name_terms if each.startswith(lexicon.CONCEPT)}
        # A name that is more than concepts asks for no other words in a question about it.
        is_fitting = concepts != self.name_terms or not concepts or not concepts.isdisjoint(about)
        is_enough = score >= (_ENOUGH if is_fitting else _ENOUGH_WITHOUT_THE_NAME)
        return (score, -min(about[term] for term in shared)) if is_enough else (0, 0)

    def is_about(self, concept: str) -> bool:
        """Whether its name, description or parameters mention a concept."""
        return lexicon.CONCEPT + concept in self.weights

    def is_named_in(self, question: Question) -> bool:
        """Whether the question has its exact name; a plain word counts only before arguments."""
        found = re.search(rf"(?<![\w-]){re.escape(self.name)}(?![\w-])", question.readable)
        if found is None or _DISTINCTIVE.search(self.name):
            return found is not None
        return found.start() == 0 and bool(self.pairs_in(question))

    def pairs_in(self, question: Question) -> dict[str, str]:
        """The arguments that a question writes as ``name: value``, by the folded name; each ends at the next name."""
        by_name = {each.name.lower(): each for each in self.parameters if each.name}
        names = "|".join(map(re.escape, sorted(by_name, key=len, reverse=True)))
        starts = list(re.finditer(rf"(?<![\w-])({names})\s*[:=]", question.flat)) if names else []
        ends = [*(match.start() for match in starts[1:]), len(question.raw)]
        given: dict[str, str] = {}
        for match, end in zip(starts, ends, strict=False):
            text = question.raw[match.end() : end].strip(" ,;，；\n")
            if by_name[match[1]].type not in ("array", "string"):
                text = re.split(r"[,;，；\n]", text)[0]
            given.setdefault(match[1], text.strip(" \"“”'"))
        return {name: text for name, text in given.items() if text}
