"""The OpenAPI document, with problem documents instead of the framework's own error schema."""

import re
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from app.api.answering.format import AnswerFormat
from app.api.answering.json_document import JsonDocument
from app.api.problems import PROBLEM_MEDIA_TYPE, Problem, problem_examples, problems
from app.api.tool_operations import show_tools

__all__ = ["DESCRIPTION", "document_api", "operation_id"]

DESCRIPTION = """\
Chat questions answered with live tools: the chat model decides whether it needs the time, the weather, a translation
or a tool of yours; the service runs the tool, and the model answers from the result.

Every tool folder is asked in three variants: **no tool**, **function tool**, **method tool**. `Accept` chooses the form
of the answer: `text/plain` (default), `application/json` with the whole trace of tool calls, or `text/event-stream`.
"""


def operation_id(route: APIRoute) -> str:
    """Name an operation by its method and its path: ``get_time_chat``, ``delete_chat_by_session_id``."""
    path = re.sub(r"\{(\w+)\}", r"by_\1", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", route.path_format).lower())
    return "_".join([min(route.methods or {"get"}).lower(), *re.findall(r"\w+", path.replace("-", "_"))])


def document_api(app: FastAPI) -> None:
    """Make ``app.openapi`` describe what the service really answers."""
    described = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = described()
            components = document.setdefault("components", {})
            components["examples"] = problem_examples()
            schemas = components.setdefault("schemas", {})
            schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            for operation in _operations(document):
                _complete(operation, app.state.answer_formats)
            if service := getattr(app.state, "service", None):  # the tools are there as long as the service runs
                show_tools(document, service.tools.describe())
        return described()

    app.openapi = openapi  # type: ignore[method-assign]


def _operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for path in document["paths"].values() for operation in path.values()]


def _complete(operation: dict[str, Any], forms: Sequence[AnswerFormat]) -> None:
    responses = operation["responses"]
    for status in (400, 414, 500):
        responses.setdefault(str(status), problems(status)[status])
    success = responses.get("200", {})
    if success.get("content") == {JsonDocument.media_type: JsonDocument.documentation}:
        # A generated client takes the first form; as JSON it has a type. What */* gets is another matter.
        ordered = sorted(forms, key=lambda form: form.media_type != JsonDocument.media_type)
        success["content"] = {form.media_type: form.documentation for form in ordered}
    # Swagger UI shows fields in this order, and the question is what one fills in first.
    operation.get("parameters", []).sort(key=lambda each: each["in"] == "header")
    if PROBLEM_MEDIA_TYPE not in responses.get("422", {}).get("content", {PROBLEM_MEDIA_TYPE: None}):
        responses.pop("422")
