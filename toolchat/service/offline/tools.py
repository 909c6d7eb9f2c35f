"""Offered tools: the words by which a question names them, and their parameters as their schemas declare them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, ValidationError

from toolchat.service.offline.text import Text
from toolchat.service.offline.values import Value
from toolchat.service.offline.words import FUNCTION_WORDS, HAN_WORDS, SYNONYMS, UNITS, terms_of
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata
from toolchat.tool_calling.json_schema import alternatives
from toolchat.tool_calling.recognizers import Recognizer
from toolchat.tool_calling.text_normalization import normalize_name

_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_SEAM = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9㐀-鿿]+")
_FORMATS = {"date": "date", "time": "time", "date-time": "duration", "duration": "duration"}
_FORMATS |= dict.fromkeys(("uuid", "uri", "email"), "word")
# The role of a text by its name.
_ROLES = {
    "date": r"\b(?:date|since|until)\b|日期",
    "word": r"\b(?:time ?zone|tz|path|file|url|link|e ?mail|address|currency|id|code|sku|isbn|symbol)\b"
    r"|路径|邮箱|网址|编号|单号|号码|代码|^(?:number|order)$",
}
_ACCEPTED = {
    "days": ("day", "days", "number"),
    "date": ("date", "day"),
    "duration": ("duration",),
    "word": ("word", "number", "quoted"),
    "pattern": ("word", "number", "quoted", "date", "time"),
    "text": ("quoted", "word"),
}
SUCH_AS = re.compile(r"(?:\bsuch as|\be\.g\.|\bfor example,?|例如|比如)\s*([\w/+-]+(?: [A-Z][\w-]*)*)")
"""An example in a description: a value, and no word for the tool."""
_SIDES = {"from": r"\b(?:from|source|origin|old)\b|源|出发", "to": r"\b(?:to|target|destination|new)\b|目标|目的"}
_NUMBERS = {"integer": "int", "number": "float"}


@dataclass(frozen=True, eq=False)
class Parameter:
    """One value that a tool takes; ``role`` is what fills it, ``words`` its name, ``about`` also its description."""

    name: str
    schema: Mapping[str, Any]
    required: bool
    type: str
    role: str
    words: str
    about: str
    recognizer: Recognizer | None

    @property
    def kind(self) -> object:
        """Parameters of one kind are filled by the same values."""
        return self.recognizer.find if self.recognizer else self.role if self.role != "choice" else str(self.choices)

    @property
    def fixed(self) -> Any:
        """Its value where the question has none."""
        return self.schema.get("const", self.schema.get("default"))

    @property
    def choices(self) -> list[Any]:
        """The values of an enumeration."""
        values = [self.schema["const"]] if "const" in self.schema else self.schema.get("enum")
        return values[:100] if isinstance(values, list) else []

    @cached_property
    def side(self) -> str:
        """``from`` if something comes from it, ``to`` if it goes there, else nothing."""
        found = [side for side, form in _SIDES.items() if re.search(form, self.words)]
        return found[0] if len(found) == 1 else ""

    @cached_property
    def names(self) -> str:
        """The form of its name, and for a number of its words, without the ``s`` of a plural."""
        words = {self.name.lower(), self.words}
        if self.role == "number":
            words |= {*self.words.split(), *re.findall("[a-z]{4,}|[㐀-鿿]{2,4}", self.about)}
        singular = {each.removesuffix("s") or each for each in words if each}
        return "|".join(map(re.escape, sorted(singular, key=len, reverse=True)))

    @cached_property
    def _validator(self) -> SchemaValidator:
        """Pydantic's own engine; its patterns take linear time. One that cannot be read allows nothing."""
        limits = {"minimum": "ge", "maximum": "le"} if self.type in _NUMBERS else {"pattern": "pattern"}
        kind = _NUMBERS.get(self.type, "bool" if self.type == "boolean" else "str")
        given = {short: self.schema[keyword] for keyword, short in limits.items() if keyword in self.schema}
        with suppress(SchemaError):
            return SchemaValidator({"type": kind, **given})
        return SchemaValidator({"type": "none"})

    def fit(self, value: Any) -> Any:
        """A value, also a written one, in the type and within the limits of the schema; ``None`` if it does not fit."""
        with suppress(ValidationError, OverflowError, TypeError, ValueError):
            fitting = self._validator.validate_python(value)
            return int(fitting) if isinstance(fitting, float) and fitting.is_integer() else fitting
        return None

    def values_in(self, text: Text, values: Iterable[Value]) -> list[Value]:
        """What of a question can fill the parameter, in the form of its schema."""
        if self.recognizer:
            found = [Value(self.role, *each) for each in self.recognizer.find(text.readable)]
        elif self.role in ("choice", "boolean"):
            found = [
                Value(self.role, value, *match.span())
                for value, form in self._forms
                for match in form.finditer(text.command)
            ]
            return sorted(found, key=lambda each: (each.start, -each.end))
        else:
            found = [each for each in values if each.kind in _ACCEPTED.get(self.role, (self.role,))]
            found = [each for each in found if self.role != "word" or not re.search(r"\s", str(each.value))]
            found += self._written_out(text) if self.role == "text" else []
            found = [each for each in found if each.kind != "number" or self._measures(text.command[each.end :])]
        fitting = (Value(each.kind, self._become(each, text), each.start, each.end) for each in found)
        return sorted((each for each in fitting if each.value is not None), key=lambda each: each.start)

    def _written_out(self, text: Text) -> Iterator[Value]:
        """What stands behind the name and a colon: ``to: Bob, text: "hello"``."""
        form = rf"(?<![\w-]){re.escape(self.name.lower())}\s?[:=]\s?([^\s\0,;:=\"“'(][^\0,;\n]{{0,200}})"
        for match in re.finditer(form, text.command):
            yield Value("text", text.raw[match.start(1) : match.end(1)].rstrip(), *match.span(1))

    def _measures(self, behind: str) -> bool:
        """Whether behind a number there is no other unit than that of the parameter's name."""
        own = [each for each in UNITS if each.search(self.words)]
        return not (own and any(each.match(behind.lstrip(" -°")) for each in UNITS if each not in own))

    def _become(self, value: Value, text: Text) -> Any:
        if self.role == "date" and value.kind == "day":
            return (date.today() + timedelta(value.value - 1)).isoformat()
        if self.type != "string":
            return self.fit(value.value)
        # The digits of an id are taken as they are written: 007.
        written = text.raw[value.start : value.end] if value.kind == "number" else str(value.value)
        return next((each for each in map(self.fit, (written, written.upper())) if each is not None), None)

    @cached_property
    def _forms(self) -> list[tuple[Any, re.Pattern[str]]]:
        """The values of an enumeration or a switch, each with the form of its names as whole words."""
        names = self._switch() if self.role == "boolean" else self._names()
        # A single letter may be any word: "a".
        return [(value, re.compile(_form(name))) for value, name in names if name and not re.fullmatch("[a-z]", name)]

    def _names(self) -> Iterator[tuple[Any, str]]:
        for choice in self.choices:
            written = str(choice).lower()[:60]
            described = re.findall(rf"\b{re.escape(written)}\W{{1,2}}([㐀-鿿]{{1,8}})", self.about)
            spelled = {written, written.replace("_", " "), *SYNONYMS.get(written, ()), *described}
            yield from ((choice, name) for name in sorted(spelled))

    def _switch(self) -> Iterator[tuple[Any, str]]:
        if re.search(r"\b(?:on|enabled?|power|state)\b|开关", self.words):
            yield from ((True, "on"), (True, "开"), (False, "off"), (False, "关"))
            return
        for name in (self.words, *re.findall(r"[a-z]{4,}|[㐀-鿿]{2,}", self.words)):
            yield True, name
            yield from ((False, f"{no}{name}") for no in ("without ", "no ", "不要", "不用", "不", "无", "没有"))


def _form(name: str) -> str:
    if not name.isascii():
        return re.escape(name)
    return rf"(?<![a-z0-9]){re.escape(name.removesuffix('s'))}{'s?' if len(name) > 2 else ''}(?![a-z0-9])"


def words_of(identifier: str) -> str:
    """The words of an identifier or a text, folded: ``getCityTime`` is ``get city time``."""
    return normalize_name(_SEAM.sub(" ", identifier)).strip()


class OfferedTool:
    """A tool of a prompt, with the words by which a question names it."""

    def __init__(self, definition: ToolDefinition, metadata: ToolMetadata | None = None) -> None:
        self.definition, self.name, self.metadata = definition, definition.name, metadata or ToolMetadata()
        self.parameters = tuple(_properties(definition.input_schema, dict(self.metadata.recognizers)))
        words = words_of(self.name).split()
        self.name_words = [each for each in words if each not in FUNCTION_WORDS] or words
        description = normalize_name(definition.description[:1000])
        about = "\n".join(" ".join(map(str, (each.about, *each.choices))) for each in self.parameters)
        about = SUCH_AS.sub("", about)
        self.han = "\n".join(re.findall("[㐀-鿿]{2,}", f"{words_of(self.name)} {description} {about}"))
        # The weight of each term: 100 as the name, 3 in it, 2 in the description, 1 in the parameters.
        self.vocabulary: dict[str, int] = {}
        for weight, text in ((1, about.lower()), (2, description), (3, " ".join(self.name_words))):
            said = {each for each in re.findall("[a-z]{2,}", text) if weight == 3 or each not in FUNCTION_WORDS}
            han = {each for each in HAN_WORDS if len(each) > 1 and each in text}
            self.vocabulary |= {term: weight for word in (*said, *han) for term in terms_of(word)}
        self.vocabulary |= dict.fromkeys(terms_of(self.name.lower()), 100)

    @property
    def changes_something(self) -> bool:
        """Whether a call may change something and the service itself does not ask for approval."""
        return not (self.metadata.is_read_only or self.metadata.requires_approval)

    @property
    def result_fields(self) -> Mapping[str, Mapping[str, Any]]:
        """The schemas of the result's fields at any depth, by name."""
        schema = self.definition.output_schema
        found: dict[str, Any] = {}
        definitions = schema.get("$defs")
        for part in (schema, *(definitions.values() if isinstance(definitions, Mapping) else ())):
            properties = part.get("properties") if isinstance(part, Mapping) else None
            found |= properties if isinstance(properties, Mapping) else {}
        return {name: each for name, each in found.items() if isinstance(each, Mapping)}


def _properties(schema: Mapping[str, Any], recognizers: Mapping[str, Recognizer]) -> Iterator[Parameter]:
    properties, required = schema.get("properties"), schema.get("required")
    for name in list(properties)[:50] if isinstance(properties, Mapping) else ():
        is_required = isinstance(required, list) and name in required
        yield _parameter(name, schema["properties"][name], is_required, schema, recognizers.get(name))


def _parameter(name: str, given: Any, required: bool, root: Mapping[str, Any], own: Recognizer | None) -> Parameter:
    options = [each for each in alternatives(given, root) if each.get("type") != "null"]
    schema = {**(options[0] if options else {}), **(given if isinstance(given, Mapping) else {})}
    words, about = words_of(name[:100]), normalize_name(str(schema.get("description", ""))[:1000])
    kinds = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    kind = next((each for each in _TYPES if each in kinds), "object" if "properties" in schema else "string")
    about = f"{words} {about}"
    role = "recognized" if own else _role(kind, schema, words, about)
    return Parameter(name, schema, required, kind, role, words, about, own)


def _role(kind: str, schema: Mapping[str, Any], words: str, about: str) -> str:
    if isinstance(schema.get("enum"), list) or "const" in schema:
        return "choice"
    if kind in _NUMBERS:
        return "days" if re.search(r"\bdays\b(?! (?:ahead|from))|天数|几天", about) else "number"
    if kind != "string":
        return kind
    if (given := str(schema.get("format"))) in _FORMATS:
        return _FORMATS[given]
    if isinstance(schema.get("pattern"), str):
        return "pattern"
    if re.search("iso[- ]8601", about):
        return "duration"
    return next((role for role, form in _ROLES.items() if re.search(form, words)), "text")
