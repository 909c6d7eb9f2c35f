"""The routes that answer a question, by GET and by POST: their parameter, how they are found and documented."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.guard import path_below_root
from app.api.parameters import NOT_BLANK, NOT_BLANK_TOLD, Parameter, Parameters, checked_text
from app.api.problems import problems
from app.api.schemas import ANSWER_RESPONSES
from toolchat.errors import UnsupportedMediaType

__all__ = [
    "MAX_QUERY_CHARS",
    "Ask",
    "FastRouter",
    "QuestionParameter",
    "QuestionRoute",
    "ReadRoute",
    "question_routes",
]


MAX_QUERY_CHARS = 4000
"""Longest question; even all Chinese and percent-encoded it stays below the server's 64 KiB for a URL."""

Ask = Callable[[Request], Awaitable[Response]]
"""Answers a question; the endpoint of a :class:`QuestionRoute`."""

_BY_POST = (
    "The better way for clients: proxies and logs do not see the question, and no URL is too long for it. "
    "The parameters of the GET are the fields of the JSON body; the answers are the same."
)
_ERROR = "toolchat.error"
_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Awaitable[Response]])


class Documented(Protocol):
    """Whatever a question is asked with."""

    def documented(self, method: str) -> dict[str, Any]:
        """What OpenAPI says of it, for a route's ``openapi_extra``."""
        ...


class QuestionParameter:
    """The parameter ``query`` of routes that have no other: read, checked and documented from the same words.

    FastAPI's own ``Query`` costs more than all else that is done to a request here.

    Args:
        default: the question that is meant where ``query`` is missing or empty, as in Spring.
        examples: further questions for the documentation, by label.
        url_of_post: as :class:`Parameters` takes it.
    """

    def __init__(self, default: str, examples: Mapping[str, str] | None = None, *, url_of_post: bool = False) -> None:
        self.default = default
        self.examples = {"默认 / default": default, **(examples or {})}
        bounds = {"type": "string", "maxLength": MAX_QUERY_CHARS, **NOT_BLANK}
        schema = bounds | {"default": default, "title": "Query"}
        query = Parameter(
            "query", schema, f"The question. {NOT_BLANK_TOLD}. Missing or empty: the default.", self.examples
        )
        self._parameters = Parameters(query, url_of_post=url_of_post)
        self.documented = self._parameters.documented

    async def read(self, request: Request) -> str:
        """The question to ask; raises as :meth:`Parameters.read`."""
        raw: bytes = request.scope["query_string"]
        if request.scope["method"] == "GET" and b"&" not in raw and (not raw or raw.startswith(b"query=")):
            # Nearly every question; UTF-8 has been checked at the door.
            text = unquote_to_bytes(raw[6:].replace(b"+", b" ")).decode()
            return checked_text("query", text, MAX_QUERY_CHARS) or self.default
        return (await self._parameters.read(request)).get("query") or self.default


class QuestionRoute(APIRoute):
    """A route whose endpoint takes the request alone, so that the :class:`FastRouter` can call it."""


def question_routes(
    router: APIRouter, path: str, parameters: Documented, **documentation: Any
) -> Callable[[_Endpoint], _Endpoint]:
    """Add an endpoint that answers a question: by GET with its parameters in the URL, by POST in a JSON body.

    Args:
        router: the application's router, or one that is included there.
        path: the path.
        parameters: what the endpoint reads of its request; documents it.
        **documentation: what ``add_api_route`` takes, such as ``summary``.
    """
    responses, told = documentation.pop("responses", ANSWER_RESPONSES), documentation.pop("description", None)

    def add(endpoint: _Endpoint) -> _Endpoint:
        text = told or inspect.getdoc(endpoint) or ""
        for method, description, more in (
            ("GET", text, {}),
            ("POST", f"{text}\n\n{_BY_POST}", problems(UnsupportedMediaType)),
        ):
            router.add_api_route(
                path,
                endpoint,
                methods=[method],
                description=description,
                response_class=Response,
                responses=responses | more,
                openapi_extra=parameters.documented(method),
                **documentation,
            )
        return endpoint

    return add


class FastRouter:
    """Finds a question's route by its path instead of trying one route after the other.

    It stands in front of the framework's own way, as the innermost middleware. All that it knows it learns from the
    application's router: a route that has dependencies, such as a guard of the application, that stands in a router
    which was included, or that another route comes before, is left to the framework. For the others the framework's way
    (four exit stacks, and a look at every route) costs five times as much as all else that is done to a question here.

    Args:
        app: the framework's way, which whatever is no question goes.
        service: the application: its routes, and its handlers of exceptions, which answer for questions too.
    """

    def __init__(self, app: ASGIApp, service: FastAPI) -> None:
        self._way = app
        self._router = service.router
        handlers = {kind: each for kind, each in service.exception_handlers.items() if kind not in (500, Exception)}
        self._failed = ExceptionMiddleware(_fail, handlers)
        self._endpoints: dict[tuple[str, str], QuestionRoute] = {}
        self._known = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        route = self.route_of(scope) if scope["type"] == "http" else None
        if route is None:
            await self._way(scope, receive, send)
            return
        scope.update(router=self._router, route=route, endpoint=route.endpoint, path_params={})
        try:
            response = await route.endpoint(Request(scope, receive, send))
            await response(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - raised again where the framework's handlers are
            scope[_ERROR] = error
            await self._failed(scope, receive, send)

    def route_of(self, scope: Scope) -> QuestionRoute | None:
        """The question's route that can be called at once; ``None`` for whatever the framework must answer."""
        if self._known != len(self._router.routes):
            self._known = len(self._router.routes)
            questions = [each for each in self._router.routes if isinstance(each, QuestionRoute)]
            methods = [(method, each) for each in questions for method in each.methods or ()]
            self._endpoints = {(method, each.path): each for method, each in methods if self._is_free(method, each)}
        return self._endpoints.get((scope["method"], path_below_root(scope)))

    def _is_free(self, method: str, route: QuestionRoute) -> bool:
        """Whether nothing stands between a request and the route's endpoint."""
        asked = {"type": "http", "method": method, "path": route.path, "root_path": "", "headers": []}
        # A route of the path with other methods only matches in part, and gives way to a later one that has this one.
        matching = (each for each in self._router.routes if each.matches(dict(asked))[0] is Match.FULL)
        return not route.dependant.dependencies and next(matching, None) is route


async def _fail(scope: Scope, _: Receive, __: Send) -> None:
    raise scope.pop(_ERROR)


class ReadRoute(APIRoute):
    """A route that answers HEAD as it answers GET (RFC 9110, section 9.3.2); the server leaves the body out.

    Routes that ask a model are none of these: HEAD would cost as much as GET, and say nothing.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See :meth:`APIRoute.matches`."""
        return super().matches(_as_get(scope))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See :meth:`APIRoute.handle`."""
        await super().handle(_as_get(scope), receive, send)


def _as_get(scope: Scope) -> Scope:
    return {**scope, "method": "GET"} if scope.get("method") == "HEAD" else scope
