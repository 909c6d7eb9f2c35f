"""Offered tools: the words by which a question names them, and their parameters as their schemas declare them."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, ValidationError

from toolchat.service.offline.vocabulary import FUNCTION_WORDS, HAN_WORDS, concepts_of, stem
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata
from toolchat.tool_calling.json_schema import alternatives
from toolchat.tool_calling.text_normalization import normalize_name

_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_SEAM = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9㐀-鿿]+")
_FORMATS = {"date-time": "date_time", "duration": "date_time", "uuid": "id", "uri": "word", "email": "word"}
# The role of a text by its name, else for the first ones by its description.
_ROLES = {
    "zone": r"\btime ?zone|\btz\b|时区",
    "language": r"\b(?:lang|language|locale)\b|语言|语种",
    "place": r"\b(?:city|cities|place|location|town|origin|destination)\b|城市|地点|地名|目的地|出发地",
    "currency": r"\b(?:currency|iso 4217)\b|货币|币种",
    "text": r"^q$|^query$|\b(?:text|content|sentence|phrase|message|body|keywords?)\b|文本|内容|原文|关键词",
    "date_time": r"\b(?:date ?time|timestamp)\b",
    "date": r"\b(?:date|day|since|until)\b|日期",
    "time": r"\b(?:time|clock)\b|时间|时刻",
    "word": r"\b(?:path|file|filename|url|link|e ?mail|address|folder)\b|路径|文件|邮箱|网址",
    "id": r"\b(?:id|code|number|sku|isbn|uuid|symbol|no)\b|编号|单号|号码|代码",
}
_DESCRIBED = ("zone", "language", "place", "currency", "text")
SOMEBODY = re.compile(
    r"^name\b|\b(?:receiver|recipient|sender|person|user|customer|client|employee)\b|姓名|名字|收件人"
)
SUCH_AS = re.compile(r"(?:\bsuch as|\be\.g\.|\bfor example,?|例如|比如)\s*([\w/+-]+(?: [A-Z][\w-]*)*)")
"""An example in a description: a value, and no word for the tool."""
_SIDES = {
    "source": r"\b(?:from|source|origin|departure|old)\b|源|出发",
    "target": r"\b(?:to|target|destination|arrival|new|receiver|recipient)\b|目标|目的",
}
_NUMBERS = {"integer": "int", "number": "float"}


@dataclass(frozen=True, eq=False)
class Parameter:
    """One value that a tool takes.

    Args:
        schema: Without references, and with the first alternative that is not null.
        role: The kind of value: by its type, its format and pattern, its name, then its description.
        words: Its name in words; ``about``: with the description.
    """

    name: str
    schema: Mapping[str, Any]
    required: bool
    type: str
    role: str
    words: str
    about: str

    @cached_property
    def choices(self) -> list[Any]:
        """The values of an enumeration."""
        values = [self.schema["const"]] if "const" in self.schema else self.schema.get("enum")
        return values[:100] if isinstance(values, list) else []

    @property
    def side(self) -> str:
        """``source`` if something comes from it, ``target`` if it goes there, else nothing."""
        for text in (self.words, self.about):
            if len(found := [side for side, form in _SIDES.items() if re.search(form, text)]) == 1:
                return found[0]
        return ""

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
            if self.schema.get("format") == "date":
                return date.fromisoformat(value).isoformat()
            fitting = self._validator.validate_python(value)
            return int(fitting) if isinstance(fitting, float) and fitting.is_integer() else fitting
        return None


def words_of(identifier: str) -> str:
    """The words of an identifier or a text, folded: ``getCityTime`` is ``get city time``."""
    return normalize_name(_SEAM.sub(" ", identifier)).strip()


def terms_of(word: str) -> frozenset[str]:
    """What a word can be matched by: its stem and its concepts."""
    return frozenset((stem(word) if word.isascii() else word,)) | concepts_of(word)


class OfferedTool:
    """A tool of a prompt.

    Attributes:
        vocabulary: The weight of each term: 100 as the name, 3 in it, 2 in the description, 1 in the parameters.
        han: The Chinese text of the declaration, in which parts of a question are found.
        name_words: The words of the name that say what it is about.
    """

    def __init__(self, definition: ToolDefinition, metadata: ToolMetadata | None = None) -> None:
        self.definition, self.name, self.metadata = definition, definition.name, metadata or ToolMetadata()
        self.parameters = tuple(_properties(definition.input_schema))
        words = words_of(self.name).split()
        self.name_words = [each for each in words if each not in FUNCTION_WORDS] or words
        description = normalize_name(definition.description[:1000])
        about = "\n".join(" ".join(map(str, (each.about, *each.choices))) for each in self.parameters)
        about = SUCH_AS.sub("", about)
        self.han = "\n".join(re.findall("[㐀-鿿]{2,}", f"{words_of(self.name)} {description} {about}"))
        self.vocabulary: dict[str, int] = {}
        for weight, text in ((1, about.lower()), (2, description), (3, " ".join(self.name_words))):
            said = {each for each in re.findall("[a-z]{2,}", text) if weight == 3 or each not in FUNCTION_WORDS}
            han = {each for each in HAN_WORDS if each in text}
            self.vocabulary |= {term: weight for word in (*said, *han) for term in terms_of(word)}
        self.vocabulary |= dict.fromkeys(terms_of(self.name.lower()), 100)

    @property
    def changes_something(self) -> bool:
        """Whether a call may change something and the service itself does not ask for approval."""
        return not (self.metadata.is_read_only or self.metadata.requires_approval)

    @cached_property
    def result_fields(self) -> Mapping[str, Mapping[str, Any]]:
        """The schemas of the result's fields at any depth, by name."""
        schema = self.definition.output_schema
        found: dict[str, Any] = {}
        definitions = schema.get("$defs")
        for part in (schema, *(definitions.values() if isinstance(definitions, Mapping) else ())):
            properties = part.get("properties") if isinstance(part, Mapping) else None
            found |= properties if isinstance(properties, Mapping) else {}
        return {name: each for name, each in found.items() if isinstance(each, Mapping)}


def _properties(schema: Mapping[str, Any]) -> Iterator[Parameter]:
    properties, required = schema.get("properties"), schema.get("required")
    for name in list(properties)[:50] if isinstance(properties, Mapping) else ():
        is_required = isinstance(required, list) and name in required
        yield _parameter(name, schema["properties"][name], is_required, schema)


def _parameter(name: str, given: Any, required: bool, root: Mapping[str, Any]) -> Parameter:
    options = [each for each in alternatives(given, root) if each.get("type") != "null"]
    schema = {**(options[0] if options else {}), **(given if isinstance(given, Mapping) else {})}
    words, about = words_of(name[:100]), normalize_name(str(schema.get("description", ""))[:1000])
    kinds = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    kind = next((each for each in _TYPES if each in kinds), "object" if "properties" in schema else "string")
    about = f"{words} {about}"
    return Parameter(name, schema, required, kind, _role(kind, schema, words, about), words, about)


def _role(kind: str, schema: Mapping[str, Any], words: str, about: str) -> str:
    if isinstance(schema.get("enum"), list) or "const" in schema:
        return "choice"
    if kind in _NUMBERS:
        return "days" if re.search(r"\bdays\b(?! (?:ahead|from))|天数|几天", about) else "number"
    if kind != "string":
        return kind
    if (given := str(schema.get("format"))) in ("date", "time", *_FORMATS):
        return _FORMATS.get(given, given)
    if isinstance(schema.get("pattern"), str):
        return "pattern"
    role = next((role for role, form in _ROLES.items() if re.search(form, words)), "")
    role = role or next((role for role in _DESCRIBED if re.search(_ROLES[role], about)), "other")
    if role == "time" and re.search(r"iso[- ]8601", about):
        return "date_time"
    is_place = role == "other" and re.fullmatch("from|to|source|target", words) and not SOMEBODY.search(about)
    return "place" if is_place else role
