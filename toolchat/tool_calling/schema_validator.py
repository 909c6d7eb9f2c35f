"""A check by a JSON Schema that no Python type stands behind."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import CoreSchema, SchemaError, SchemaValidator, core_schema

__all__ = ["schema_validator"]

_Schema = Mapping[str, Any]


def schema_validator(schema: _Schema) -> SchemaValidator:
    """Make a check of JSON text that must be an object and fit a schema.

    Types, constants, bounds, patterns, properties, items, references and unions are checked. Other keywords, such as
    ``format``, ``not`` or ``uniqueItems``, only the model reads.

    Raises:
        SchemaError: a keyword has a value that makes no sense.
        LookupError: a reference leads nowhere, or there is no such type.
    """
    translation = _Translation(schema)
    core = translation.of({"type": "object", **schema})
    return SchemaValidator(core_schema.definitions_schema(core, list(translation.definitions.values())))


class _Translation:
    """From JSON Schema to pydantic's own."""

    def __init__(self, root: _Schema) -> None:
        self._root = root
        self.definitions: dict[str, CoreSchema] = {}
        self._types: Mapping[str, Callable[[_Schema], CoreSchema]] = {
            "null": lambda _: core_schema.none_schema(),
            "boolean": lambda _: core_schema.bool_schema(),
            "integer": lambda schema: core_schema.int_schema(**_bounds(schema, _OF_NUMBERS)),
            "number": _number,
            "string": _text,
            "array": self._array,
            "object": self._object,
        }

    def of(self, schema: Any) -> CoreSchema:
        """What a schema becomes: all that it says must hold, and one that says nothing takes everything."""
        parts = list(self._parts(schema)) if isinstance(schema, Mapping) else []
        if len(parts) > 1:
            return core_schema.chain_schema(parts)
        return parts[0] if parts else core_schema.any_schema()

    def _parts(self, schema: _Schema) -> Iterator[CoreSchema]:
        if "$ref" in schema:
            yield self._reference(str(schema["$ref"]))
        if "const" in schema or "enum" in schema:
            yield core_schema.literal_schema(list(schema.get("enum", [schema.get("const")])))
        elif types := schema.get("type") or ("object" if "properties" in schema else ""):
            yield self._any_of([self._types[each](schema) for each in ([types] if isinstance(types, str) else types)])
        for members in (schema[key] for key in ("anyOf", "oneOf") if key in schema):
            yield self._any_of([self.of(each) for each in members])
        yield from (self.of(each) for each in schema.get("allOf", ()))

    def _any_of(self, members: Sequence[CoreSchema]) -> CoreSchema:
        return members[0] if len(members) == 1 else core_schema.union_schema([*members])

    def _reference(self, reference: str) -> CoreSchema:
        if reference not in self.definitions:
            self.definitions[reference] = core_schema.any_schema()  # Known from here on: it may refer to itself.
            target: Any = self._root
            for step in reference.removeprefix("#").split("/")[1:]:
                target = target[step.replace("~1", "/").replace("~0", "~")]
            self.definitions[reference] = {**self.of(target), "ref": reference}
        return core_schema.definition_reference_schema(reference)

    def _array(self, schema: _Schema) -> CoreSchema:
        first, rest = schema.get("prefixItems", ()), self.of(schema.get("items"))
        if first and schema.get("minItems", 0) >= len(first):
            return core_schema.tuple_schema([*map(self.of, first), rest], variadic_item_index=len(first))
        return core_schema.list_schema(core_schema.any_schema() if first else rest, **_bounds(schema, _OF_ITEMS))

    def _object(self, schema: _Schema) -> CoreSchema:
        required, others = schema.get("required", ()), schema.get("additionalProperties", True)
        properties = {name: {} for name in required} | dict(schema.get("properties", {}))
        fields = {
            name: core_schema.typed_dict_field(self.of(part), required=name in required)
            for name, part in properties.items()
        }
        if others is False:
            return core_schema.typed_dict_schema(fields, extra_behavior="forbid")
        return core_schema.typed_dict_schema(fields, extra_behavior="allow", extras_schema=self.of(others))


_OF_NUMBERS = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt",
               "multipleOf": "multiple_of"}  # fmt: skip
_OF_TEXT = {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"}
_OF_ITEMS = {"minItems": "min_length", "maxItems": "max_length"}


def _number(schema: _Schema) -> CoreSchema:
    bounds = _bounds(schema, _OF_NUMBERS)
    fraction = core_schema.float_schema(**bounds, allow_inf_nan=False)
    return core_schema.union_schema([core_schema.int_schema(**bounds), fraction])


def _text(schema: _Schema) -> CoreSchema:
    bounds = _bounds(schema, _OF_TEXT)
    try:
        SchemaValidator(core_schema.str_schema(**bounds))
    except SchemaError:
        # Rust's regular expressions know no look-around. Python's do, and are slower.
        return core_schema.str_schema(**bounds, regex_engine="python-re")
    return core_schema.str_schema(**bounds)


def _bounds(schema: _Schema, names: Mapping[str, str]) -> dict[str, Any]:
    return {name: schema[keyword] for keyword, name in names.items() if keyword in schema}
