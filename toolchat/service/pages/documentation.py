"""Web pages: Swagger UI, and the playground."""

import os
from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from toolchat.service.api.problems import problem_page

_HERE = Path(__file__).parent


def _policy(**more: str) -> str:
    """The Content-Security-Policy of a page: it loads files of its own folder, and more where it needs more."""
    own = (f"{kind}-src 'self'{more.get(kind, '')}" for kind in ("script", "style", "img", "connect"))
    nothing = (f"{what} 'none'" for what in ("base-uri", "form-action", "frame-ancestors"))
    return "; ".join(("default-src 'none'", *own, *nothing))


class _PageFiles(StaticFiles):
    """Static files with a Content-Security-Policy, which browsers revalidate, so that an update takes effect."""

    def __init__(self, folder: str | Path, policy: str) -> None:
        super().__init__(directory=_HERE / folder, html=True)
        self._headers = {"Content-Security-Policy": policy, "Cache-Control": "no-cache"}

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(self._headers)
        return response


def add_documentation(app: FastAPI) -> None:
    """Serve the playground, and Swagger UI at ``/docs`` from an installed package; no request leaves the host."""
    _add_playground(app)
    package = find_spec("fastapi_offline")
    if package is None or package.origin is None:
        return
    page = _PageFiles("swagger", _policy(img=" data:"))  # Swagger UI's style sheet holds its icons
    app.mount("/docs/static", _PageFiles(Path(package.origin).parent / "static", _policy()), name="docs-static")
    app.mount("/docs/page", page, name="docs-page")

    @app.api_route("/docs", methods=["GET", "HEAD"], include_in_schema=False)
    async def docs(request: Request) -> Response:
        return await page.get_response("index.html", request.scope)

    @app.api_route("/docs/", methods=["GET", "HEAD"], include_in_schema=False)
    async def moved() -> RedirectResponse:
        return RedirectResponse("../docs")  # the page refers to files that lie beside it

    @app.api_route("/docs/errors.md", methods=["GET", "HEAD"], include_in_schema=False)
    async def errors() -> PlainTextResponse:
        return PlainTextResponse(problem_page())


def _add_playground(app: FastAPI) -> None:
    """Serve the page at ``/playground/``; it sends requests only to the service that it came from."""

    @app.api_route("/playground", methods=["GET", "HEAD"], include_in_schema=False)
    async def playground(request: Request) -> RedirectResponse:
        # Relative, so that it works below any path prefix of a proxy.
        return RedirectResponse(f"playground/{'?' if request.url.query else ''}{request.url.query}")

    app.mount("/playground", _PageFiles("playground", _policy(img=" data:")), name="playground")
