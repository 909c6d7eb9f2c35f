"""The application put together: the only place that knows everything."""

import logging
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import app.lean_imports  # noqa: F401 - before FastAPI

# isort: split
from dishka import AsyncContainer, Provider, Scope
from fastapi import FastAPI
from fastapi.params import Depends

from app.access.configured import Access, AccessConfiguration, open_quotas
from app.access.quotas import Limits
from app.access.settings import AccessSettings
from app.api.admission import Admission
from app.api.ai_sdk import AI_SDK
from app.api.answering import ANSWER_FORMATS
from app.api.answering.format import AnswerFormat
from app.api.application import Application
from app.api.approval_routes import router as approval_routes
from app.api.approvals import ApprovalStore
from app.api.cors import allow_origins
from app.api.documentation import add_documentation
from app.api.door import Door
from app.api.foreign_protocol import ForeignProtocol
from app.api.mcp import MCP
from app.api.middleware import RequestMiddleware
from app.api.openai_wire import OPENAI
from app.api.openapi import DESCRIPTION, document_api, operation_id
from app.api.paused_turns import PausedTurnRecords
from app.api.problems import add_problem_handlers
from app.api.questions import ShortWay
from app.api.service import ServiceState
from app.api.session_routes import add_routes as add_session_routes
from app.api.status_routes import router as status_routes
from app.api.tool_routes import router as tool_routes
from app.chat.advisors import SandboxNoticeAdvisor
from app.chat.call_limit_advisor import ConversationCallLimit
from app.chat.client import ChatClient
from app.chat.configured import exception_processor, manager, outbound_http, tool_loop
from app.chat.idempotency import IdempotencyStore
from app.chat.memory import ChatMemory, MemoryWindow
from app.chat.memory_advisor import MemoryAdvisor
from app.chat.model_choice import ChosenModel, choose_chat_model, import_providers
from app.chat.repair_advisor import ToolCallRepairAdvisor
from app.chat.tool_calling_advisor import ToolCallingAdvisor
from app.chat.tool_search import ToolSearchAdvisor
from app.chat_models.base import ChatModel
from app.container import instance, instances, make_container
from app.errors import ConfigurationError
from app.http import OutboundHttp
from app.mcp_servers import McpServers, read_mcp_servers
from app.observation.runtime import watched
from app.settings import Settings, check_env_file, known_variables, read_settings, unread_variables
from app.state_store.base import StateStore
from app.state_store.factory import open_state_store
from app.state_store.locks import LOCK_SECONDS, Locks
from app.time_limits import inverted_time_limits
from app.tool_calling.result_converter import ToolCallResultConverter, convert_result
from app.tool_calling.threads import limit_threads
from app.tools.module import discover
from app.tools.registry import ConfiguredModule, ToolRegistry
from app.tracing.settings import TracingConfiguration, other_variables
from app.tracing.switch import traced
from app.version import VERSION

__all__ = ["Configuration", "create_app", "open_service", "read_configuration"]

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

PROTOCOLS: tuple[ForeignProtocol, ...] = (OPENAI, MCP, AI_SDK)
"""The protocols of others that the service speaks, one folder in ``app/api`` each."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that was read from the environment, checked."""

    settings: Settings
    access: AccessConfiguration
    chat_model: ChosenModel
    modules: tuple[ConfiguredModule, ...]
    tracing: TracingConfiguration
    warnings: tuple[str, ...] = ()
    """Variables that look mistyped, and time limits that do not lie within one another; logged at start."""


def read_configuration() -> Configuration:
    """Read the settings of the service, of every tool folder and of the chosen provider.

    Raises:
        ConfigurationError: all faults together, one line each.
    """
    faults: list[str] = []

    def checked(read: Callable[[], _T]) -> _T | None:
        try:
            return read()
        except ConfigurationError as error:
            faults.extend(str(error).splitlines())
            return None

    in_file = check_env_file(Path(".env"))
    settings = checked(lambda: read_settings(Settings))
    access = checked(lambda: AccessConfiguration.read(settings.server_host)) if settings else None
    chat_model = checked(lambda: choose_chat_model(settings)) if settings else None
    found = checked(discover)
    modules = [checked(partial(ConfiguredModule.read, module)) for module in found or ()]
    servers = checked(read_mcp_servers) or McpServers()
    store = checked(lambda: _state_store(settings)) if settings else None
    tracing = checked(TracingConfiguration.read)
    warnings = _unread_variables(in_file, servers.variables) if found is not None else []
    if settings is None or access is None or chat_model is None or store is None or tracing is None or faults:
        raise ConfigurationError("\n".join(dict.fromkeys((*faults, *warnings))))
    folders = (*(each for each in modules if each), *servers.modules)
    registering = [each.settings for each in folders if each.fault is None]
    warnings += inverted_time_limits(settings, registering, LOCK_SECONDS)
    read = Configuration(settings, access, chat_model, folders, tracing, tuple(warnings))
    # Nothing is taken out of this container: what cannot be wired is told now, in one line, and not while serving.
    _container(read, outbound_http(settings), store)
    return read


@asynccontextmanager
async def open_service(configuration: Configuration) -> AsyncGenerator[tuple[ServiceState, ToolRegistry], None]:
    """Open what the service needs while it runs, and close it in reverse.

    Raises:
        ConfigurationError: a tool cannot be defined, or the container cannot be wired.
    """
    settings = configuration.settings
    for warning in configuration.warnings:
        _log.warning("%s", warning)
    http = outbound_http(settings)
    store = _state_store(settings)
    container = _container(configuration, http, store)
    limit_threads(settings.tool_threads)
    try:
        await store.start()
        async with ToolRegistry.opened(container, configuration.modules) as tools, watched():
            loop = await container.get(ToolCallingAdvisor)
            chat = _chat_client(settings, configuration.chat_model.create(http), loop, tools, store)
            admission = _admission(settings, configuration.access.settings, store)
            memory = _memory(settings, store)
            advisor = MemoryAdvisor(memory)
            approvals = ApprovalStore(store, PausedTurnRecords(tools.resolver, (advisor, *tools.advisors)))
            once = IdempotencyStore(store)
            state = ServiceState(settings, chat, tools, admission, approvals, store, memory, advisor, once, container)
            yield state, tools
    finally:
        await container.close()
        await store.aclose()
        await http.aclose()


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

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
        async with traced(read.tracing, read.settings.shutdown_timeout), open_service(read) as (state, _):
            app.state.service = state
            app.openapi_schema = None  # it shows the tools, which are known from now on
            async with access.running(await state.container.get(OutboundHttp)):
                yield

    app = Application(
        title="toolchat",
        description=DESCRIPTION,
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        dependencies=dependencies,
        generate_unique_id_function=operation_id,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.answer_formats = tuple(answer_formats)
    app.state.access = access = Access(read.access)
    app.add_middleware(ShortWay, service=app)
    app.add_middleware(Door, access=access)
    allow_origins(app, read.access.settings.cors_origins)
    app.add_middleware(RequestMiddleware, protocols=PROTOCOLS, body_timeout=read.settings.server_read_timeout)
    add_problem_handlers(app)
    _add_routes(app, read.modules)
    document_api(app)
    return app


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


def _unread_variables(in_file: Sequence[str], elsewhere: Collection[str]) -> list[str]:
    in_file = [name for name in in_file if name not in elsewhere]
    if not known_variables().issuperset(map(str.upper, in_file)):
        import_providers()  # what looks unread may be the setting of a provider that was not chosen
    return unread_variables(in_file, known_variables() | other_variables(in_file))


def _container(configuration: Configuration, http: OutboundHttp, store: StateStore) -> AsyncContainer:
    core = Provider(scope=Scope.APP)
    for make in (exception_processor, manager, tool_loop):
        core.provide(make)
    core.provide(lambda: convert_result, provides=ToolCallResultConverter)
    active = [each for each in configuration.modules if each.fault is None]
    # What a folder provides takes the place of what the core does: a manager of its own, say.
    provided = (provider for each in active for provider in each.module.providers(each.settings))
    shared = instance(store, StateStore)  # type: ignore[type-abstract]
    return make_container([instances(configuration.settings, http), shared, core, *provided])


def _admission(settings: Settings, access: AccessSettings, store: StateStore) -> Admission:
    together = Limits("all", access.requests_per_minute or None, None, access.tokens_per_day or None)
    per_client = access.questions_per_client or max(1, settings.max_questions // 2)
    return Admission(settings.max_questions, per_client, open_quotas(store, together, settings.request_timeout))


def _state_store(settings: Settings) -> StateStore:
    redis_url = settings.redis_url.get_secret_value() if settings.redis_url else None
    if redis_url is None and settings.server_workers > 1:
        told = f"{settings.server_workers} processes share conversations, approvals and all else by Redis only"
        raise ConfigurationError(f"SERVER_WORKERS: {told}: set REDIS_URL, or leave it at 1")
    return open_state_store(redis_url, deadline=settings.redis_timeout, max_entries=settings.state_max_entries)


def _memory(settings: Settings, store: StateStore) -> ChatMemory:
    window = MemoryWindow(settings.memory_max_messages, settings.memory_max_tokens, settings.memory_tool_rounds)
    return ChatMemory(store, Locks(store, wait=settings.session_wait), window, ttl=settings.session_ttl)


def _chat_client(
    settings: Settings, model: ChatModel, loop: ToolCallingAdvisor, tools: ToolRegistry, store: StateStore
) -> ChatClient:
    repairs = settings.tool_call_repairs
    repair = (ToolCallRepairAdvisor(repairs),) if repairs else ()
    above = settings.tool_search_above
    # The offline model picks a tool by the question itself, and can be told of any number; it would not search.
    search = (ToolSearchAdvisor(above),) if above and model.provider != "offline" else ()
    most = settings.tool_max_calls_per_session
    limit = (ConversationCallLimit(store, most, ttl=settings.session_ttl),) if most else ()
    advisors = (SandboxNoticeAdvisor(), *limit, loop, *search, *repair)
    return ChatClient(model, tools.resolver, advisors, settings.system_prompt)
