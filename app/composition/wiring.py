"""The state store, and the container that creates everything else by the types of its parameters."""

from collections.abc import Callable, Sequence
from typing import Any

from dishka import AsyncContainer, Provider, Scope

from app.composition.container import classes, instance, instances, make_container, named
from app.composition.models import exception_processor, manager, tool_loop
from app.settings.service_settings import Settings
from app.tools.discovery import ConfiguredModule
from toolchat.chat.tool_module import ToolSettings
from toolchat.errors import ConfigurationError
from toolchat.http.client import OutboundHttp
from toolchat.state.base import StateStore
from toolchat.state.memory import InMemoryStateStore
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.caller import current_client_key
from toolchat.tool_calling.definition import tool_name
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.results import ToolCallResultConverter, convert_result

__all__ = ["module_providers", "state_store", "wired"]

_REDIS_URLS = (
    "redis://[user:password@]host[:port][/number], rediss:// for TLS, or unix://[user:password@]/path[?db=number]; "
    "the user and the password percent-encoded"
)


def state_store(settings: Settings) -> StateStore:
    """The configured store; it connects when it is started.

    Raises:
        ConfigurationError: it cannot be used, or several processes have no shared store.
    """
    redis_url = settings.redis_url.get_secret_value() if settings.redis_url else None
    if redis_url is None and settings.server_workers > 1:
        shared = f"{settings.server_workers} processes share conversations, approvals and all else by Redis only"
        raise ConfigurationError(f"SERVER_WORKERS: {shared}: set REDIS_URL, or leave it at 1")
    if redis_url is None:
        return InMemoryStateStore(settings.state_max_entries, client_key=current_client_key)
    try:
        from toolchat.state.redis import RedisStateStore

        return RedisStateStore(redis_url, deadline=settings.redis_timeout)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != "redis":
            raise  # the package is there, and lacks something itself
        raise ConfigurationError("REDIS_URL: needs the package redis: pip install redis") from None
    except ValueError:
        raise ConfigurationError(f"REDIS_URL: must be {_REDIS_URLS}") from None


def wired(
    settings: Settings, modules: Sequence[ConfiguredModule], http: OutboundHttp, store: StateStore
) -> AsyncContainer:
    """The container with the core and the providers of all tool modules that are configured.

    Raises:
        ConfigurationError: something is missing, or provided twice.
    """
    core = Provider(scope=Scope.APP)
    for make in (exception_processor, manager, tool_loop):
        core.provide(make)
    core.provide(lambda: convert_result, provides=ToolCallResultConverter)
    active = [each for each in modules if each.fault is None]
    # A later provider replaces an earlier one: a module may bring its own ToolCallingManager, for example.
    provided = (provider for each in active for provider in module_providers(each))
    shared = instance(store, StateStore)  # type: ignore[type-abstract]
    return make_container([instances(settings, http), shared, core, *provided])


def module_providers(configured: ConfiguredModule) -> list[Provider]:
    """Return the providers of one tool module: its settings, classes and named function tools.

    Raises:
        ConfigurationError: the constructor of a class cannot be read.
    """
    module, settings = configured.module, configured.settings
    created = [each for each in (*module.methods, *module.functions, *module.advisors) if isinstance(each, type)]
    # Under each class that the module declares: a constructor asks for the class that it knows.
    declared = (each for each in type(settings).__mro__ if issubclass(each, ToolSettings) and each is not ToolSettings)
    return [
        *(instance(settings, each) for each in declared),
        classes(*created, *module.provides),
        *([module.provider()] if module.provider else []),
        *(_function_provider(function, settings) for function in module.function_tools),
    ]


def _function_provider(function: Callable[..., Any], settings: ToolSettings) -> Provider:
    def create(service: Callable[..., Any] | None) -> ToolCallback:
        return settings.applied_to(FunctionToolCallback.from_function(service or function))

    needs = function if isinstance(function, type) else None
    return named(tool_name(function), ToolCallback, create, needs)  # type: ignore[type-abstract]
