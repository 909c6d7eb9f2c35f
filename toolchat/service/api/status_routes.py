"""Routes about the service itself: the index, health probes, metrics, and the list of tools."""

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from starlette.responses import PlainTextResponse, Response

from toolchat import __version__
from toolchat.errors import Draining, Starting
from toolchat.models.fallbacks import models_of
from toolchat.models.resilience import ResilientChatModel
from toolchat.service.access.principals import ASK, current_request_caller
from toolchat.service.api.fast_router import DirectRoute, ReadRoute
from toolchat.service.api.problems import problems
from toolchat.service.api.schemas import Health, Index, ToolModuleDescription
from toolchat.service.api.service import Service, ServiceState, model_label
from toolchat.service.api.tool_registry import Entry
from toolchat.service.api.tool_routes import describe_usable
from toolchat.service.observability import tracing
from toolchat.service.observability.multiprocess import registry

router = APIRouter(tags=["Service"], route_class=ReadRoute)


@router.get("/", response_model=Index, summary="List the endpoints")
async def index(request: Request, service: Service) -> dict[str, Any]:
    """List the endpoints, the chat model and the documentation."""
    paths, principal = request.app.openapi()["paths"], current_request_caller().principal
    return {
        "name": "toolchat",
        "version": __version__,
        "chat_model": service.model_label,
        "documentation": "/docs",
        "playground": "/playground",
        "question_max_chars": service.settings.question_max_chars,
        "takes_images": service.chat.model.takes_images,
        "client": principal.name,
        "may_ask": ASK in principal.roles,
        "endpoints": {
            path: "; ".join(f"{method.upper()}: {each.get('summary', '')}" for method, each in operations.items())
            for path, operations in paths.items()
        },
    }


@router.get(
    "/tools", response_model=list[ToolModuleDescription], response_model_exclude_unset=True, summary="List the tools"
)
async def tools(service: Service) -> list[dict[str, Any]]:
    """List every tool module: its tools' definitions, or why it is not registered and which variable to set."""
    return describe_usable(service.tools.entries.values(), _starters(service))


def _starters(service: ServiceState) -> Callable[[Entry], Sequence[str]]:
    """Finds the questions with which a conversation may begin, without those that the offline model would refuse."""
    if service.chat.model.provider != "offline":
        return lambda entry: entry.module.questions
    from toolchat.service.offline.replies import starters_of

    return lambda entry: starters_of(
        entry.module.questions, entry.in_conversation(), service.tools.for_conversation(None, entry.module.name)[0]
    )


class _ProbeRoute(ReadRoute, DirectRoute):
    """A direct route for probes, which come every few seconds."""


async def live(_: Request) -> Response:
    """Report that the process responds. No other service is checked."""
    return Response(b'{"status":"ok"}', media_type="application/json")


def add_probe(added: APIRouter) -> None:
    """Add the route of the liveness probe."""
    probe = _ProbeRoute
    added.add_api_route(
        "/health/live", live, tags=router.tags, response_model=Health, summary="Liveness", route_class_override=probe
    )


@router.get(
    "/health/ready",
    response_model=Health,
    response_model_exclude_unset=True,
    responses=problems(503),
    summary="Readiness",
)
async def ready(service: Service) -> dict[str, Any]:
    """Report whether questions are accepted, the model, and the registered tools; 503 during shutdown.

    At start also 503 while tools of MCP servers are waited for; questions are answered with the others.
    """
    if service.admission.draining:
        raise Draining("the service is being stopped", retry_after=1)
    if names := sorted(service.tools.starting):
        raise Starting(f"the tools of {', '.join(names)} are not there yet", retry_after=1)
    registered = {name: entry.fault is None for name, entry in service.tools.entries.items()}
    store = {"kind": service.store.kind, "available": service.store.available}
    status = "ok" if service.store.available else "degraded"
    health = {"status": status, "chat_model": service.model_label, "tools": registered, "state_store": store}
    principal = current_request_caller().principal
    if principal.name and "operate" in principal.roles:  # host names are for operators, and probes need no key
        health["failures"] = await _failures(service)
        health["adapted"] = {name: it for each in models_of(service.chat.model) for name, it in each.adapted.items()}
    return health


async def _failures(service: ServiceState) -> dict[str, str]:
    failures = service.http.breakers.last_failures
    for name, entry in service.tools.entries.items():
        if away := next((each for each in entry.sources if each.fault), None):
            failures[name] = f"{away.fault} ({away.cause})" if away.cause else str(away.fault)
    if tracing.observer is not None and (failure := tracing.observer.export_failure()):
        failures["traces"] = failure
    for each in models_of(service.chat.model):
        if isinstance(each, ResilientChatModel) and each.breaker.last_failure:
            failures[model_label(each.provider, each.name)] = each.breaker.last_failure
    if not service.store.available:
        failures["state store"] = service.store.cause
    return failures


@router.get("/metrics", response_class=PlainTextResponse, summary="Metrics")
async def metrics(request: Request, service: Service) -> Response:
    """Report the metrics for Prometheus: in its text format or, if the client accepts it, as OpenMetrics."""
    service.update_metrics()
    if "application/openmetrics-text" in request.headers.get("accept", ""):
        text, kind = openmetrics.generate_latest(registry()), openmetrics.CONTENT_TYPE_LATEST
    else:
        text, kind = generate_latest(registry()), CONTENT_TYPE_PLAIN_0_0_4
    return Response(text, headers={"Content-Type": kind})
