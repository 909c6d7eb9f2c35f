"""Error responses: problem documents (RFC 9457), their headers, and the exception handlers that send them."""

import asyncio
import logging
import math
import sys
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.types import Message, Send

from toolchat.errors import (
    ConfigurationError,
    Draining,
    InvalidRequest,
    NotFound,
    QuotaExceeded,
    ToolchatError,
    UnsupportedMediaType,
    UpstreamError,
    ValidationFailed,
)
from toolchat.service.request_state import RequestState, state_of

_log = logging.getLogger("toolchat.request")
PROBLEM_MEDIA_TYPE = "application/problem+json"
CODES = "x-codes"
"""The key of an OpenAPI response under which :func:`problems` stores the codes of its status."""
MAX_RETRY_AFTER = 60
QUOTA_EXCEEDED = "https://iana.org/assignments/http-problem-types#quota-exceeded"
"""The problem type that draft-ietf-httpapi-ratelimit-headers registers."""

_STATUSES = frozenset(HTTPStatus)


class MethodNotAllowed(ToolchatError):
    """The path does not support the method; ``Allow`` lists those that it does."""

    status, code, title = 405, "method-not-allowed", "Method not allowed"


_CODES = {kind.status: kind.code for kind in (InvalidRequest, NotFound, MethodNotAllowed, UnsupportedMediaType)}
"""Codes of the framework's own errors, by status."""


class Problem(BaseModel):
    """A problem document."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:toolchat:problem:validation",
                    "title": "Input outside the limits",
                    "status": 422,
                    "detail": "query: must not be blank",
                    "code": "validation",
                    "retryable": False,
                    "request_id": "4bf92f3577b34da6",
                }
            ]
        }
    )

    type: str = Field(description="A stable URI of the kind of problem", examples=["urn:toolchat:problem:validation"])
    title: str = Field(description="The kind of problem in words")
    status: int = Field(description="The HTTP status")
    detail: str = Field(description="What happened this time, and what to do about it")
    code: str = Field(description="The kind of problem as a stable word", examples=["validation"])
    retryable: bool = Field(description="Whether the same request may succeed later")
    request_id: str = Field(description="The id of the request, as in the header X-Request-ID")


def without_traceback(send: Send) -> Send:
    """Tell the server in one line why the application cannot start: its traceback has texts that may hold a secret."""

    async def send_line(message: Message) -> None:
        error = sys.exc_info()[1]
        if error is not None and message["type"].startswith("lifespan.") and "message" in message:
            is_known = isinstance(error, ConfigurationError)
            message["message"] = str(error) if is_known else as_toolchat_error(error).for_operators
        await send(message)

    return send_line


def problem(error: ToolchatError, request_id: str) -> dict[str, Any]:
    document = {
        "type": f"urn:toolchat:problem:{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
        "retryable": error.retryable,
        "request_id": request_id,
    }
    if isinstance(error, QuotaExceeded):
        document |= {"type": QUOTA_EXCEEDED, "violated-policies": [error.violated]}
    return document


def error_headers(error: ToolchatError) -> dict[str, str]:
    """The headers of a response with an error, in any format; ``Retry-After`` if a later request may succeed."""
    headers = dict(error.headers)
    known = error.retry_after is not None  # such as the pause of an open circuit
    if error.retryable and (error.status in (409, 429, 503) or (known and error.status >= 500)):
        # The wait for a quota is exact and may be hours; all others are guesses, and bounded.
        wait = 1 if error.retry_after is None else error.retry_after
        longest = math.inf if error.status == 429 else MAX_RETRY_AFTER
        headers["Retry-After"] = str(min(max(math.ceil(wait), 1), longest))
    # The next request then opens a connection, which the balancer leads to another replica.
    if isinstance(error, Draining):
        headers["Connection"] = "close"
    return headers


def error_response(error: ToolchatError, request_id: str) -> Response:
    body = to_json(problem(error, request_id), inf_nan_mode="strings")
    return Response(body, error.status, error_headers(error), PROBLEM_MEDIA_TYPE)


def refusal(error: ToolchatError, state: RequestState) -> Response:
    return (state.error_response or error_response)(error, state.request_id)


def problems(*kinds: int | type[ToolchatError]) -> dict[int | str, dict[str, Any]]:
    """Document problem documents for OpenAPI, by status; :func:`one_block` puts those of an operation together."""
    codes: dict[int | str, list[str]] = {}
    for each in kinds:
        for kind in [kind for kind in _KINDS if kind.status == each] if isinstance(each, int) else [each]:
            codes.setdefault(kind.status, []).append(kind.code)
    return {status: {"description": HTTPStatus(int(status)).phrase, CODES: found} for status, found in codes.items()}


def one_block(codes: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """Every problem document of an operation as one OpenAPI response."""
    listed = " · ".join(f"**{status}** {', '.join(codes[status])}" for status in sorted(codes))
    return {
        "description": f"A problem document: {listed}. What the codes mean: [docs/errors.md](docs/errors.md)",
        "content": {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def problem_page() -> str:
    """All kinds of problems as text: status, code, whether a retry may succeed, and the meaning."""
    lines = []
    for kind in sorted(_KINDS, key=lambda kind: kind.status):
        # The first paragraph of its docstring, without markup.
        meaning = " ".join((kind.__doc__ or "").split("\n\n", 1)[0].replace("``", "").split())
        lines.append(f"{kind.status}  {kind.code:24}{'yes' if kind.retryable else 'no':8}{meaning}")
    head = "Every answer that is not 2xx is a problem document (RFC 9457). Its field `code` is one of these."
    return "\n".join([head, "", f"     {'code':24}{'again':8}meaning", *lines, ""])


def _kinds(kind: type[ToolchatError]) -> list[type[ToolchatError]]:
    return [kind, *(each for child in kind.__subclasses__() for each in _kinds(child))]


_KINDS = [kind for kind in _kinds(ToolchatError) if kind is not UpstreamError]


def add_problem_handlers(app: FastAPI) -> None:
    app.add_exception_handler(ToolchatError, _on_toolchat_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_exception)


async def _on_toolchat_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, ToolchatError):
        raise error
    state = state_of(request.scope)
    state.fail(error)
    if state.is_short:
        error.detail = f"{error.detail}; {_way_out(request)}"
    return refusal(error, state)


def _place(location: tuple[int | str, ...]) -> str:
    """The location of an error: ``query``, ``body`` or ``body.decisions``; positions in the body are omitted."""
    if location[0] in ("query", "path", "header") and len(location) > 1:
        location = location[1:]
    return ".".join(part for part in location if isinstance(part, str))


async def _on_validation_error(request: Request, error: Exception) -> Response:
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    detail = "; ".join(f"{_place(fault['loc'])}: {fault['msg']}" for fault in faults[:5])
    kind = InvalidRequest if any(fault["type"] == "json_invalid" for fault in faults) else ValidationFailed
    refused = kind(detail)
    if isinstance(refused, ValidationFailed) and faults:
        refused.param = _place(faults[0]["loc"])
    return await _on_toolchat_error(request, refused)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    problem = as_toolchat_error(error)
    if problem.detail == problem.title:  # the framework's own: no route is here, or none for this method
        place = f"{request.method} {request.url.path[:200]}"
        problem.detail = f"{place}: {problem.title.lower()}; {_way_out(request)}"
    state = state_of(request.scope)
    state.fail(problem)
    response = refusal(problem, state)
    response.headers.update(dict(error.headers or {}) | _allowed(request, error.status_code))
    return response


def _way_out(request: Request) -> str:
    """What helps a client whose path has no route."""
    if base := state_of(request.scope).base:
        return f"the base URL for clients is {request.app.state.access.own_address(request.scope)}{base}"
    return "GET / lists all routes"


def as_toolchat_error(error: BaseException) -> ToolchatError:
    """The error that answers a request for an exception: ``HTTPException`` keeps its status; a bug is logged."""
    if isinstance(error, ToolchatError):
        return error
    if isinstance(error, asyncio.CancelledError):
        # The server cancels what still runs when its time to stop is over: an error to retry, not a bug.
        return Draining("the service was stopped before the answer was ready", retry_after=1)
    if not isinstance(error, HTTPException):
        _log.error("unhandled exception", exc_info=error)
        return ToolchatError("An unexpected error; the log has it under this request id")
    status: int = error.status_code
    phrase = HTTPStatus(status).phrase if status in _STATUSES else "Error"
    detail = error.detail if isinstance(error.detail, str) else to_json(error.detail, fallback=str).decode()
    problem = ToolchatError(detail or phrase, retryable=status in (408, 429, 503))
    problem.status, problem.title = status, phrase
    problem.code = _CODES.get(status, phrase.lower().replace(" ", "-") if status in _STATUSES else f"status-{status}")
    return problem


def _allowed(request: Request, status: int) -> dict[str, str]:
    """``Allow`` with all methods of the path; the framework names only those of its first route."""
    path = getattr(request.scope.get("route"), "path_format", "")
    documented = request.app.openapi()["paths"].get(path, {}) if status == 405 else {}
    return {"Allow": ", ".join(sorted(method.upper() for method in documented))} if documented else {}
