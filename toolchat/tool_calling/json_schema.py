"""JSON Schema: resolve references, list alternatives, transform subschemas, and validate JSON.

Schemas may come from other servers, so nothing here trusts their form: a keyword may hold a value of any type.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from pydantic_core import CoreSchema, SchemaError, SchemaValidator, core_schema

Schema = Mapping[str, Any]

MAPS_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose value maps names to schemas."""
_DATA = ("default", "const", "enum", "examples", "example")
"""Keywords whose value is data: what looks like a schema in it is none."""
_MAX_DEPTH = 20
"""References and unions on the way to an alternative; a schema that refers to itself has no end."""


def resolve(reference: str, root: Schema) -> Any:
    """The part of a schema to which a reference such as ``#/$defs/Place`` points (RFC 6901); else ``LookupError``."""
    if not reference.startswith("#"):
        raise LookupError(f"{reference} is in another document")
    target: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        # "~1" must be decoded before "~0", or "~01" would become a slash.
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if not isinstance(target, Mapping) or name not in target:
            raise LookupError(f"{reference} has no target")
        target = target[name]
    return target


def alternatives(schema: Any, root: Schema, depth: int = 0) -> Iterator[Schema]:
    """List the schemas of which a value must fit at least one.

    ``{"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]}`` has the alternatives ``Place`` and ``null``. A schema
    without a union is its only alternative; one that cannot be resolved is empty, and so allows everything.
    """
    schema = schema if isinstance(schema, Mapping) and depth < _MAX_DEPTH else {}
    if "$ref" in schema:
        try:
            target = resolve(str(schema["$ref"]), root)
        except LookupError:
            target = {}
        yield from alternatives(target, root, depth + 1)
    elif isinstance(members := schema.get("anyOf") or schema.get("oneOf"), list) and members:
        for member in members:
            yield from alternatives(member, root, depth + 1)
    else:
        yield schema


def map_subschemas(schema: Schema, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Apply a change to a copy of every schema within a schema, innermost first, and last to the schema itself."""

    def changed(value: Any) -> Any:
        return map_subschemas(value, change) if isinstance(value, Mapping) else value

    def mapped(keyword: str, value: Any) -> Any:
        if keyword in _DATA:
            return value
        if keyword in MAPS_OF_SCHEMAS and isinstance(value, Mapping):
            return {name: changed(part) for name, part in value.items()}
        return [changed(part) for part in value] if isinstance(value, list | tuple) else changed(value)

    return change({keyword: mapped(keyword, value) for keyword, value in schema.items()})


def schema_validator(schema: Schema) -> SchemaValidator:
    """Build a validator of JSON text that must be an object and fit a schema.

    Types, constants, bounds, patterns, properties, items, references and unions are validated. Other keywords, such as
    ``format``, ``not`` or ``uniqueItems``, are for the model only. A property that is named by no keyword but a pattern
    may fit any pattern's schema, or that of ``additionalProperties``.
    """
    translation = _Translation(schema)
    core = translation.translate({"type": "object", **schema})
    return SchemaValidator(core_schema.definitions_schema(core, list(translation.definitions.values())))


class _Translation:
    """Translates JSON Schema to pydantic's core schema."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self.definitions: dict[str, CoreSchema] = {}
        self._types: Mapping[str, Callable[[Schema], CoreSchema]] = {
            "null": lambda _: core_schema.none_schema(),
            "boolean": lambda _: core_schema.bool_schema(),
            "integer": lambda schema: core_schema.int_schema(**_bounds(schema, _NUMBER_BOUNDS)),
            "number": _number,
            "string": _text,
            "array": self._array,
            "object": self._object,
        }

    def translate(self, schema: Any) -> CoreSchema:
        """Translate one schema: all of its keywords must hold, and a schema without any accepts everything."""
        parts = list(self._parts(schema)) if isinstance(schema, Mapping) else []
        if len(parts) > 1:
            return core_schema.chain_schema(parts)
        return parts[0] if parts else core_schema.any_schema()

    def _parts(self, schema: Schema) -> Iterator[CoreSchema]:
        if "$ref" in schema:
            yield self._reference(str(schema["$ref"]))
        if "const" in schema or "enum" in schema:
            yield core_schema.literal_schema(list(schema.get("enum", [schema.get("const")])))
        elif types := schema.get("type") or ("object" if "properties" in schema else ""):
            yield _any_of([self._types[each](schema) for each in ([types] if isinstance(types, str) else types)])
        for members in (schema[key] for key in ("anyOf", "oneOf") if key in schema):
            yield _any_of([self.translate(each) for each in members])
        yield from (self.translate(each) for each in schema.get("allOf", ()))

    def _reference(self, reference: str) -> CoreSchema:
        if reference not in self.definitions:
            # Registered before its translation, since a schema may refer to itself.
            self.definitions[reference] = core_schema.any_schema()
            target = self.translate(resolve(reference, self._root))
            self.definitions[reference] = {**target, "ref": reference}
        return core_schema.definition_reference_schema(reference)

    def _array(self, schema: Schema) -> CoreSchema:
        first, rest = schema.get("prefixItems", ()), self.translate(schema.get("items"))
        if first and schema.get("minItems", 0) >= len(first):
            return core_schema.tuple_schema([*map(self.translate, first), rest], variadic_item_index=len(first))
        return core_schema.list_schema(core_schema.any_schema() if first else rest, **_bounds(schema, _ITEM_BOUNDS))

    def _object(self, schema: Schema) -> CoreSchema:
        required, others = schema.get("required", ()), schema.get("additionalProperties", True)
        patterns = schema.get("patternProperties", {})
        properties = {name: {} for name in required} | dict(schema.get("properties", {}))
        fields = {
            name: core_schema.typed_dict_field(self.translate(part), required=name in required)
            for name, part in properties.items()
        }
        if others is False and not patterns:
            return core_schema.typed_dict_schema(fields, extra_behavior="forbid")
        extras = _any_of([self.translate(each) for each in (*patterns.values(), others) if each is not False])
        typed = core_schema.typed_dict_schema(fields, extra_behavior="allow", extras_schema=extras)
        return core_schema.chain_schema([typed, _names(properties, patterns)]) if others is False else typed


def _names(properties: Schema, patterns: Schema) -> CoreSchema:
    """Accept an object whose properties all have a known name, or one that a pattern matches."""
    allowed = [_text({"pattern": each}) for each in patterns]
    if properties:
        allowed.append(core_schema.literal_schema(list(properties)))
    name = core_schema.custom_error_schema(_any_of(allowed), custom_error_type="extra_forbidden")
    return core_schema.dict_schema(name, core_schema.any_schema())


def _any_of(members: Sequence[CoreSchema]) -> CoreSchema:
    return members[0] if len(members) == 1 else core_schema.union_schema([*members])


_NUMBER_BOUNDS = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt",
                  "multipleOf": "multiple_of"}  # fmt: skip
_TEXT_BOUNDS = {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"}
_ITEM_BOUNDS = {"minItems": "min_length", "maxItems": "max_length"}


def _number(schema: Schema) -> CoreSchema:
    bounds = _bounds(schema, _NUMBER_BOUNDS)
    fraction = core_schema.float_schema(**bounds, allow_inf_nan=False)
    return core_schema.union_schema([core_schema.int_schema(**bounds), fraction])


def _text(schema: Schema) -> CoreSchema:
    bounds = _bounds(schema, _TEXT_BOUNDS)
    try:
        SchemaValidator(core_schema.str_schema(**bounds))
    except SchemaError:
        # Rust's regular expressions have no look-around. Python's have, and are slower.
        return core_schema.str_schema(**bounds, regex_engine="python-re")
    return core_schema.str_schema(**bounds)


def _bounds(schema: Schema, names: Mapping[str, str]) -> dict[str, Any]:
    return {name: schema[keyword] for keyword, name in names.items() if keyword in schema}
