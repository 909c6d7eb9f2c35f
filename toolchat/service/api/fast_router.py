"""Question routes: their registration, their parameter ``query``, and the index that finds every route fast."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from toolchat.errors import CrossSite, IdempotencyConflict, UnsupportedMediaType
from toolchat.service.api.dependencies import REPLAYED, require_one_intent
from toolchat.service.api.parameters import NOT_BLANK, NOT_BLANK_DESCRIPTION, Parameter, Parameters
from toolchat.service.api.paths import path_below_root
from toolchat.service.api.problems import problems
from toolchat.service.api.schemas import ANSWER_RESPONSES

MAX_QUERY_CHARS = 4000
"""The longest question; in Chinese and percent-encoded it still fits into the server's 64 KiB for a URL."""

Ask = Callable[[Request], Awaitable[Response]]
"""The endpoint of a :class:`DirectRoute`."""

_BY_POST = (
    "Prefer `POST` to `GET`: the question does not appear in the logs of proxies, and may be longer than a URL. "
    "The parameters of the `GET` become fields of the JSON body; the answers are the same. "
    "`Idempotency-Key` has no effect: a repeated question is answered again."
)
_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Awaitable[Response]])


class QuestionParameter(Parameters):
    """The parameter ``query`` of routes that have no other.

    Args:
        default: the question if ``query`` is missing or empty, as in Spring.
        examples: further questions for the documentation, by label.
        url_of_post: whether a POST accepts it in its URL, too, for compatibility.
    """

    responses = ANSWER_RESPONSES

    def __init__(self, default: str, examples: Mapping[str, str] | None = None, *, url_of_post: bool = False) -> None:
        self.default = default
        self.examples = {"默认 / default": default, **(examples or {})}
        bounds = {"type": "string", "maxLength": MAX_QUERY_CHARS, **NOT_BLANK}
        schema = bounds | {"default": default, "title": "Query"}
        query = Parameter(
            "query", schema, f"The question. {NOT_BLANK_DESCRIPTION}. Missing or empty: the default.", self.examples
        )
        super().__init__(query, url_of_post=url_of_post)

    async def read(self, request: Request) -> str:
        """The question of a request; raises ``ValidationFailed``, ``InvalidRequest`` and ``UnsupportedMediaType``."""
        return (await self.values(request)).get("query") or self.default


class DirectRoute(APIRoute):
    """A route whose endpoint takes only the request: the :class:`RouteIndex` calls it unless it has dependencies."""


def question_routes(
    router: APIRouter, path: str, parameters: Parameters, *, once: bool = False, **documentation: Any
) -> Callable[[_Endpoint], _Endpoint]:
    """Add an endpoint that answers a question: by GET with its parameters in the URL, by POST in a JSON body.

    With ``once`` the question has effects: only by POST, from no page of another site, and answered once for each
    ``Idempotency-Key``; the endpoint takes an :data:`IdempotencyKey` and calls :func:`answer_once`. ``documentation``
    are arguments of ``add_api_route``, such as ``summary``.
    """
    responses, given = documentation.pop("responses", parameters.responses), documentation.pop("description", None)

    def add(endpoint: _Endpoint) -> _Endpoint:
        text = given or inspect.getdoc(endpoint) or ""
        by_post = ("POST", text if once else f"{text}\n\n{_BY_POST}", problems(UnsupportedMediaType))
        if once:
            by_post[2].update(problems(CrossSite, IdempotencyConflict))
            by_post[2][200] = responses[200] | {"headers": responses[200]["headers"] | REPLAYED}
            documentation["dependencies"] = [Depends(require_one_intent)]
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


class RouteIndex(BaseRoute):
    """The first route of the application: it finds the others by their path, instead of trying one after the other."""

    # FastAPI calls an endpoint within three exit stacks, after it has looked for dependencies: 4 % more instructions
    # for a whole question, without any parameter, and more than twice as many for a health probe.

    def __init__(self, router: APIRouter) -> None:
        self._router = router
        self._known = 0
        self._routes: dict[Sequence[str], list[BaseRoute]] = {}
        """The routes that may match a path with these first two segments, in their order."""
        self._direct: dict[tuple[str, str], DirectRoute] = {}
        """Those without a parameter in their path that were found before, by method and path."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        # A path that is found here only in part is left to the other routes.
        path = path_below_root(scope)
        candidates = self._candidates(path)
        if found := self._direct.get((scope.get("method", ""), path)):
            params = scope.get("path_params", {})  # of an application in which this one is mounted
            return Match.FULL, {"endpoint": found.endpoint, "path_params": params, "route": found, _FOUND: found}
        for route in candidates:
            match, child_scope = route.matches(scope)
            if match is Match.FULL:
                if isinstance(route, DirectRoute) and not route.param_convertors:
                    self._direct[scope["method"], path] = route
                return match, {**child_scope, _FOUND: route}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        route: BaseRoute = scope[_FOUND]
        if isinstance(route, DirectRoute) and not route.dependant.dependencies:
            response = await route.endpoint(Request(scope, receive, send))
            await response(scope, receive, send)
        else:
            await route.handle(scope, receive, send)

    def _candidates(self, path: str) -> Sequence[BaseRoute]:
        # Routes may have been added since; comparing their number costs nothing.
        if self._known != len(self._router.routes):
            self._known = len(self._router.routes)
            self._routes = _by_segments([each for each in self._router.routes if each is not self])
            self._direct.clear()
        segments = _segments(path)
        return self._routes.get(segments) or self._routes.get((segments[0], _OTHER)) or ()


_FOUND = "toolchat.route"
_OTHER = "/"
"""Stands for every segment that no route has as a word."""


def _segments(path: str) -> tuple[str, ...]:
    return tuple(path.split("/", 3)[1:3]) or ("",)


def _by_segments(routes: Sequence[BaseRoute]) -> dict[Sequence[str], list[BaseRoute]]:
    paths = [(route, {_segments(each.path or "") for each in iter_route_contexts([route])}) for route in routes]
    keys = {key for _, each in paths for segments in each for key in (segments, (segments[0], _OTHER))}
    # First by the first segment alone: with many modules, every key with every path would be most of the first request.
    firsts = {key[:1] for key in keys}
    below = {first: [pair for pair in paths if any(_may_match(its, first) for its in pair[1])] for first in firsts}
    return {key: [route for route, each in below[key[:1]] if any(_may_match(its, key) for its in each)] for key in keys}


def _may_match(segments: Sequence[str], key: Sequence[str]) -> bool:
    pairs = zip(segments, key, strict=False)
    return all(segment in ("", wanted) or "{" in segment for segment, wanted in pairs)


class ReadRoute(APIRoute):
    """A route that answers HEAD like GET (RFC 9110, section 9.3.2); the server omits the body."""

    # Question routes are not: HEAD would cost a model call and return nothing.

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return super().matches(_as_get(scope))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().handle(_as_get(scope), receive, send)


def _as_get(scope: Scope) -> Scope:
    return {**scope, "method": "GET"} if scope.get("method") == "HEAD" else scope
