"""What surrounds the chat: the index, health, figures, and the list of tools."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse

from app.api.metrics import figures
from app.api.problems import problems
from app.api.reading import ReadRoute
from app.api.schemas import Health, Index, ToolModuleDescription
from app.api.service import Service
from app.callers import current_caller
from app.errors import Draining
from app.observation import spans
from app.version import VERSION

__all__ = ["router"]

router = APIRouter(tags=["Service"], route_class=ReadRoute)


@router.get("/", response_model=Index, summary="What there is")
async def index(request: Request, service: Service) -> dict[str, Any]:
    """List the endpoints, the chat model and the documentation."""
    paths = request.app.openapi()["paths"]
    return {
        "name": "toolchat",
        "version": VERSION,
        "chat_model": service.model_label,
        "documentation": "/docs",
        "playground": "/playground",
        "endpoints": {path: _described(methods) for path, methods in paths.items()},
    }


def _described(methods: Mapping[str, Mapping[str, Any]]) -> str:
    return "; ".join(f"{method.upper()}: {operation.get('summary', '')}" for method, operation in methods.items())


@router.get("/tools", response_model=list[ToolModuleDescription], response_model_exclude_unset=True, summary="Tools")
async def tools(service: Service) -> list[dict[str, Any]]:
    """List every tool folder: its tools' definitions, or why it is not registered and which variable to set."""
    may_use = current_caller.get().principal.may_use
    folders = service.tools.describe()
    return [folder | {"tools": [each for each in folder["tools"] if may_use(each["name"])]} for folder in folders]


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
async def ready(service: Service) -> dict[str, Any]:
    """Say that questions are taken, by which model, and which tools are registered; 503 while the service stops."""
    if service.admission.draining:
        raise Draining("the service is being stopped", retry_after=1)
    registered = {each["name"]: each["registered"] for each in service.tools.describe()}
    store = {"kind": service.store.kind, "available": service.store.available}
    status = "ok" if service.store.available else "degraded"
    return {"status": status, "chat_model": service.model_label, "tools": registered, "state_store": store}


@router.get("/metrics", response_class=PlainTextResponse, summary="Metrics")
async def metrics(request: Request, service: Service) -> PlainTextResponse:
    """Give the service's figures in the text format of Prometheus; read when asked for.

    Where traces are on and the client takes OpenMetrics, in that, with a trace as an example of each bucket of times.
    """
    open_metrics = spans.tracer is not None and "application/openmetrics-text" in request.headers.get("accept", "")
    kind = "application/openmetrics-text; version=1.0.0" if open_metrics else "text/plain; version=0.0.4"
    of_all = getattr(request.app.state, "figures_of_all", None)  # there where this is one of several workers
    text = await (of_all or partial(figures, service))(open_metrics=open_metrics)
    return PlainTextResponse(text, media_type=kind)
