"""Question routes: their registration, their parameter ``query``, and the router that finds them fast."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from toolchat.errors import CrossSite, IdempotencyConflict, UnsupportedMediaType
from toolchat.service.api.dependencies import REPLAYED, refuse_several_keys, require_same_site
from toolchat.service.api.parameters import (
    LONGER_BY_POST,
    NOT_BLANK,
    NOT_BLANK_DESCRIPTION,
    Parameter,
    Parameters,
    checked_text,
    decoded_query,
)
from toolchat.service.api.paths import path_below_root
from toolchat.service.api.problems import problems
from toolchat.service.api.schemas import ANSWER_RESPONSES

MAX_QUERY_CHARS = 4000
"""The longest question; in Chinese and percent-encoded it still fits into the server's 64 KiB for a URL."""

Ask = Callable[[Request], Awaitable[Response]]
"""Answers a question; the endpoint of a :class:`QuestionRoute`."""

_BY_POST = (
    "Prefer `POST` to `GET`: the question does not appear in the logs of proxies, and may be longer than a URL. "
    "The parameters of the `GET` become fields of the JSON body; the answers are the same. "
    "`Idempotency-Key` has no effect: a repeated question is answered again."
)
_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Awaitable[Response]])


class Documented(Protocol):
    """Parameters of a question that document themselves."""

    responses: dict[int | str, dict[str, Any]]
    """The responses to the question, for OpenAPI."""

    def documented(self, method: str) -> dict[str, Any]:
        """Their part of an OpenAPI operation, for a route's ``openapi_extra``."""
        ...


class QuestionParameter:
    """The parameter ``query`` of routes that have no other.

    FastAPI's own ``Query`` costs more than everything else that is done to a question here.

    Args:
        default: the question if ``query`` is missing or empty, as in Spring.
        examples: further questions for the documentation, by label.
        url_of_post: see :class:`Parameters`.
    """

    def __init__(self, default: str, examples: Mapping[str, str] | None = None, *, url_of_post: bool = False) -> None:
        self.default = default
        self.examples = {"默认 / default": default, **(examples or {})}
        bounds = {"type": "string", "maxLength": MAX_QUERY_CHARS, **NOT_BLANK}
        schema = bounds | {"default": default, "title": "Query"}
        query = Parameter(
            "query", schema, f"The question. {NOT_BLANK_DESCRIPTION}. Missing or empty: the default.", self.examples
        )
        self._parameters, self.responses = Parameters(query, url_of_post=url_of_post), ANSWER_RESPONSES
        self.documented = self._parameters.documented

    async def read(self, request: Request) -> str:
        """The question of a request; raises as :meth:`Parameters.read`."""
        raw: bytes = request.scope["query_string"]
        if request.scope["method"] == "GET" and b"&" not in raw and (not raw or raw.startswith(b"query=")):
            # Nearly every question; the guard has checked that it is UTF-8.
            text = decoded_query(request.scope).removeprefix("query=")
            return checked_text("query", text, MAX_QUERY_CHARS, LONGER_BY_POST) or self.default
        return (await self._parameters.read(request)).get("query") or self.default


class QuestionRoute(APIRoute):
    """A route whose endpoint takes only the request, so that the :class:`FastRouter` can call it."""


def question_routes(
    router: APIRouter, path: str, parameters: Documented, *, once: bool = False, **documentation: Any
) -> Callable[[_Endpoint], _Endpoint]:
    """Add an endpoint that answers a question: by GET with its parameters in the URL, by POST in a JSON body.

    Args:
        router: the application's router, or one that is included there.
        path: the path.
        parameters: the parameters that the endpoint reads, for the documentation.
        once: whether the question has effects: only by POST, from no page of another site, and answered once for each
            ``Idempotency-Key``; the endpoint takes an :data:`IdempotencyKey` and calls :func:`answer_once`.
        **documentation: arguments of ``add_api_route``, such as ``summary``.
    """
    responses, given = documentation.pop("responses", parameters.responses), documentation.pop("description", None)

    def add(endpoint: _Endpoint) -> _Endpoint:
        text = given or inspect.getdoc(endpoint) or ""
        by_post = ("POST", text if once else f"{text}\n\n{_BY_POST}", problems(UnsupportedMediaType))
        if once:
            by_post[2].update(problems(CrossSite, IdempotencyConflict))
            by_post[2][200] = responses[200] | {"headers": responses[200]["headers"] | REPLAYED}
            documentation["dependencies"] = [Depends(require_same_site), Depends(refuse_several_keys)]
        for method, description, more in (by_post,) if once else (("GET", text, {}), by_post):
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
    """Finds a question route by its path, instead of trying one route after the other.

    It is the innermost middleware, in front of the framework's routing, which costs five times as much as everything
    else that is done to a question here: four exit stacks, and a look at every route. A route is called directly only
    if the framework would do nothing else: it has no dependencies, it is not in an included router, and no other route
    matches first. Everything else goes to the framework.

    Args:
        app: the framework's routing.
        service: the application, with its routes and its exception handlers.
    """

    def __init__(self, app: ASGIApp, service: FastAPI) -> None:
        self._framework = app
        self._router = service.router
        self._handlers = service.exception_handlers
        self._routes: dict[tuple[str, str], QuestionRoute] = {}
        self._known = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it to the framework."""
        route = self.route_of(scope) if scope["type"] == "http" else None
        if route is None:
            await self._framework(scope, receive, send)
            return
        scope.update(router=self._router, route=route, endpoint=route.endpoint, path_params={})
        request = Request(scope, receive, send)
        try:
            response = await route.endpoint(request)
            await response(scope, receive, send)
        except Exception as error:
            handler = self._handler_of(error)
            if handler is None:
                raise
            answered = handler(request, error)
            response = await answered if inspect.isawaitable(answered) else answered
            await response(scope, receive, send)

    def _handler_of(self, error: Exception) -> Any:
        """The application's handler of an exception, as Starlette finds it: by the nearest class."""
        if isinstance(error, HTTPException) and (handler := self._handlers.get(error.status_code)):
            return handler
        # What the application handles as Exception is left to the guard, which is outside of every middleware.
        classes = (each for each in type(error).__mro__ if each is not Exception)
        return next((self._handlers[each] for each in classes if each in self._handlers), None)

    def route_of(self, scope: Scope) -> QuestionRoute | None:
        """The question route that can be called directly; ``None`` if the framework must route the request."""
        # Routes may have been added since; comparing their number costs nothing.
        if self._known != len(self._router.routes):
            self._known = len(self._router.routes)
            questions = [each for each in self._router.routes if isinstance(each, QuestionRoute)]
            methods = [(method, each) for each in questions for method in each.methods or ()]
            self._routes = {(method, each.path): each for method, each in methods if self._is_direct(method, each)}
        return self._routes.get((scope["method"], path_below_root(scope)))

    def _is_direct(self, method: str, route: QuestionRoute) -> bool:
        """Whether the framework would call the route's endpoint and do nothing else."""
        probe = {"type": "http", "method": method, "path": route.path, "root_path": "", "headers": []}
        # A route of the same path with other methods matches only in part, and the framework tries later ones.
        matching = (each for each in self._router.routes if each.matches(dict(probe))[0] is Match.FULL)
        # Any dependency, also one of the whole application, needs the framework to resolve it.
        return not route.dependant.dependencies and next(matching, None) is route


class ReadRoute(APIRoute):
    """A route that answers HEAD like GET (RFC 9110, section 9.3.2); the server omits the body.

    Question routes are not: HEAD would cost a model call and return nothing.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See :meth:`APIRoute.matches`."""
        return super().matches(_as_get(scope))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See :meth:`APIRoute.handle`."""
        await super().handle(_as_get(scope), receive, send)


def _as_get(scope: Scope) -> Scope:
    return {**scope, "method": "GET"} if scope.get("method") == "HEAD" else scope
