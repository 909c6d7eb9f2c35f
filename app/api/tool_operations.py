"""The OpenAPI document's operations that run a tool: one for each, with the tool's own schema and an example."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

__all__ = ["show_tools"]

_PATH = "/tools/{name}"
_MAPS_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_VALUES = ("default", "const", "enum", "examples", "example")


def show_tools(document: dict[str, Any], folders: Sequence[Mapping[str, Any]]) -> None:
    """Put one operation for each registered tool in the place of the one that runs any of them.

    Args:
        document: the OpenAPI document; changed.
        folders: as ``ToolCatalogue.describe`` gives them.
    """
    tools = [tool for folder in folders for tool in folder["tools"]]
    paths = document["paths"]
    if not tools or _PATH not in paths:
        return
    general = paths[_PATH]["post"]
    shown = {f"/tools/{quote(tool['name'], safe='')}": {"post": _operation(general, tool)} for tool in tools}
    document["paths"] = {
        place: operations for path, item in paths.items() for place, operations in _in_place(path, item, shown).items()
    }
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for tool in tools:
        schemas[_component(tool)] = _based(tool["input_schema"], f"#/components/schemas/{_component(tool)}")


def _in_place(path: str, item: Any, shown: Mapping[str, Any]) -> Mapping[str, Any]:
    return shown if path == _PATH else {path: item}


def _operation(general: Mapping[str, Any], tool: Mapping[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = copy.deepcopy(dict(general))
    consent = "\n\nNeeds approval: who runs it by hand consents, and the `Idempotency-Key` makes it happen once."
    operation |= {
        "operationId": f"run_{tool['name']}",
        "summary": f"Run {tool['name']}",
        "description": tool["description"] + (consent if tool["requires_approval"] else ""),
        "parameters": [_parameter(each, tool) for each in general["parameters"] if each["in"] != "path"],
    }
    content: dict[str, Any] = {"schema": {"$ref": f"#/components/schemas/{_component(tool)}"}}
    if "example" in tool:
        content["example"] = tool["example"]
    operation["requestBody"] = {
        "content": {"application/json": content},
        "required": bool(tool["input_schema"].get("required")),
    }
    return operation


def _parameter(parameter: Mapping[str, Any], tool: Mapping[str, Any]) -> Mapping[str, Any]:
    if parameter["name"] != "Idempotency-Key" or not tool["requires_approval"]:
        return parameter
    schema = {key: value for key, value in parameter["schema"].items() if key != "default"}
    return {**parameter, "required": True, "schema": schema}


def _component(tool: Mapping[str, Any]) -> str:
    """The name of a tool's arguments among the components, which may have fewer characters than a tool's name."""
    plain = "".join(each if each.isascii() and (each.isalnum() or each in "_.-") else "_" for each in tool["name"])
    return f"{plain}_arguments"


def _based(schema: Any, base: str) -> Any:
    """A schema whose references to its own parts hold where it stands in the document."""
    if isinstance(schema, list | tuple):
        return [_based(each, base) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {key: _part(key, value, base) for key, value in schema.items()}


def _part(key: str, value: Any, base: str) -> Any:
    if key == "$ref" and isinstance(value, str) and value.startswith("#"):
        return base + value[1:]
    if key in _MAPS_OF_SCHEMAS and isinstance(value, Mapping):
        return {name: _based(part, base) for name, part in value.items()}
    return value if key in _VALUES else _based(value, base)
