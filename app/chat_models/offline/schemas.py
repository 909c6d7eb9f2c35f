"""A tool's parameters out of any JSON Schema, however odd it is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.chat_models.offline.vocabulary import folded_words, words_of

__all__ = ["Parameter", "Parameters", "parameter_of", "parameters_of"]

_MOST_PARAMETERS = 50
_DEEPEST = 4
_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One value that a tool takes."""

    name: str
    schema: Mapping[str, Any]
    required: bool
    root: Mapping[str, Any]
    """The whole schema, for references."""
    depth: int = 0

    @property
    def words(self) -> str:
        """The name in words, folded."""
        return words_of(self.name)

    @property
    def description(self) -> str:
        """The description as given, or nothing."""
        text = self.schema.get("description")
        return text[:500] if isinstance(text, str) else ""

    @property
    def about(self) -> str:
        """Name and description in words, folded."""
        return f"{self.words} {folded_words(self.description)}"

    @property
    def type(self) -> str:
        """The first type that is not null; a guess where none is given."""
        given = self.schema.get("type")
        types = given if isinstance(given, list) else [given]
        named = next((each for each in types if each in _TYPES and each != "null"), None)
        if named is not None:
            return str(named)
        return "object" if isinstance(self.schema.get("properties"), dict) else "string"

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
        return parameter_of(self.name, self.schema.get("items"), self.required, self.root, self.depth + 1)

    @property
    def properties(self) -> "Parameters":
        """What an object holds; nothing below the depth that is read."""
        return Parameters(self.schema if self.depth < _DEEPEST else {}, self.root, self.depth + 1)

    def number(self, key: str) -> float | None:
        """A numeric keyword, such as ``minimum``."""
        value = self.schema.get(key)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of an object schema."""

    schema: Mapping[str, Any]
    root: Mapping[str, Any]
    depth: int = 0

    def __iter__(self) -> Iterator[Parameter]:
        properties = self.schema.get("properties")
        listed = self.schema.get("required")
        required = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
        if not isinstance(properties, dict):
            return
        for name in list(properties)[:_MOST_PARAMETERS]:
            if isinstance(name, str):
                yield parameter_of(name, properties[name], name in required, self.root, self.depth)

    def texts(self) -> Iterator[str]:
        """Names, descriptions and choices: what the parameters are about."""
        for parameter in self:
            yield parameter.name
            yield parameter.description
            yield from (choice for choice in parameter.choices if isinstance(choice, str))


def parameters_of(schema: Mapping[str, Any]) -> Parameters:
    """Read the parameters of a tool."""
    return Parameters(schema, schema)


def parameter_of(name: str, schema: Any, required: bool, root: Mapping[str, Any], depth: int = 0) -> Parameter:
    """Read one parameter; references and alternatives are followed to the first that is not null."""
    return Parameter(name[:100], _resolved(schema, root), required, root, depth)


def _resolved(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return {}
    if isinstance(schema.get("$ref"), str):
        return {**_resolved(_referred(schema["$ref"], root), root, depth + 1), **_without(schema, "$ref")}
    for key in ("anyOf", "oneOf", "allOf"):
        alternatives = schema.get(key)
        if isinstance(alternatives, list):
            resolved = [_resolved(each, root, depth + 1) for each in alternatives[:5]]
            first = next((each for each in resolved if each and each.get("type") != "null"), {})
            return {**first, **_without(schema, key)}
    return schema


def _referred(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _without(schema: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != key}
