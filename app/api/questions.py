"""The routes ``GET path?query=…``: their one parameter, and how they are found and documented."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from app.api.answer_responses import ANSWER_RESPONSES
from app.api.middleware import path_below_root
from app.errors import ValidationFailed

__all__ = ["MAX_QUERY_CHARS", "Ask", "QuestionParameter", "ShortWay", "add_question"]

MAX_QUERY_CHARS = 4000
"""Longest question; even all Chinese and percent-encoded it stays below the server's 64 KiB for a URL."""

Ask = Callable[[Request], Awaitable[Response]]
"""Answers a question; the endpoint of a :class:`QuestionRoute`."""


@dataclass(frozen=True)
class QuestionParameter:
    """The parameter ``query``: read, checked and documented from the same words.

    FastAPI's own ``Query`` costs more than all else that is done to a request here.
    """

    default: str
    """The question that is meant where ``query`` is missing or empty, as in Spring."""
    examples: Mapping[str, str] = field(default_factory=dict)
    """Further questions for the documentation, by label."""

    def read(self, request: Request) -> str:
        """The question to ask; raises as :meth:`given`."""
        return self.given(request) or self.default

    def given(self, request: Request) -> str:
        """The question as it was given; empty when it is missing.

        Raises:
            ValidationFailed: it is blank, too long, or given more than once.
        """
        query = _query(request)
        if len(query) > MAX_QUERY_CHARS:
            raise ValidationFailed(f"query: String should have at most {MAX_QUERY_CHARS} characters")
        if query and not query.strip():
            raise ValidationFailed("query: must not be blank")
        return query

    def documented(self) -> dict[str, Any]:
        """The parameter in OpenAPI's words, for a route's ``openapi_extra``."""
        shown = {"默认 / default": {"value": self.default}}
        shown |= {label: {"value": query} for label, query in self.examples.items()}
        schema = {"type": "string", "maxLength": MAX_QUERY_CHARS, "default": self.default, "title": "Query"}
        return {
            "parameters": [
                {
                    "name": "query",
                    "in": "query",
                    "required": False,
                    "description": "The question. Missing or empty: the default.",
                    "schema": schema,
                    "examples": shown,
                }
            ]
        }


def _query(request: Request) -> str:
    raw: bytes = request.scope["query_string"]
    if raw.startswith(b"query=") and b"&" not in raw:  # nearly every question; UTF-8 has been checked at the door
        return unquote_to_bytes(raw[6:].replace(b"+", b" ")).decode()
    given = request.query_params.getlist("query")
    if len(given) > 1:
        raise ValidationFailed("query: given more than once")
    return given[0] if given else ""


class QuestionRoute(APIRoute):
    """A route whose endpoint takes the request alone, so that the :class:`ShortWay` can call it."""


def add_question(router: APIRouter, path: str, ask: Ask, parameter: QuestionParameter, **documentation: Any) -> None:
    """Add a route that answers a question.

    Args:
        router: the application's router, or one that is included there.
        path: the path.
        ask: answers the request; it reads the question by ``parameter.read``.
        parameter: documents the question.
        **documentation: what ``add_api_route`` takes, such as ``summary``.
    """
    documentation.setdefault("responses", ANSWER_RESPONSES)
    router.add_api_route(
        path,
        ask,
        response_class=Response,
        route_class_override=QuestionRoute,
        openapi_extra=parameter.documented(),
        **documentation,
    )


class ShortWay:
    """Finds a question's route by its path instead of trying one route after the other.

    It stands around the application's router, inside of the exception handlers. All that it knows it learns from the
    router: a route that has dependencies, such as a guard of the application, that stands in a router which was
    included, or that another route comes before, is left to the framework. For the others the framework's way (three
    exit stacks, and a look at every route) costs four times as much as all else that is done to a question here.
    """

    def __init__(self, router: APIRouter) -> None:
        self._router = router
        self._way = router.middleware_stack
        self._endpoints: dict[str, QuestionRoute] = {}
        self._known = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        route = self.route_of(scope) if scope["type"] == "http" and scope["method"] == "GET" else None
        if route is None:
            await self._way(scope, receive, send)
            return
        scope.update(router=self._router, route=route, endpoint=route.endpoint, path_params={})
        response = await route.endpoint(Request(scope, receive, send))
        await response(scope, receive, send)

    def route_of(self, scope: Scope) -> QuestionRoute | None:
        """The question's route that can be called at once; ``None`` for whatever the framework must answer."""
        if self._known != len(self._router.routes):
            self._known = len(self._router.routes)
            questions = [each for each in self._router.routes if isinstance(each, QuestionRoute)]
            self._endpoints = {each.path: each for each in questions if self._is_free(each)}
        return self._endpoints.get(path_below_root(scope))

    def _is_free(self, route: QuestionRoute) -> bool:
        """Whether nothing stands between a request and the route's endpoint."""
        asked = {"type": "http", "method": "GET", "path": route.path, "root_path": "", "headers": []}
        matching = (each for each in self._router.routes if each.matches(dict(asked))[0] is not Match.NONE)
        return not route.dependant.dependencies and next(matching, None) is route
