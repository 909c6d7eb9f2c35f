"""The application put together: the only place that knows everything."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI
from fastapi.params import Depends
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.types import ASGIApp

import app.server.deferred_imports  # noqa: F401 - before FastAPI
from app.access.runtime import Access
from app.api.approval_routes import router as approval_routes
from app.api.cors import allow_origins
from app.api.fast_router import FastRouter
from app.api.guard import GuardMiddleware, ProtocolAdapter, RequestMiddleware
from app.api.problems import add_problem_handlers
from app.api.responses import ANSWER_FORMATS
from app.api.responses.formats import AnswerFormat
from app.api.sessions import add_routes as add_session_routes
from app.api.status_routes import router as status_routes
from app.api.tool_routes import router as tool_routes
from app.composition.configuration import Configuration, read_configuration
from app.composition.lifespan import open_service
from app.observability.otlp.switch import traced
from app.pages.documentation import add_documentation
from app.pages.openapi import DESCRIPTION, document_api, operation_id
from app.protocols.ai_sdk import AI_SDK
from app.protocols.mcp_server import MCP
from app.protocols.openai import OPENAI
from app.tools.registry import ConfiguredModule
from toolchat import __version__
from toolchat.http.client import OutboundHttp

__all__ = ["Application", "create_app"]


class Application(FastAPI):
    """FastAPI, but for what answers exceptions outermost and looks at every piece of an answer for that.

    ``RequestMiddleware`` lets none of them out; those of a middleware around it the server answers in the same way.
    """

    def build_middleware_stack(self) -> ASGIApp:
        """See Starlette."""
        outermost = super().build_middleware_stack()
        return outermost.app if isinstance(outermost, ServerErrorMiddleware) else outermost


PROTOCOLS: tuple[ProtocolAdapter, ...] = (OPENAI, MCP, AI_SDK)
"""The protocols of others that the service speaks, one folder in ``app/api`` each."""


def create_app(
    configuration: Configuration | None = None,
    *,
    dependencies: Sequence[Depends] = (),
    answer_formats: Sequence[AnswerFormat] = ANSWER_FORMATS,
) -> FastAPI:
    """Put the application together; nothing is opened before it starts.

    Args:
        configuration: what was read from the environment; read now unless given.
        dependencies: guards that every route of the service has, as ``FastAPI(dependencies=...)`` takes them.
        answer_formats: the forms of answers that ``Accept`` chooses from, the default first.

    Raises:
        ConfigurationError: the service cannot start as it is set up.
    """
    read = configuration or read_configuration()
    access = Access(read.access)
    app = _application(_lifespan(read, access), dependencies)
    app.state.answer_formats, app.state.access = tuple(answer_formats), access
    _add_door(app, read, access)
    add_problem_handlers(app)
    _add_routes(app, read.modules)
    document_api(app)
    return app


def _lifespan(read: Configuration, access: Access) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
        async with traced(read.tracing, read.settings.shutdown_timeout), open_service(read) as (state, _):
            app.state.service = state
            app.openapi_schema = None  # it shows the tools, which are known from now on
            async with access.running(await state.container.get(OutboundHttp)):
                yield

    return lifespan


def _application(
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]], dependencies: Sequence[Depends]
) -> FastAPI:
    return Application(
        title="toolchat",
        description=DESCRIPTION,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        dependencies=dependencies,
        generate_unique_id_function=operation_id,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )


def _add_door(app: FastAPI, read: Configuration, access: Access) -> None:
    """What every request passes, whatever answers it: the last that is added comes first."""
    app.add_middleware(FastRouter, service=app)
    app.add_middleware(GuardMiddleware, access=access)
    allow_origins(app, read.access.settings.cors_origins)
    app.add_middleware(RequestMiddleware, protocols=PROTOCOLS, body_timeout=read.settings.server_read_timeout)


def _add_routes(app: FastAPI, modules: Sequence[ConfiguredModule]) -> None:
    for configured in modules:
        configured.module.add_routes(app.router)
    for protocol in PROTOCOLS:
        protocol.add_routes(app.router)
    add_session_routes(app.router)
    app.include_router(approval_routes)
    app.include_router(tool_routes)
    app.include_router(status_routes)
    add_documentation(app)
