"""Examples of a JSON Schema: values that it allows."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolchat.tool_calling.json_schema import Schema, alternatives

_FORMATS = {
    "date": "2026-11-20", "date-time": "2026-11-20T08:00:00Z", "time": "08:00:00Z", "duration": "PT10M",
    "uuid": "5f2d6a0e-8f0b-4d39-9d5c-2f1f6b1f8a11", "base64url": "aGVsbG8=",
}  # fmt: skip
_MAX_DEPTH = 4


def examples(schema: Schema, root: Schema, depth: int = 0) -> Iterator[Any]:
    """Values that a schema allows, among them every default and every value of an enum; none if it is too complex."""
    if schema.get("default") is not None:  # a null of a type without it is removed from the arguments
        yield schema["default"]
    for option in alternatives(schema, root):
        if "enum" in option or "const" in option:
            yield from option.get("enum", [option.get("const")])
        elif depth < _MAX_DEPTH:
            written = _EXAMPLES.get(option.get("type"))
            yield from written(option, root, depth + 1) if written else ["x"]


def _objects(schema: Schema, root: Schema, depth: int) -> Iterator[Any]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    least = {name: next(examples(properties.get(name, {}), root, depth), None) for name in schema.get("required", ())}
    if None in least.values() or "minProperties" in schema:
        return
    yield least
    for name, part in properties.items():
        yield from ({**least, name: value} for value in examples(part, root, depth))
    if isinstance(others, Mapping) and "propertyNames" not in schema:
        yield from ({**least, "key": value} for value in examples(others, root, depth))


def _arrays(schema: Schema, root: Schema, depth: int) -> Iterator[Any]:
    first = [next(examples(each, root, depth), None) for each in schema.get("prefixItems", ())]
    if first:
        yield from [] if None in first else [first]
    elif (least := schema.get("minItems", 0)) < 2 or not schema.get("uniqueItems"):
        items = examples(schema.get("items", {}), root, depth) if schema.get("maxItems", 1) else iter(())
        yield from [] if least else [[]]
        yield from ([value] * max(least, 1) for value in items)


STEPS = (("exclusiveMinimum", 1), ("exclusiveMaximum", -1))


def _numbers(schema: Schema, *_: Any) -> Iterator[Any]:
    bounds = [schema[each] for each in ("minimum", "maximum", "multipleOf") if each in schema]
    bounds += [
        schema[each] + step for each, step in (("exclusiveMinimum", 1), ("exclusiveMaximum", -1)) if each in schema
    ]
    yield from (each for each in (*bounds, 0) if _fits(each, schema))


def _fits(number: float, schema: Schema) -> bool:
    infinity = float("inf")
    return bool(
        schema.get("minimum", -infinity) <= number <= schema.get("maximum", infinity)
        and schema.get("exclusiveMinimum", -infinity) < number < schema.get("exclusiveMaximum", infinity)
        and number % schema.get("multipleOf", number or 1) == 0
    )


def _texts(schema: Schema, *_: Any) -> Iterator[Any]:
    if "format" in schema:
        yield from [_FORMATS[schema["format"]]] if schema["format"] in _FORMATS else []
    elif "pattern" not in schema:
        yield "x" * max(schema.get("minLength", 0), min(schema.get("maxLength", 1), 1))


_EXAMPLES: Mapping[Any, Callable[..., Iterator[Any]]] = {
    "object": _objects,
    "array": _arrays,
    "integer": _numbers,
    "number": _numbers,
    "string": _texts,
    "boolean": lambda *_: iter((True, False)),
    "null": lambda *_: iter(()),
}
