"""Pages for people: Swagger UI, and the page on which the same question is asked in all its forms."""

import os
from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from app.api.problems import problem_page

__all__ = ["add_documentation"]

_POLICY = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("script", "style", "img", "connect")),
        *(f"{what} 'none'" for what in ("base-uri", "form-action", "frame-ancestors")),
    )
)

# Swagger UI brings colours for the dark, and leaves it to the page to ask for them; two things it has forgotten.
_FOLLOW_THE_SYSTEM = b"""
    <meta name="color-scheme" content="light dark">
    <style>
    .dark-mode .swagger-ui :is(.header-col, .headers td, .examples-select__section-label) { color: #e4e6e6; }
    </style>
    <script>
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
    dark.addEventListener("change", follow);
    follow();
    </script>
    </head>"""


class _PageFiles(StaticFiles):
    """Files that load nothing from elsewhere, and that a browser asks for anew after an update."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update({"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"})
        return response


def add_documentation(app: FastAPI) -> None:
    """Serve the playground, and Swagger UI at ``/docs`` from an installed package; no request leaves the host."""
    _add_playground(app)
    package = find_spec("fastapi_offline")
    if package is None or package.origin is None:
        return
    app.mount("/docs/static", StaticFiles(directory=Path(package.origin).parent / "static"), name="docs-static")

    @app.api_route("/docs", methods=["GET", "HEAD"], include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        root = request.scope.get("root_path", "")
        page = get_swagger_ui_html(
            openapi_url=f"{root}/openapi.json",
            title="toolchat",
            swagger_js_url=f"{root}/docs/static/swagger-ui-bundle.js",
            swagger_css_url=f"{root}/docs/static/swagger-ui.css",
            swagger_favicon_url=f"{root}/docs/static/favicon.png",
            swagger_ui_parameters={"displayRequestDuration": True, "defaultModelsExpandDepth": 0},
        )
        return HTMLResponse(bytes(page.body).replace(b"</head>", _FOLLOW_THE_SYSTEM, 1))

    @app.api_route("/docs/errors.md", methods=["GET", "HEAD"], include_in_schema=False)
    async def errors() -> PlainTextResponse:
        return PlainTextResponse(problem_page())


def _add_playground(app: FastAPI) -> None:
    """Serve the page at ``/playground/``; it asks only the service that it came from."""

    @app.api_route("/playground", methods=["GET", "HEAD"], include_in_schema=False)
    async def playground(request: Request) -> RedirectResponse:
        # Relative, so that it holds below whatever path a proxy serves.
        return RedirectResponse(f"playground/{'?' if request.url.query else ''}{request.url.query}")

    app.mount("/playground", _PageFiles(directory=Path(__file__).parent / "playground", html=True), name="playground")
