"""The page on which the same question is asked in all its forms; plain files, no build."""

import os
from pathlib import Path

from fastapi import FastAPI
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

__all__ = ["add_playground"]

_POLICY = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("script", "style", "img", "connect")),
        *(f"{what} 'none'" for what in ("base-uri", "form-action", "frame-ancestors")),
    )
)


class _PageFiles(StaticFiles):
    """Files that load nothing from elsewhere, and that a browser asks for anew after an update."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update({"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"})
        return response


def add_playground(app: FastAPI) -> None:
    """Serve the page at ``/playground/``; it asks only the service that it came from."""

    @app.get("/playground", include_in_schema=False)
    async def playground() -> RedirectResponse:
        # Relative, so that it holds below whatever path a proxy serves.
        return RedirectResponse("playground/")

    app.mount("/playground", _PageFiles(directory=Path(__file__).parent / "playground", html=True), name="playground")
