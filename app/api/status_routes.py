"""Routes about the service itself: the index, health probes, metrics, and the list of tools."""

import platform
from collections.abc import Mapping
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse

from app.api.fast_router import ReadRoute
from app.api.problems import problems
from app.api.schemas import Health, Index, ToolModuleDescription
from app.api.service import Service, ServiceState
from app.api.tool_routes import describe_module
from app.observability import metrics as series
from app.observability import spans
from app.observability.deferred_recording import apply_recorded
from app.observability.logs import lost_lines
from app.observability.runtime import process_readings
from app.observability.series import Family, Readings, exposition
from toolchat import __version__
from toolchat.errors import Draining
from toolchat.http.client import OutboundHttp
from toolchat.tool_calling.caller import current_caller

__all__ = ["figures", "metrics_text", "router"]


_PYTHON = platform.python_version()


async def figures(state: ServiceState, *, open_metrics: bool = False) -> str:
    """The figures of this process."""
    return metrics_text(state, await state.container.get(OutboundHttp), open_metrics=open_metrics)


def metrics_text(state: ServiceState, http: OutboundHttp, *, open_metrics: bool = False) -> str:
    """Every figure of this process, with its meaning; what is kept elsewhere is read now."""
    quotas, store = state.admission.quotas, state.store
    readings: dict[Family, Readings] = {
        series.INFO: {(__version__, state.model_label, _PYTHON): 1},
        series.IN_FLIGHT: {(): state.admission.in_flight},
        series.REFUSED: {(): state.admission.refused},
        series.QUOTAS_ALONE: {(): int(quotas.alone)},
        series.QUOTAS_REFUSED: {(): quotas.refused.total()},
        series.CONNECTIONS: {(): http.connections},
        series.LOG_LOST: {(): lost_lines()},
        series.SESSIONS: {(): state.memory.active},
        series.APPROVALS: {(): state.approvals.saved},
        series.STORE_UP: {(store.kind,): int(store.available)},
        series.STORE_FAILURES: {(store.kind,): store.failures},
    }
    apply_recorded()
    return exposition(series.FAMILIES, readings | process_readings(), open_metrics=open_metrics)


router = APIRouter(tags=["Service"], route_class=ReadRoute)


@router.get("/", response_model=Index, summary="Index")
async def index(request: Request, service: Service) -> dict[str, Any]:
    """List the endpoints, the chat model and the documentation."""
    paths = request.app.openapi()["paths"]
    return {
        "name": "toolchat",
        "version": __version__,
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
    may_use = current_caller.get().may_use
    folders = map(describe_module, service.tools.entries.values())
    return [folder | {"tools": [each for each in folder["tools"] if may_use(each["name"])]} for folder in folders]


@router.get("/health/live", response_model=Health, response_model_exclude_unset=True, summary="Liveness")
async def live() -> dict[str, Any]:
    """Report that the process responds; depends on nothing outside of it."""
    return {"status": "ok"}


@router.get(
    "/health/ready",
    response_model=Health,
    response_model_exclude_unset=True,
    responses=problems(503),
    summary="Readiness",
)
async def ready(service: Service) -> dict[str, Any]:
    """Report that questions are accepted, the model, and the registered tools; 503 during shutdown."""
    if service.admission.draining:
        raise Draining("the service is being stopped", retry_after=1)
    registered = {name: entry.fault is None for name, entry in service.tools.entries.items()}
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
