"""JSON Schemas of Python types, as a model is shown them and as a tool's results fit them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import (
    CoreSchema,
    PydanticSerializationError,
    SchemaError,
    SchemaValidator,
    core_schema,
    to_json,
    to_jsonable_python,
)

from toolchat.tool_calling.argument_repair import EXACT, MEMBER_NAMES
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.json_schema import is_json, map_subschemas
from toolchat.tool_calling.results import ToolAnswer, with_names
from toolchat.tool_calling.signature import Signature


class _Generator(GenerateJsonSchema):
    """Omits titles that only repeat names, and defaults without a JSON form; writes named tuples as objects."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as in the base class

    def encode_default(self, dft: Any) -> Any:
        default = to_jsonable_python(with_names(dft), inf_nan_mode="constants", bytes_mode="base64")
        if not is_json(default):  # infinity
            raise PydanticSerializationError("no JSON")
        return default

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def named_tuple_schema(self, schema: core_schema.NamedTupleSchema) -> JsonSchemaValue:
        fields = {
            each["name"]: core_schema.typed_dict_field(each["schema"], required=each["schema"]["type"] != "default")
            for each in schema["fields"]
        }
        return self.typed_dict_schema(core_schema.typed_dict_schema(fields))


class _OutputGenerator(_Generator):
    """Writes what :func:`json_text` makes of a result."""

    _in_model = False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        outer, self._in_model = self._in_model, True
        written = super().model_schema(schema)
        self._in_model = outer
        return written

    def named_tuple_schema(self, schema: core_schema.NamedTupleSchema) -> JsonSchemaValue:
        # A model writes its own fields, and named tuples in them as arrays.
        written_by = GenerateJsonSchema if self._in_model else _Generator
        return written_by.named_tuple_schema(self, schema)

    def dataclass_args_schema(self, schema: core_schema.DataclassArgsSchema) -> JsonSchemaValue:
        shown = [field for field in schema["fields"] if self._in_model or not field["name"].startswith("_")]
        return super().dataclass_args_schema({**schema, "fields": shown})

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        written = super().float_schema(schema)
        return written | {"type": ["number", "null"]}  # NaN and infinity are null


NOT_READABLE = (PydanticUserError, PydanticUndefinedAnnotation, SchemaError)


def read_output_schema(signature: Signature) -> Mapping[str, Any]:
    """Read the schema of a function's return type; empty if the type has no fields."""
    returned = signature.hints.get("return")
    if (get_origin(returned) or returned) is ToolAnswer:
        returned = next(iter(get_args(returned)), None)
    if not any(isinstance(each, type) and hasattr(each, "__annotations__") for each in (returned, *get_args(returned))):
        return {}
    return _class_output_schema(returned) if isinstance(returned, type) else _output_schema(returned)


@cache
def _class_output_schema(returned: type) -> Mapping[str, Any]:
    return _output_schema(returned)


def _output_schema(returned: Any) -> Mapping[str, Any]:
    try:
        return TypeAdapter(returned).json_schema(mode="serialization", schema_generator=_OutputGenerator)
    except NOT_READABLE:
        return {}


_RULES = ("value_error", "assertion_error", "date_", "datetime_", "timezone_", "path_")
"""Errors of which a schema says nothing: by an author's validator, or by a rule such as "in the future"."""


class InputGenerator(_Generator):
    """Writes what a tool accepts, and refuses a type that would refuse what its own schema offers."""

    def __init__(self) -> None:
        super().__init__()
        self.hides_fields = False
        """Whether the types have fields that their schema does not have."""
        self.objects: set[str] = set()
        """What they do with properties without a name: open, closed, or lenient if only the schema forbids them."""
        self._definitions: list[CoreSchema] = []

    def read(self, core: Any) -> JsonSchemaValue:
        """Write the schema of a pydantic core schema."""
        self._definitions = core.get("definitions", [])
        return self.generate(core)

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        written = super().enum_schema(schema)
        self._check(schema, written.get("enum", [written.get("const")]))
        pairs = [[name, to_jsonable_python(each.value)] for name, each in schema["cls"].__members__.items()]
        return {**written, MEMBER_NAMES: pairs}

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        written = super().literal_schema(schema)
        self._check(schema, written.get("enum", [written.get("const")]))
        return written

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        written = super().default_schema(schema)
        if written.get("writeOnly"):  # a secret, which is written as asterisks
            written.pop("default", None)
        if written.get("default") is not None:  # a null of a model is removed, if the type has none
            self._check(schema["schema"], [written["default"]])
        return written

    def _check(self, core: CoreSchema, values: Iterable[Any]) -> None:
        validator = SchemaValidator(core_schema.definitions_schema(core, self._definitions))
        for value in values:
            try:
                validator.validate_json(to_json(value))
            except ValidationError as error:
                fault = error.errors(include_url=False)[0]
                if not fault["type"].startswith(_RULES):
                    raise ToolDefinitionError(f"its own {value!r:.40} is refused: {fault['msg']}") from error
            except Exception:  # noqa: BLE001 - an author's validator fails, as it would for a call
                return

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        written = super().decimal_schema(schema)
        number, text = written["anyOf"]
        return {"anyOf": [number | {EXACT: True}, {"pattern": r"^-?\d+(\.\d+)?$"} | text]}

    def date_schema(self, schema: core_schema.DateSchema) -> JsonSchemaValue:
        return super().date_schema(schema) | {EXACT: True}

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        return super().datetime_schema(schema) | {EXACT: True}

    def time_schema(self, schema: core_schema.TimeSchema) -> JsonSchemaValue:
        return super().time_schema(schema) | {EXACT: True}

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        written = super().bytes_schema(schema)  # base64 is longer than the bytes that the bounds count
        return {key: value for key, value in written.items() if key not in ("minLength", "maxLength")}

    def generator_schema(self, schema: core_schema.GeneratorSchema) -> JsonSchemaValue:  # noqa: ARG002 - pydantic's
        raise ToolDefinitionError("a field with an iterable is not validated before the tool runs: write list[...]")

    def dataclass_args_schema(self, schema: core_schema.DataclassArgsSchema) -> JsonSchemaValue:
        shown = [field for field in schema["fields"] if not _is_hidden(field)]
        self.hides_fields |= len(shown) < len(schema["fields"])
        return super().dataclass_args_schema({**schema, "fields": shown})

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _described(self._noted(super().dataclass_schema(schema), schema), schema["cls"])

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return _described(self._noted(super().model_schema(schema), schema), schema["cls"])

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return self._noted(super().typed_dict_schema(schema), schema)

    def _noted(self, written: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        own = schema.get("config", {}).get("extra_fields_behavior")
        if own == "ignore":  # explicitly
            written.setdefault("additionalProperties", True)
        is_open = written.get("additionalProperties", False) is not False
        self.objects.add("open" if is_open else "closed" if own == "forbid" else "lenient")
        return written


def _is_hidden(field: core_schema.DataclassField) -> bool:
    """Whether a field of a dataclass is no argument: ``init=False``, or private with a default."""
    is_private = field["name"].startswith("_") and field["schema"]["type"] == "default"
    return is_private or field.get("init") is False


def _described(written: JsonSchemaValue, cls: type) -> JsonSchemaValue:
    """Add the descriptions of fields that are ``Annotated[..., "text"]``."""
    for name, hint in get_type_hints(cls, include_extras=True).items():
        if (text := text_of(hint)) and name in written.get("properties", {}):
            written["properties"][name] = {"description": text} | written["properties"][name]
    return written


def text_of(hint: Any) -> str | None:
    """The description in ``Annotated[..., "text"]``."""
    return next((each for each in metadata_of(hint) if isinstance(each, str)), None)


def metadata_of(hint: Any) -> tuple[Any, ...]:
    """What stands beside the type in ``Annotated``."""
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


_DEFINITIONS = "#/$defs/"
_HIDDEN = {"title": str, MEMBER_NAMES: list, EXACT: bool, "discriminator": dict}
"""Keywords that the model does not see. One of another type is a property of that name."""


def simplify_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Shorten a schema that pydantic generates, without changing its meaning, and close its objects.

    - Titles are removed: they cost tokens and repeat the names. So is OpenAPI's ``discriminator``, which refers to
      definitions that are gone, and repeats their constants.
    - A class's docstring is no description: what its author tells the model stands at a field or parameter.
    - A definition that is used once replaces its reference; only recursive and shared ones stay in ``$defs``.
    - The root is an object, never a reference.
    - An object with named properties allows no others, unless its type does, as in Spring AI.
    - Enum values that are not text are described with their names.
    """
    definitions = {name: _without_docstring(part) for name, part in schema.get("$defs", {}).items()}
    root = _without_docstring({key: value for key, value in schema.items() if key != "$defs"})
    if "$ref" in root:
        target = definitions[root["$ref"].removeprefix(_DEFINITIONS)]
        root = {**target, **{key: value for key, value in root.items() if key != "$ref"}}
    shared = _shared_definitions({**root, "$defs": definitions}) if definitions else ()

    def simplify(part: dict[str, Any]) -> dict[str, Any]:
        name = str(part.get("$ref", "")).removeprefix(_DEFINITIONS)
        if name in definitions and name not in shared:
            siblings = {key: value for key, value in part.items() if key != "$ref"}
            return map_subschemas({**definitions[name], **siblings}, simplify)
        return _simplify_object(_without_hidden(part))

    simplified = map_subschemas(root, simplify)
    kept = {name: map_subschemas(part, simplify) for name, part in definitions.items() if name in shared}
    return {"$defs": kept, **simplified} if kept else simplified


def _without_docstring(part: Mapping[str, Any]) -> dict[str, Any]:
    is_class = "properties" in part or MEMBER_NAMES in part
    return {key: value for key, value in part.items() if key != "description" or not is_class}


def _shared_definitions(schema: Mapping[str, Any]) -> set[str]:
    """The names of the definitions that are referred to more than once."""
    uses: Counter[str] = Counter()

    def count(part: dict[str, Any]) -> dict[str, Any]:
        if "$ref" in part:
            uses[part["$ref"].removeprefix(_DEFINITIONS)] += 1
        return part

    map_subschemas(schema, count)
    return {name for name, number in uses.items() if number > 1}


def _without_hidden(part: dict[str, Any]) -> dict[str, Any]:
    members = part.get(MEMBER_NAMES, ())
    visible = {key: value for key, value in part.items() if key not in _HIDDEN or not isinstance(value, _HIDDEN[key])}
    if not all(isinstance(value, str) for _, value in members):
        names = ", ".join(f"{value} = {name}" for name, value in members)
        visible["description"] = f"{part['description']} ({names})" if "description" in part else names
    return visible


def _simplify_object(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") != "object":
        return part
    if "properties" in part:
        return {"additionalProperties": False} | part
    # Some providers reject a closed object without properties.
    return part | {"properties": {}} if part.get("additionalProperties") is False else part
