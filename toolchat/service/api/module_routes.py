"""The routes of tool modules: three chat routes each, and the module's own routes."""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import Literal

from dishka import Scope
from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import RouteContext, iter_route_contexts
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute

from toolchat.chat.tool_module import ToolModule
from toolchat.errors import ConfigurationError, NotConfigured
from toolchat.service.api.fast_router import Ask, DirectRoute, QuestionParameter, question_routes
from toolchat.service.api.problems import problems
from toolchat.service.api.responses.answers import answer_prompt
from toolchat.service.api.service import service_state
from toolchat.service.request_state import state_of

Variant = Literal["none", "function", "method"]

_SUMMARIES = {
    "none": "No tool: the model answers from what it knows",
    "function": "Function tool, found by its name: {names}",
    "method": "Method tool, a decorated method of an object: {names}",
}
_DESCRIPTIONS = {
    "none": "The model is offered no tool, for comparison with the other two variants.",
    "function": "The model is offered the module's function tools by name, decides whether to call them, and answers "
    "from their results.",
    "method": "The model is offered the module's method tools: the same tool, declared as a decorated method.",
}
_SUFFIX = {"none": "chat", "function": "chat-tool-function", "method": "chat-tool-method"}


def add_module_routes(router: APIRouter, module: ToolModule, *, documented: bool = True) -> list[BaseRoute]:
    """Add a module's chat routes, then its own routes, which answer 503 while its tools are not registered."""
    before = len(router.routes)
    if module.default_query:
        _add_chat_routes(router, module, documented=documented)
    routes = router.routes[before:]
    if module.router is not None:
        guard = Depends(_module_scope(module.name))
        router.include_router(
            module.router, dependencies=[guard], responses=problems(NotConfigured), include_in_schema=documented
        )
        routes += module.router.routes
    return routes


def refuse_shadowed_routes(
    of_modules: Iterable[tuple[str, Sequence[BaseRoute]]], of_service: Sequence[BaseRoute]
) -> None:
    """Check that no module, by its file, takes a path of the service, whose meaning and protection it would change."""
    operations = [operation for route in iter_route_contexts(of_service) for operation in _operations(route)]
    taken = {_first_segment(path) for path, _ in operations} - _SHARED
    seen: set[tuple[str, str]] = set(operations)
    contexts = ((file, route) for file, routes in of_modules for route in iter_route_contexts(routes))
    for file, (path, method) in ((file, operation) for file, route in contexts for operation in _operations(route)):
        if _first_segment(path) in taken:
            fault = f"{file}: the path {path} begins with /{_first_segment(path)}, which is the service's"
            raise ConfigurationError(f"{fault}; rename the module, or set its path")
        if (path, method) in seen:
            raise ConfigurationError(f"{file}: the path {path} exists already; rename the module, or set its path")
        seen.add((path, method))


_SHARED = {"tools", "mcp"}
"""Modules may have paths below these: the documents' examples, and the servers of ``MCP_SERVERS_FILE``."""


def _first_segment(path: str) -> str:
    return path.strip("/").partition("/")[0]


def _operations(route: RouteContext) -> Iterator[tuple[str, str]]:
    """The path and method of each operation of a route; a mounted application has every method."""
    for method in route.methods or ("*",):
        yield route.path or "", method


def _add_chat_routes(router: APIRouter, module: ToolModule, *, documented: bool) -> None:
    question = QuestionParameter(module.default_query, module.examples)
    created_at_start = ("those that are made at start",) if module.callback_sources or module.tool_source else ()
    variants: dict[Variant, Sequence[str]] = {
        "none": ("",),
        "function": (*module.function_names(), *created_at_start),
        "method": [each.name for each in module.declared() if each.kind == "method"],
    }
    for variant, names in variants.items():
        if names:
            question_routes(
                router,
                f"{module.path}/{_SUFFIX[variant]}",
                question,
                route_class_override=DirectRoute,
                tags=[module.title],
                summary=_SUMMARIES[variant].format(names=", ".join(names)),
                description=_DESCRIPTIONS[variant],
                include_in_schema=documented,
            )(_ask(module.name, variant, question))


def _ask(module: str, variant: Variant, question: QuestionParameter) -> Ask:
    async def ask(request: Request) -> Response:
        state_of(request.scope).variant, service = variant, service_state(request)
        tools = () if variant == "none" else service.tools.offered(module, variant)
        prompt = service.chat.prompt(await question.read(request)).tools(tools)
        return await answer_prompt(request, prompt)

    return ask


def _module_scope(module: str) -> Callable[[HTTPConnection], AsyncGenerator[None, None]]:
    """A dependency of a module's own routes: they need its tools, and ``FromDishka`` needs a container."""

    async def scope(connection: HTTPConnection) -> AsyncGenerator[None, None]:
        """Raise ``NotConfigured`` while the tools are not registered; open the request's scope of the container."""
        service = service_state(connection)
        service.tools.offered(module, "function")
        async with service.containers[module](scope=Scope.REQUEST) as container:
            connection.state.dishka_container = container
            yield

    return scope
