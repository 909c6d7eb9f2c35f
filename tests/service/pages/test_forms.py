"""What becomes of each kind of schema: its field, and what is sent when nobody touches it."""

from typing import Any

import pytest

from tests.service.pages.page import Visit

FORM = """async (schema) => {
    const { ArgumentsForm } = await import("./form.js");
    const form = new ArgumentsForm(schema);
    document.body.append(form.element);
    const [{ field, row }] = form.fields;
    const { control } = field;
    return {
        element: control.localName, type: control.type, required: control.required, min: control.min,
        max: control.max, step: control.step, value: control.value, placeholder: control.placeholder,
        options: [...(control.options ?? [])].map((each) => each.textContent),
        hint: row.querySelector(".hint").textContent, sent: form.read(),
    };
}"""
TREE = {"$defs": {"Tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Tree"}}, "required": ["next"]}}}


def described(schema: Any, *, required: bool, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a b": schema}, "required": ["a b"] if required else [], **more}


REQUIRED: list[tuple[Any, dict[str, Any]]] = [
    ({"type": "string"}, {"element": "input", "type": "text", "required": True, "sent": '{"a b":""}'}),
    ({"type": "string", "maxLength": 5000}, {"element": "textarea"}),
    ({"type": "boolean"}, {"type": "checkbox", "sent": '{"a b":false}'}),
    ({"type": "integer", "minimum": 1, "maximum": 8}, {"min": "1", "max": "8"}),
    ({"type": "number", "minimum": 0, "multipleOf": 0.5}, {"min": "0", "step": "0.5"}),
    ({"enum": ["x", 7, None]}, {"element": "select", "options": ["Choose…", "x", "7"], "sent": "{}"}),
    ({"const": {"k": 1}, "default": {"k": 1}}, {"options": ['{"k":1}'], "sent": '{"a b":{"k":1}}'}),
    (
        {"allOf": [{"$ref": "#/$defs/Unit"}], "description": "Scale"},
        {"options": ["Choose…", "C", "F"], "hint": "Scale"},
    ),
    (
        {"type": "array", "items": {"type": "integer", "minimum": 3}},
        {"element": "textarea", "value": "", "placeholder": "[]"},
    ),
    ({"$ref": "#/$defs/Tree"}, {"element": "textarea", "required": True}),
    ({"$ref": "#/$defs/Missing"}, {"element": "textarea"}),
    (True, {"element": "textarea", "value": ""}),
]
OPTIONAL: list[tuple[Any, dict[str, Any]]] = [
    ({"type": "string"}, {"required": False, "sent": "{}"}),
    ({"type": "string", "default": "x"}, {"value": "x", "sent": '{"a b":"x"}'}),
    ({"type": "boolean"}, {"type": "checkbox", "sent": "{}"}),
    ({"type": "boolean", "default": True}, {"sent": '{"a b":true}'}),
    (
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        {"type": "number", "step": "1", "sent": "{}"},
    ),
    ({"type": ["number", "null"], "default": 0}, {"type": "number", "value": "0", "sent": '{"a b":0}'}),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"element": "textarea", "sent": "{}"}),
    ({"enum": ["x"]}, {"options": ["not given", "x"], "sent": "{}"}),
    ({"type": "object", "default": {"k": [1]}}, {"element": "textarea", "sent": '{"a b":{"k":[1]}}'}),
    ({"type": "array", "items": {"type": "string"}}, {"value": "", "placeholder": "[]", "sent": "{}"}),
]


@pytest.mark.parametrize("required", [True, False], ids=["required", "optional"])
async def test_every_kind_of_schema_has_its_field(visit: Visit, required: bool) -> None:
    definitions = {"$defs": {**TREE["$defs"], "Unit": {"enum": ["C", "F"], "type": "string"}}}
    async with visit(timezone_id="UTC") as page:
        for schema, expected in REQUIRED if required else OPTIONAL:
            made = await page.evaluate(FORM, described(schema, required=required, **definitions))
            assert {name: made[name] for name in expected} == expected, schema


async def test_a_required_argument_begins_with_its_default_or_an_example_of_the_schema(visit: Visit) -> None:
    async with visit(timezone_id="Asia/Shanghai") as page:
        for schema, examples, value in (
            ({"type": "string"}, ["Oslo"], "Oslo"),
            ({"type": "string"}, [], ""),
            ({"type": "string", "default": "Rome"}, ["Oslo"], "Rome"),
            ({"type": "string", "format": "date-time"}, ["2030-01-31T07:30:00Z"], ""),
            ({"type": "array"}, [[1]], "[\n  1\n]"),
        ):
            made = await page.evaluate(FORM, described({**schema, "examples": examples}, required=True))
            assert made["value"] == value
