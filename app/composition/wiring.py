"""The container that creates objects by the types of their parameters."""

from collections.abc import Callable, Sequence
from typing import Any

from dishka import AsyncContainer, Provider, Scope

from app.composition.container import classes, instance, instances, make_container, named
from app.composition.models import exception_processor, manager, tool_loop
from app.settings.service_settings import Settings
from app.tools.discovery import ConfiguredModule
from toolchat.chat.tool_module import ToolSettings
from toolchat.http.client import OutboundHttp
from toolchat.state.base import StateStore
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.definition import tool_name
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.results import ToolCallResultConverter, convert_result

__all__ = ["module_providers", "wired"]


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
