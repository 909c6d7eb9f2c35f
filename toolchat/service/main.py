"""The composition root: builds the FastAPI application from every part of the service."""

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from fastapi import FastAPI
from fastapi.params import Depends

from toolchat import __version__
from toolchat.errors import StoreUnavailable
from toolchat.models.base import ChatModel
from toolchat.service.access.runtime import Access
from toolchat.service.api.approval_routes import router as approval_routes
from toolchat.service.api.background.routes import router as background_routes
from toolchat.service.api.background.runner import BackgroundRunner
from toolchat.service.api.body_limits import MAX_BODY_BYTES
from toolchat.service.api.fast_router import RouteIndex
from toolchat.service.api.guard import GuardMiddleware, ProtocolAdapter, RequestMiddleware, allow_origins
from toolchat.service.api.module_routes import add_module_routes, refuse_shadowed_routes
from toolchat.service.api.personal_data import router as person_routes
from toolchat.service.api.problems import add_problem_handlers
from toolchat.service.api.responses.event_stream import ANSWER_FORMATS
from toolchat.service.api.responses.formats import AnswerFormat
from toolchat.service.api.sessions import add_routes as add_session_routes
from toolchat.service.api.status_routes import add_probe, router as status_routes
from toolchat.service.api.tool_routes import add_tool_route
from toolchat.service.composition.configuration import Configuration, read_configuration
from toolchat.service.composition.lifespan import approval_webhook, open_service
from toolchat.service.composition.models import ChosenModel
from toolchat.service.observability.tracing import traced
from toolchat.service.pages.documentation import add_documentation
from toolchat.service.pages.openapi import DESCRIPTION, document_api, operation_id
from toolchat.service.protocols.ag_ui.routes import AG_UI
from toolchat.service.protocols.ai_sdk.routes import AI_SDK
from toolchat.service.protocols.anthropic.routes import ANTHROPIC
from toolchat.service.protocols.mcp_server.routes import MCP
from toolchat.service.protocols.openai.routes import OPENAI
from toolchat.service.tool_modules.definition_checks import shown_path, source_file
from toolchat.service.tool_modules.discovery import ConfiguredModule
from toolchat.state.base import StateStore


class Application(FastAPI):
    """A FastAPI application that can also be mounted in another one.

    Args:
        run: opens what the application needs while it runs.
        **options: arguments of ``FastAPI``.
    """

    def __init__(self, run: "_Run", **options: Any) -> None:
        super().__init__(lifespan=self.lifespan, **options)
        self._run = run

    def lifespan(self, _host: object = None) -> AbstractAsyncContextManager[None]:
        """Start the application on entry and stop it on exit.

        Starlette does not start a mounted application, so the outer one does: ``FastAPI(lifespan=ai.lifespan)``.
        """
        return self._run(self)


_log = logging.getLogger(__name__)

_Run = Callable[[FastAPI], AbstractAsyncContextManager[None]]

PROTOCOLS: tuple[ProtocolAdapter, ...] = (ANTHROPIC, OPENAI, MCP, AI_SDK, AG_UI)
"""Foreign wire protocols that the service speaks, one package in ``toolchat/service/protocols`` each.

The first whose prefix a path has owns it, so Anthropic's ``/v1/messages/`` comes before OpenAI's ``/v1/``.
"""


def create_app(
    configuration: Configuration | None = None,
    *,
    tools: Sequence[str] = (),
    dependencies: Sequence[Depends] = (),
    answer_formats: Sequence[AnswerFormat] = ANSWER_FORMATS,
    model: ChatModel | None = None,
) -> Application:
    """Build the application; connections and files are opened by its lifespan.

    Args:
        configuration: the validated configuration; by default it is read from the environment.
        tools: folders, or names of installed packages, whose tools are loaded in addition to those of ``TOOLS_PATH``;
            without effect if there is a ``configuration``.
        dependencies: dependencies of every route of the service, as for ``FastAPI(dependencies=...)``.
        answer_formats: the response formats that ``Accept`` selects from, the default first.
        model: answers instead of the configured chat model.

    Raises:
        ConfigurationError: the configuration is invalid.
    """
    if (read := configuration) is None:
        read = read_configuration(tools=tools)
        read.log_warnings()
    if model is not None:
        read = replace(read, chat_model=ChosenModel(model.provider, lambda _: model))
    access = Access(read.access)
    app = _application(_runner(read, access), dependencies)
    app.state.answer_formats, app.state.access = tuple(answer_formats), access
    app.state.question_max_chars = read.settings.question_max_chars
    _add_guards(app, read, access)
    add_problem_handlers(app)
    _add_routes(app, read.modules)
    document_api(app)
    return app


def _runner(read: Configuration, access: Access) -> _Run:
    @asynccontextmanager
    async def run(app: FastAPI) -> AsyncGenerator[None, None]:
        async with traced(read.tracing, read.settings.shutdown_timeout), open_service(read) as state:
            app.state.service = state
            await _warn_of_data_loss(state.store)
            app.openapi_schema = None  # a schema built earlier lacks the tools that were just opened
            access.authenticator.approver = state.approvals.tokens.principal
            state.approvals.known = access.authenticator.known
            rights = access.authenticator.current_rights
            background = BackgroundRunner(app, state.store, rights, state.tools.wait_ready)
            app.state.background = background
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(access.running(state.http))
                await stack.enter_async_context(background.running())
                if (webhook := approval_webhook(read, state.store)) is not None:
                    state.approvals.webhook = webhook
                    await stack.enter_async_context(webhook.running(state.approvals.describe))
                yield

    return run


async def _warn_of_data_loss(store: StateStore) -> None:
    with suppress(StoreUnavailable):
        if warning := await store.durability_warning():
            _log.warning("the state store loses data when it crashes", extra={"reason": warning})


def _application(run: _Run, dependencies: Sequence[Depends]) -> Application:
    return Application(
        run,
        title="toolchat",
        description=DESCRIPTION,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=dependencies,
        generate_unique_id_function=operation_id,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )


def _add_guards(app: FastAPI, read: Configuration, access: Access) -> None:
    """Add the middleware that every request passes. Starlette runs the last one added first."""
    app.add_middleware(GuardMiddleware, access=access, body_timeout=read.settings.server_client_timeout)
    allow_origins(app, read.access.settings.cors_origins)
    # JSON may escape a character as two of \uXXXX.
    longest = max(MAX_BODY_BYTES, 12 * read.settings.question_max_chars + 4096)
    app.add_middleware(RequestMiddleware, protocols=PROTOCOLS, max_body_bytes=longest)


def _add_routes(app: FastAPI, modules: Sequence[ConfiguredModule]) -> None:
    of_service = list(app.routes)
    of_modules = []
    for each in modules:
        added = add_module_routes(app.router, each.module, documented=each.settings.enabled)
        of_modules.append((shown_path(source_file(each.module.folder)), added))
    after = len(app.routes)
    for protocol in PROTOCOLS:
        protocol.add_routes(app.router)
    for add_routes in (add_session_routes, add_tool_route, add_probe):
        add_routes(app.router)
    of_service += app.routes[after:]
    for router in (background_routes, approval_routes, person_routes, status_routes):
        app.include_router(router)
        of_service += router.routes  # as they are defined: FastAPI builds each included route again, which takes long
    after = len(app.routes)
    add_documentation(app)
    refuse_shadowed_routes(of_modules, [*of_service, *app.routes[after:]])
    app.router.routes.insert(0, RouteIndex(app.router))
