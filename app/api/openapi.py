"""The OpenAPI document, with problem documents instead of the framework's own error schema."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.api.negotiation import AnswerForm
from app.api.problems import PROBLEM_MEDIA_TYPE, Problem, problem_examples, problems

__all__ = ["document_api"]

_DESCRIPTION = """\
Chat questions answered with live tools: the chat model decides whether it needs the time, the weather, a translation
or a tool of yours; the service runs the tool, and the model answers from the result.

Every tool folder is asked in three variants: **no tool**, **function tool**, **method tool**. `Accept` chooses the form
of the answer: `text/plain` (default), `application/json` with the whole trace of tool calls, or `text/event-stream`.
"""


def document_api(app: FastAPI) -> None:
    """Make ``app.openapi`` describe what the service really answers."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(
                title=app.title, version=app.version, description=_DESCRIPTION, routes=app.routes, tags=app.openapi_tags
            )
            components = document.setdefault("components", {})
            components["examples"] = problem_examples()
            schemas = components.setdefault("schemas", {})
            schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            for operation in _operations(document):
                _complete(operation)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for path in document["paths"].values() for operation in path.values()]


def _complete(operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    for status in (400, 414, 500):
        responses.setdefault(str(status), problems(status)[status])
    content = responses.get("200", {}).get("content", {})
    if all(form.value in content for form in AnswerForm):
        # Swagger UI sends the first form that is listed: the one that a client without Accept gets.
        responses["200"]["content"] = {form.value: content[form.value] for form in AnswerForm}
    if PROBLEM_MEDIA_TYPE not in responses.get("422", {}).get("content", {PROBLEM_MEDIA_TYPE: None}):
        responses.pop("422")
