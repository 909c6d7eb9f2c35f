"""The OpenAPI document, with problem documents instead of the framework's own error schema."""

import re
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from app.api.answering.format import AnswerFormat
from app.api.answering.json_document import JsonDocument
from app.api.problems import CODES, Problem, one_block, problems
from app.api.tool_operations import show_tools
from app.errors import BodyTimeout, BodyTooLarge, ValidationFailed

__all__ = ["DESCRIPTION", "document_api", "operation_id"]

DESCRIPTION = """\
Chat questions answered with live tools: the chat model decides whether it needs the time, the weather, a translation
or a tool of yours; the service runs the tool, and the model answers from the result.

Every tool folder is asked in three variants: **no tool**, **function tool**, **method tool**. `Accept` chooses the form
of the answer: `text/plain` (default), `application/json` with the whole trace of tool calls, or `text/event-stream`.
A question is sent by `GET`, or by `POST` as JSON.
"""
_ANYWHERE = problems(400, 414, 431, 500)
_WITH_A_BODY = problems(BodyTimeout, BodyTooLarge)


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
            schemas = components.setdefault("schemas", {})
            schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            for path in document["paths"].values():
                for method, operation in path.items():
                    _complete(method, operation, app.state.answer_formats)
            if service := getattr(app.state, "service", None):  # the tools are there as long as the service runs
                show_tools(document, service.tools.describe())
        return described()

    app.openapi = openapi  # type: ignore[method-assign]


def _complete(method: str, operation: dict[str, Any], forms: Sequence[AnswerFormat]) -> None:
    responses = operation["responses"]
    success = responses.get("200", {})
    if success.get("content") == {JsonDocument.media_type: JsonDocument.documentation}:
        # A generated client takes the first form; as JSON it has a type. What */* gets is another matter.
        ordered = sorted(forms, key=lambda form: form.media_type != JsonDocument.media_type)
        success["content"] = {form.media_type: form.documentation for form in ordered}
    # Swagger UI shows fields in this order, and the question is what one fills in first.
    operation.get("parameters", []).sort(key=lambda each: each["in"] == "header")
    if "HTTPValidationError" in str(responses.get("422")):  # the framework's own: that is ours, as on every route
        responses["422"] = problems(ValidationFailed)[422]
    for status, more in (_ANYWHERE if method == "get" else _ANYWHERE | _WITH_A_BODY).items():
        responses.setdefault(str(status), more)
    codes = {status: responses.pop(status)[CODES] for status in list(responses) if CODES in responses[status]}
    responses["default"] = one_block(codes)
