"""The containers that create objects by the types of their parameters: the service's, and one for each tool module."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from typing import Any

from dishka import AsyncContainer, Provider, Scope, ValidationSettings, make_async_container
from dishka.exception_base import DishkaError
from dishka.exceptions import CycleDependenciesError, ImplicitOverrideDetectedError, NoFactoryError
from dishka.text_rendering import get_name

from toolchat.chat.advisors.tool_loop import ToolCallingAdvisor
from toolchat.chat.client import ChatClient
from toolchat.chat.tool_module import ToolSettings
from toolchat.errors import ConfigurationError
from toolchat.http.client import OutboundHttp
from toolchat.models.base import ChatModel
from toolchat.service.composition.models import ChosenModel, client_for_tools, exception_processor, manager, tool_loop
from toolchat.service.settings.service_settings import Settings
from toolchat.service.tool_modules.definition_checks import shown_path, source_file
from toolchat.service.tool_modules.discovery import ConfiguredModule
from toolchat.state.base import StateStore
from toolchat.tool_calling.exception_processor import ToolExecutionExceptionProcessor
from toolchat.tool_calling.manager import ToolCallingManager
from toolchat.tool_calling.results import ToolCallResultConverter, convert_result


def default_converter() -> ToolCallResultConverter:
    """The converter of tools that have none."""
    return convert_result


_REPLACEABLE: Mapping[object, Callable[..., Any]] = {
    ToolCallingManager: manager,
    ToolExecutionExceptionProcessor: exception_processor,
    ToolCallResultConverter: default_converter,
    ToolCallingAdvisor: tool_loop,
}
"""The parts of the service that a tool module may replace, and what makes them otherwise."""
_REPLACEABLE_NAMES = "ToolCallingManager, ToolExecutionExceptionProcessor, ToolCallResultConverter, ToolCallingAdvisor"
_SHARED = (Settings, OutboundHttp, StateStore, ChatClient, *_REPLACEABLE)
"""What every tool module gets from the service."""


@dataclass(frozen=True, slots=True)
class Containers:
    """The service's container, and those of the tool modules that are configured, by their names."""

    service: AsyncContainer
    modules: Mapping[str, AsyncContainer]

    async def close(self) -> None:
        """Close what the tool modules have created, then the service's own objects."""
        for each in (*reversed(list(self.modules.values())), self.service):
            await each.close()


def wired(
    settings: Settings,
    chat_model: ChosenModel,
    modules: Iterable[ConfiguredModule],
    http: OutboundHttp,
    store: StateStore,
) -> Containers:
    """The containers of the service and of all tool modules that are configured.

    Raises:
        ConfigurationError: something is missing, or provided twice.
    """
    active = [each for each in modules if each.fault is None]
    replacing, containers = _replacing(active), dict[str, AsyncContainer]()
    core = instances(settings, http)
    core.provide(_constant(store), provides=StateStore)
    core.provide(lambda: chat_model.create(http), provides=ChatModel)
    core.provide(client_for_tools)
    for kind, make in _REPLACEABLE.items():
        if module := replacing.get(kind):
            _share(core, kind, partial(containers.__getitem__, module))
        else:
            core.provide(make, provides=kind)
    service = make_container([core])
    for each in active:
        containers[each.module.name] = module_container(each, service)
    return Containers(service, containers)


def _replacing(modules: Iterable[ConfiguredModule]) -> Mapping[object, str]:
    """The names of the modules that replace parts of the service, by the parts."""
    found: dict[object, str] = {}
    for configured in modules:
        module, file = configured.module, _file_of(configured)
        for kind in _provided(classes(*module.replaces, file=file)):
            if kind not in _REPLACEABLE:
                raise ConfigurationError(f"{file}: replaces: {_full_name(kind)} is none of {_REPLACEABLE_NAMES}")
            if (other := found.setdefault(kind, module.name)) != module.name:
                raise ConfigurationError(f"{file}: replaces: {other} replaces {_full_name(kind)} already")
    return found


def module_container(configured: ConfiguredModule, service: AsyncContainer) -> AsyncContainer:
    """The container of one tool module: its settings and classes, and what the service shares.

    Raises:
        ConfigurationError: something is missing, or provided twice, or a constructor cannot be read.
    """
    module, settings, file = configured.module, configured.settings, _file_of(configured)
    created = [each for each in (*module.methods, *module.functions, *module.advisors) if isinstance(each, type)]
    sources: tuple[Callable[..., Any], ...] = (*created, *module.provides, *module.replaces)
    own = classes(*dict.fromkeys(sources), file=file)
    given = Provider(scope=Scope.APP)
    # Under each class that the module declares: a constructor asks for the class that it knows.
    for each in type(settings).__mro__:
        if issubclass(each, ToolSettings) and each is not ToolSettings:
            given.provide(_constant(settings), provides=each)
    replaced = _provided(classes(*module.replaces, file=file))
    for kind in _SHARED:
        if kind not in replaced:
            _share(given, kind, lambda: service)
    providers = [given, own, *([module.provider()] if module.provider else [])]
    _use_defaults(own, _provided(*providers))
    return make_container(providers, file)


def _share(provider: Provider, kind: Any, container: Callable[[], AsyncContainer]) -> None:
    """Provide what another container creates; it is asked once the object is needed."""

    async def from_container() -> object:
        return await container().get(kind)

    provider.provide(from_container, provides=kind)


def _provided(*providers: Provider) -> set[object]:
    keys = [source.provides for each in providers for source in each.factories]
    keys += [source.provides for each in providers for source in each.aliases]
    return {key.type_hint for key in keys}


def _use_defaults(provider: Provider, provided: set[object]) -> None:
    """Leave out what nothing provides and has a default."""
    for factory in provider.factories:
        if not (factory.dependencies or factory.kw_dependencies):
            continue  # built-in classes have no signature
        parameters = signature(factory.source).parameters
        by_position = [name for name, each in parameters.items() if each.kind in _BY_POSITION]
        needed = {**dict(zip(by_position, factory.dependencies, strict=False)), **factory.kw_dependencies}
        others = provided - {factory.provides.type_hint}
        has_default = {name for name, each in parameters.items() if each.default is not Parameter.empty}
        left_out = {name for name in has_default & needed.keys() if needed[name].type_hint not in others}
        if left_out:  # the others by name, since one before them may be missing
            factory.dependencies = ()
            factory.kw_dependencies = {name: key for name, key in needed.items() if name not in left_out}


_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def _file_of(configured: ConfiguredModule) -> str:
    return shown_path(source_file(configured.module.folder))


def make_container(providers: Iterable[Provider], file: str = "") -> AsyncContainer:
    """Put a container together and check its graph; a fault names the file.

    Raises:
        ConfigurationError: a dependency is not provided, or provided twice.
    """
    try:
        return make_async_container(*providers, validation_settings=ValidationSettings(implicit_override=True))
    except DishkaError as error:
        raise ConfigurationError(_fault(error, file)) from error


def classes(*sources: Callable[..., Any], file: str = "") -> Provider:
    """Provide the objects of classes and of annotated functions, created with what their annotations ask for.

    Raises:
        ConfigurationError: a constructor's parameter has no type, or one that cannot be read; names the file.
    """
    provider = Provider(scope=Scope.APP)
    for each in sources:
        try:
            provider.provide(each)
        except DishkaError as error:
            raise ConfigurationError(_fault(error, file)) from error
    return provider


def instances(*objects: object) -> Provider:
    """Provide objects that exist already, each under its own type."""
    provider = Provider(scope=Scope.APP)
    for each in objects:
        provider.provide(_constant(each), provides=type(each))
    return provider


def _fault(error: DishkaError, file: str) -> str:
    """One line that names what cannot be created; dishka's own text has several."""
    place = f"{file}: " if file else ""
    match error:
        case NoFactoryError(path=[*_, asking], requested=missing):
            return f"{place}{_full_name(asking.source)}: nothing provides {_full_name(missing.type_hint)}"
        case CycleDependenciesError(path=path):
            return f"{place}{' needs '.join(_full_name(each.source) for each in (*path, path[0]))}"
        case ImplicitOverrideDetectedError(new=one, existing=other):
            kind = _full_name(one.provides.type_hint)
            if one.provides.type_hint in _SHARED:
                return f"{place}provides {kind}, which is the service's; replaces takes {_REPLACEABLE_NAMES}"
            return f"{place}{_full_name(other.source)} and {_full_name(one.source)} both provide {kind}"
    return f"{place}{' '.join(str(error).split())}"


def _full_name(kind: object) -> str:
    return get_name(kind, include_module=True)


def _constant(value: object) -> Callable[[], object]:
    return lambda: value
