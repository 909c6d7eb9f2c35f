"""The OpenAPI document, with problem documents instead of the framework's own error schema."""

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts

from toolchat.chat.tool_module import ToolModule
from toolchat.errors import (
    BodyTooLarge,
    Forbidden,
    MisdirectedRequest,
    RequestTimeout,
    Unauthorized,
    ValidationFailed,
)
from toolchat.service.access.principals import ALL_TOOLS, current_request_caller
from toolchat.service.api.problems import CODES, Problem, one_block, problems
from toolchat.service.api.responses.formats import AnswerFormat, JsonDocument
from toolchat.service.api.tool_registry import Entry
from toolchat.service.api.tool_routes import describe_module, describe_usable
from toolchat.tool_calling.json_schema import map_subschemas

_PATH = "/tools/{name}"


def show_tools(document: dict[str, Any], folders: Sequence[Mapping[str, Any]]) -> None:
    """Replace the generic operation that runs a tool by one operation for each registered tool.

    Args:
        document: the OpenAPI document; changed.
        folders: the tool modules, as :func:`describe_module` describes them.
    """
    tools = [tool for folder in folders for tool in folder["tools"]]
    paths = document["paths"]
    if not tools or _PATH not in paths:
        return
    general = paths[_PATH]["post"]
    shown = {_place(tool): {"post": _operation(general, tool)} for tool in tools}
    document["paths"] = {
        place: operations
        for path, item in paths.items()
        for place, operations in (shown if path == _PATH else {path: item}).items()
    }
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for tool in tools:
        schemas[_component(tool)] = _based(tool["input_schema"], f"#/components/schemas/{_component(tool)}")


def _place(tool: Mapping[str, Any]) -> str:
    """The path of the operation that runs a tool."""
    return f"/tools/{quote(tool['name'], safe='')}"


def _operation(general: Mapping[str, Any], tool: Mapping[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = copy.deepcopy(dict(general))
    consent = "\n\nRequires approval: running it here counts as approval, and with the `Idempotency-Key` it runs once."
    operation |= {
        "operationId": f"run_{tool['name']}",
        "summary": f"Run {tool['name']}",
        "description": tool["description"] + (consent if tool["requires_approval"] else ""),
        "parameters": [_parameter(each, tool) for each in general["parameters"] if each["in"] != "path"],
    }
    schema = {"$ref": f"#/components/schemas/{_component(tool)}"}
    operation["requestBody"] = {
        "content": {"application/json": {"schema": schema}},
        "required": bool(tool["input_schema"].get("required")),
    }
    return operation


def _parameter(parameter: Mapping[str, Any], tool: Mapping[str, Any]) -> Mapping[str, Any]:
    if parameter["name"] != "Idempotency-Key" or not tool["requires_approval"]:
        return parameter
    schema = {key: value for key, value in parameter["schema"].items() if key != "default"}
    return {**parameter, "required": True, "schema": schema}


def _component(tool: Mapping[str, Any]) -> str:
    """The component name of a tool's arguments; component names allow fewer characters than tool names."""
    plain = "".join(each if each.isascii() and (each.isalnum() or each in "_.-") else "_" for each in tool["name"])
    return f"{plain}_arguments"


def _based(schema: Mapping[str, Any], base: str) -> dict[str, Any]:
    """A schema whose references to its own parts resolve within the OpenAPI document."""

    def rebase(part: dict[str, Any]) -> dict[str, Any]:
        reference = part.get("$ref")
        return part | {"$ref": base + reference[1:]} if isinstance(reference, str) and reference[:1] == "#" else part

    return map_subschemas(schema, rebase)


DESCRIPTION = """\
Chat questions answered with live tools: the chat model decides whether it needs the time, the weather, a translation
or a tool of yours; the service runs the tool, and the model answers from the result.

Each tool module has three variants of a question route: **no tool**, **function tool**, **method tool**. `Accept`
chooses the format of the answer: `text/plain` (default), `application/json` or `text/event-stream`.
A question is sent by `GET`, or by `POST` with the same parameters as JSON, which this page does not list again.
"""
HIDDEN = "x-hidden"
"""Marks operations that Swagger UI leaves out: the POST of a question that a GET asks, and details of protocols."""
_HIDDEN_PATHS = ("/.well-known/", "/person", "/v1/conversations", "/v1/messages/", "/v1/models/", "/v1/responses/")
_FIRST_TAGS, _LAST_TAGS = ("Chat",), ("Examples", "Alarms")
_ANYWHERE = problems(400, Unauthorized, Forbidden, 414, MisdirectedRequest, 431, 500)
_WITH_A_BODY = problems(RequestTimeout, BodyTooLarge)
_SCHEMES: dict[str, dict[str, str]] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key of this service, or a token of its issuer"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key in another header"},
}
"""The headers that can carry a key; one of them is enough."""


def operation_id(route: APIRoute) -> str:
    """Name an operation by its method and its path: ``get_time_chat``, ``delete_chat_by_session_id``."""
    path = re.sub(r"\{(\w+)\}", r"by_\1", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", route.path_format).lower())
    return "_".join([min(route.methods or {"get"}).lower(), *re.findall(r"\w+", path.replace("-", "_"))])


def document_api(app: FastAPI) -> None:
    """Make ``app.openapi`` describe the service's actual responses."""
    described = app.openapi
    shown: list[object] = [None]

    def openapi() -> dict[str, Any]:
        # Tools exist only while the service runs, and tools of other servers come and go.
        service = getattr(app.state, "service", None)
        entries = service.tools.entries if service else None
        if app.openapi_schema is None or entries is not shown[0]:
            app.openapi_schema, shown[0] = None, entries
            document = described()
            components = document.setdefault("components", {})
            schemas = components.setdefault("schemas", {})
            schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            components["securitySchemes"] = _SCHEMES
            document["security"] = _security(required=app.state.access.needs_key)
            for path, operations in document["paths"].items():
                for method, operation in operations.items():
                    _complete(method, operation, app.state.answer_formats)
                    if path.startswith(_HIDDEN_PATHS) or (method == "post" and _is_asked_by_get(operations)):
                        operation[HIDDEN] = True
                    if path.startswith("/health/"):
                        operation["security"] = []
            if entries is not None:
                show_tools(document, [describe_module(entry) for entry in entries.values()])
            document["tags"] = _ordered_tags(document)
        document = described()
        restricted = current_request_caller().principal.tools != ALL_TOOLS
        return _for_caller(document, entries or {}) if restricted else document

    app.openapi = openapi  # type: ignore[method-assign]


def _ordered_tags(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """The groups of operations in the order in which Swagger UI shows them."""
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    tags = dict.fromkeys(tag for each in operations for tag in each.get("tags", ()))
    return [{"name": tag} for tag in sorted(tags, key=lambda tag: (tag in _LAST_TAGS, tag not in _FIRST_TAGS))]


def _is_asked_by_get(operations: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a GET asks the same question as the POST, with its parameters in the URL instead of JSON."""
    return "get" in operations and operations["get"].get("summary") == operations["post"].get("summary")


def _for_caller(document: dict[str, Any], entries: Mapping[str, Entry]) -> dict[str, Any]:
    """The document without the tools and modules that the caller may not use."""
    usable = describe_usable(entries.values())
    names = {tool["name"] for module in usable for tool in module["tools"]}
    described = [tool for entry in entries.values() for tool in describe_module(entry)["tools"]]
    hidden = [tool for tool in described if tool["name"] not in names]
    visible = {module["name"] for module in usable}
    modules = [entry.module for name, entry in entries.items() if name not in visible]
    titles = {module.title for module in modules}
    places = {_place(tool) for tool in hidden}.union(*map(_own_paths, modules))
    paths = {
        path: {method: _without_names(operation) for method, operation in operations.items()}
        for path, operations in document["paths"].items()
        if path not in places and not any(titles.intersection(each.get("tags", ())) for each in operations.values())
    }
    components = dict(document["components"])
    unused = {_component(tool) for tool in hidden}
    components["schemas"] = {name: schema for name, schema in components["schemas"].items() if name not in unused}
    return {**document, "paths": paths, "components": components}


def _own_paths(module: ToolModule) -> set[str]:
    """The paths of a module's own routes."""
    return {route.path or "" for route in iter_route_contexts(module.router.routes)} if module.router else set()


def _without_names(operation: dict[str, Any]) -> dict[str, Any]:
    """An operation whose summary does not list the names of tools after a colon."""
    return operation | {"summary": operation.get("summary", "").partition(":")[0]}


def _security(*, required: bool) -> list[dict[str, list[str]]]:
    """One requirement for each header that can carry a key, and an empty one if no key is needed."""
    schemes: list[dict[str, list[str]]] = [{name: []} for name in _SCHEMES]
    return schemes if required else [{}, *schemes]


def _complete(method: str, operation: dict[str, Any], forms: Sequence[AnswerFormat]) -> None:
    responses = operation["responses"]
    if "default" in responses:  # a foreign protocol's operation, which has its own errors
        return
    success = responses.get("200", {})
    if success.get("content") == {JsonDocument.media_type: JsonDocument.documentation}:
        # Generated clients use the first format, and only JSON has a type; */* still gets plain text.
        ordered = sorted(forms, key=lambda form: form.media_type != JsonDocument.media_type)
        success["content"] = {form.media_type: form.documentation for form in ordered}
    # Swagger UI shows the fields in this order: the question comes first.
    operation.get("parameters", []).sort(key=lambda each: each["in"] == "header")
    if "HTTPValidationError" in str(responses.get("422")):  # the framework's schema; our handler sends a problem
        responses["422"] = problems(ValidationFailed)[422]
    codes = {status: responses.pop(status)[CODES] for status in list(responses) if CODES in responses[status]}
    responses["default"] = one_block(_merged(codes, _ANYWHERE if method == "get" else _ANYWHERE | _WITH_A_BODY))


def _merged(codes: Mapping[str, list[str]], more: Mapping[int | str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """The codes of an operation and those of every operation, by status."""
    merged = dict(codes)
    for status, each in more.items():
        merged[str(status)] = list(dict.fromkeys((*merged.get(str(status), ()), *each[CODES])))
    return merged
