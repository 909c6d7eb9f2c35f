"""What surrounds the chat: the index, health, the list of tools, and Swagger UI."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.staticfiles import StaticFiles

from app.api.metrics import metrics_text
from app.api.playground import add_playground
from app.api.problems import problems
from app.api.schemas import Health, Index, ToolModuleDescription
from app.api.state import service_state
from app.errors import Draining
from app.version import VERSION

__all__ = ["add_documentation", "router"]

router = APIRouter(tags=["Service"])


@router.get("/", response_model=Index, summary="What there is")
async def index(request: Request) -> dict[str, Any]:
    """List the endpoints, the chat model and the documentation."""
    paths = request.app.openapi()["paths"]
    return {
        "name": "toolchat",
        "version": VERSION,
        "chat_model": service_state(request).model_label,
        "documentation": "/docs",
        "playground": "/playground",
        "endpoints": {path: _described(methods) for path, methods in paths.items()},
    }


def _described(methods: Mapping[str, Mapping[str, Any]]) -> str:
    return "; ".join(f"{method.upper()}: {operation.get('summary', '')}" for method, operation in methods.items())


@router.get("/tools", response_model=list[ToolModuleDescription], response_model_exclude_unset=True, summary="Tools")
async def tools(request: Request) -> list[dict[str, Any]]:
    """List every tool folder: its tools' definitions, or why it is not registered and which variable to set."""
    return service_state(request).tools.describe()


@router.get("/health/live", response_model=Health, response_model_exclude_unset=True, summary="Liveness")
async def live() -> dict[str, Any]:
    """Say that the process answers; depends on nothing outside it."""
    return {"status": "ok"}


@router.get(
    "/health/ready",
    response_model=Health,
    response_model_exclude_unset=True,
    responses=problems(503),
    summary="Readiness",
)
async def ready(request: Request) -> dict[str, Any]:
    """Say that questions are taken, by which model, and which tools are registered; 503 while the service stops."""
    state = service_state(request)
    if state.admission.draining:
        raise Draining("the service is being stopped", retry_after=1)
    registered = {each["name"]: each["registered"] for each in state.tools.describe()}
    store = {"kind": state.store.kind, "available": state.store.available}
    status = "ok" if state.store.available else "degraded"
    return {"status": status, "chat_model": state.model_label, "tools": registered, "state_store": store}


@router.get("/metrics", response_class=PlainTextResponse, summary="Metrics")
async def metrics(request: Request) -> PlainTextResponse:
    """Give the service's figures in the text format of Prometheus; read when asked for."""
    return PlainTextResponse(metrics_text(service_state(request)), media_type="text/plain; version=0.0.4")


def add_documentation(app: FastAPI) -> None:
    """Serve the playground, and Swagger UI at ``/docs`` from an installed package; no request leaves the host."""
    add_playground(app)
    package = find_spec("fastapi_offline")
    if package is None or package.origin is None:
        return
    app.mount("/docs/static", StaticFiles(directory=Path(package.origin).parent / "static"), name="docs-static")

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        root = request.scope.get("root_path", "")
        return get_swagger_ui_html(
            openapi_url=f"{root}/openapi.json",
            title="toolchat",
            swagger_js_url=f"{root}/docs/static/swagger-ui-bundle.js",
            swagger_css_url=f"{root}/docs/static/swagger-ui.css",
            swagger_favicon_url=f"{root}/docs/static/favicon.png",
            swagger_ui_parameters={"displayRequestDuration": True, "defaultModelsExpandDepth": 0},
        )
