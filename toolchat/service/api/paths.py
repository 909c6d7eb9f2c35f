"""The path of a request as the routes declare it, however a client or a proxy writes it."""

import re
from collections.abc import Iterator
from itertools import pairwise

from fastapi.routing import iter_route_contexts
from starlette.routing import Match
from starlette.types import Scope

from toolchat.service.observability.logs import hashed
from toolchat.service.request_state import state_of


def path_below_root(scope: Scope) -> str:
    """The path as the routes declare it: a server with a ``root_path`` puts that in front of every path."""
    root: str = scope.get("root_path", "")
    path: str = scope["path"]
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


class ShownPaths:
    """Paths for logs and spans: what stands where a route has a parameter is hashed, for an id may grant access.

    So is what follows it and is no word of any route, also if no route has the path.
    """

    def __init__(self) -> None:
        self._known = 0
        self._words: set[str] = set()
        self._before_parameters: set[str] = set()

    def of(self, scope: Scope, path: str) -> str:
        routes = scope["app"].router.routes
        if len(routes) != self._known:  # routes may have been added since
            self._known = len(routes)
            templates = [(each.path or "").split("/") for each in iter_route_contexts(routes)]
            self._words = {each for parts in templates for each in parts if not each.startswith("{")}
            pairs = [pair for parts in templates for pair in pairwise(parts)]
            self._before_parameters = {before for before, each in pairs if each.startswith("{")}
        shown, is_private = [], False
        for part in path[:200].split("/"):
            shown.append(hashed(part) if is_private and part not in self._words else part)
            is_private = is_private or part.lower() in self._before_parameters
        return "/".join(shown)


_ENDPOINTS = ("/authorize", "/register", "/token")
"""Where MCP hosts expect an identity provider that has no metadata."""


def is_missing_discovery(scope: Scope) -> bool:
    """Whether a client looks for a way to get a key where there is none; it has no key yet, and fails at a 401."""
    path = path_below_root(scope)
    return (path in _ENDPOINTS or "/.well-known/" in path) and _match(scope, path) is Match.NONE


class Paths:
    """Corrects paths that no route has: with a slash too many, below the root twice, without the base of a protocol."""

    # A redirect would be lost on most clients: they repeat the request without its body or its key.

    def __init__(self, short: tuple[str, ...], base: str) -> None:
        self._short, self._base = short, base

    def correct(self, scope: Scope) -> str:
        """Replace the path of a request by what it means, and return the path whose protocol answers it."""
        root, path = scope.get("root_path", ""), path_below_root(scope)
        if b"%2f" in scope.get("raw_path", b"").lower():  # a slash in an id, which would become another id
            return path
        if not ("//" in path or path[-1:] == "/" or _is_below(path, root) or self._is_short(path)) or path == "/":
            return path
        candidates = list(dict.fromkeys(_writings(path, root)))
        clean = candidates[-1]
        candidates.append(self._base + clean if self._is_short(clean) else clean)
        matches = [_match(scope, each) for each in candidates]
        for wanted in (Match.FULL, Match.PARTIAL):
            if wanted in matches:
                found = candidates[matches.index(wanted)]
                scope["path"] = root + found
                state_of(scope).is_short = self._is_short(clean) and found != clean
                return found
        scope["path"] = root + clean
        return candidates[-1]

    def _is_short(self, path: str) -> bool:
        is_like = path.startswith(self._short) or path.endswith(self._short)
        return is_like and not path.startswith(f"{self._base}/")


def _writings(path: str, root: str) -> Iterator[str]:
    """A path as it is, and what it may mean, the cleanest last."""
    yield path
    path = re.sub("/{2,}", "/", path)
    yield path
    if _is_below(path, root):  # the proxy has not stripped the prefix
        path = path[len(root) :] or "/"
        yield path
    yield path.rstrip("/") or "/"


def _is_below(path: str, root: str) -> bool:
    return bool(root) and f"{path}/".startswith(f"{root}/")


def _match(scope: Scope, path: str) -> Match:
    """How well the routes match a path: with the method, without it, or not at all."""
    probe = {**scope, "path": scope.get("root_path", "") + path}
    found = {route.matches(dict(probe))[0] for route in scope["app"].router.routes}
    return next((each for each in (Match.FULL, Match.PARTIAL) if each in found), Match.NONE)
