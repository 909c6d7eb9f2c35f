"""The parts of the service, and a container for each tool module, which creates objects by their parameters' types."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from types import UnionType
from typing import Any, Union, get_args, get_origin

from dishka import AsyncContainer, Provider, Scope, ValidationSettings, make_async_container
from dishka.exception_base import DishkaError
from dishka.exceptions import CycleDependenciesError, ImplicitOverrideDetectedError, NoFactoryError
from dishka.text_rendering import get_name

from toolchat.chat.advisors.tool_loop import ToolCallingAdvisor
from toolchat.chat.client import ChatClient
from toolchat.chat.tool_module import ToolModule, ToolSettings
from toolchat.errors import ConfigurationError
from toolchat.http.client import OutboundHttp
from toolchat.models.base import ChatModel
from toolchat.service.composition.models import manager, tool_loop
from toolchat.service.settings.service_settings import Settings
from toolchat.service.tool_modules.definition_checks import raised_by, shown_path, source_file
from toolchat.service.tool_modules.discovery import ConfiguredModule
from toolchat.state.base import StateStore
from toolchat.tool_calling.exception_processor import ToolExecutionExceptionProcessor
from toolchat.tool_calling.manager import ToolCallingManager
from toolchat.tool_calling.results import ToolCallResultConverter, convert_result

_full_name = partial(get_name, include_module=True)
_REPLACEABLE: Mapping[object, Callable[[Mapping[Any, Any]], object]] = {
    ToolExecutionExceptionProcessor: lambda parts: ToolExecutionExceptionProcessor(
        parts[Settings].tool_throw_exception_on_error
    ),
    ToolCallResultConverter: lambda _: convert_result,
    ToolCallingManager: lambda parts: manager(parts[Settings], parts[ToolExecutionExceptionProcessor]),
    ToolCallingAdvisor: lambda parts: tool_loop(parts[Settings], parts[ToolCallingManager]),
}
"""The parts of the service that a tool module may replace, in the order in which they are created, and by what."""
_REPLACEABLE_NAMES = "ToolCallingManager, ToolExecutionExceptionProcessor, ToolCallResultConverter, ToolCallingAdvisor"
_SHARED = (Settings, OutboundHttp, StateStore, ChatClient, *_REPLACEABLE)
"""What every tool module gets from the service."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """The parts of the service by their types, and the containers of the configured tool modules by their names."""

    parts: dict[Any, Any]
    containers: Mapping[str, AsyncContainer]
    replacing: Mapping[object, ToolModule]

    async def create_parts(self, model: ChatModel) -> None:
        """Create the parts that can be replaced, each from those before it, and the client that tools ask.

        Raises:
            ConfigurationError: a tool module cannot create its part.
        """
        for kind, make in _REPLACEABLE.items():
            module = self.replacing.get(kind)
            self.parts[kind] = await self._replaced(kind, module) if module else make(self.parts)
        # The loop is that of the questions, so that what a tool asks keeps to their limits.
        self.parts[ChatClient] = ChatClient(model, advisors=(self.parts[ToolCallingAdvisor],))

    async def _replaced(self, kind: Any, module: ToolModule) -> object:
        try:
            part: object = await self.containers[module.name].get(kind)
        except ConfigurationError as error:
            raise ConfigurationError(f"{_file_of(module)}: replaces: {error}") from None
        except Exception as error:  # noqa: BLE001 - of any code
            raise raised_by(module, "replaces", error) from None
        if part is None:
            raise ConfigurationError(f"{_file_of(module)}: replaces: None came in place of {_full_name(kind)}")
        return part

    async def close(self) -> None:
        """Close what the tool modules have created."""
        for each in reversed(list(self.containers.values())):
            await each.close()


def wired(settings: Settings, modules: Iterable[ConfiguredModule], http: OutboundHttp, store: StateStore) -> Wiring:
    """The containers of all tool modules that are configured; nothing is created yet.

    Raises:
        ConfigurationError: something is missing, or provided twice.
    """
    active = [each for each in modules if each.fault is None]
    parts = {Settings: settings, OutboundHttp: http, StateStore: store}
    replacing = _replacing(each.module for each in active)
    plain = [each for each in active if _is_plain(each.module)]
    # One for all of them: of many modules of functions, the containers would take a fifth of the start.
    containers = dict.fromkeys([each.module.name for each in plain], module_container(plain[0], parts)) if plain else {}
    others = [each for each in active if each.module.name not in containers]
    containers |= {each.module.name: module_container(each, parts) for each in others}
    return Wiring(parts, containers, replacing)


def _is_plain(module: ToolModule) -> bool:
    """Whether a module has functions only, which ask its container for nothing."""
    creates = (*module.methods, *module.advisors, *module.provides, *module.replaces)
    asks = (module.provider, module.router, module.tool_source, module.check)
    is_created = any(isinstance(each, type) for each in module.functions)
    return not (creates or is_created or any(asks))


def _replacing(modules: Iterable[ToolModule]) -> Mapping[object, ToolModule]:
    """The modules that replace parts of the service, by the parts."""
    found: dict[object, ToolModule] = {}
    for module in modules:
        file = _file_of(module)
        for kind in _provided(classes(*module.replaces, file=file)):
            if kind not in _REPLACEABLE:
                raise ConfigurationError(f"{file}: replaces: {_full_name(kind)} is none of {_REPLACEABLE_NAMES}")
            if (other := found.setdefault(kind, module)) is not module:
                raise ConfigurationError(f"{file}: replaces: {other.name} replaces {_full_name(kind)} already")
    return found


def module_container(configured: ConfiguredModule, parts: Mapping[Any, Any]) -> AsyncContainer:
    """The container of one tool module: its settings and classes, and what the service shares.

    Raises:
        ConfigurationError: something is missing, or provided twice, or a constructor cannot be read.
    """
    module, settings, file = configured.module, configured.settings, _file_of(configured.module)
    created = [each for each in (*module.methods, *module.functions, *module.advisors) if isinstance(each, type)]
    sources: tuple[Callable[..., Any], ...] = (*created, *module.provides, *module.replaces)
    own = classes(*dict.fromkeys(sources), file=file)
    given = Provider(scope=Scope.APP)
    # Under each class that the module declares: a constructor asks for the class that it knows.
    for each in type(settings).__mro__:
        if issubclass(each, ToolSettings) and each is not ToolSettings:
            given.provide(lambda: settings, provides=each)
    replaced = _provided(classes(*module.replaces, file=file))
    for kind in _SHARED:
        if kind not in replaced:
            given.provide(_part(kind, parts), provides=kind)
    providers = [given, own, *([module.provider()] if module.provider else [])]
    _use_defaults(own, _provided(*providers))
    try:
        return make_async_container(*providers, validation_settings=ValidationSettings(implicit_override=True))
    except DishkaError as error:
        raise ConfigurationError(_fault(error, file)) from error


def _part(kind: Any, parts: Mapping[Any, Any]) -> Callable[[], object]:
    def shared() -> object:
        if kind not in parts:
            raise ConfigurationError(f"{_full_name(kind)} is created later, so it cannot be asked for")
        return parts[kind]

    return shared


def _provided(*providers: Provider) -> set[object]:
    keys = [source.provides for each in providers for source in each.factories]
    keys += [source.provides for each in providers for source in each.aliases]
    return {key.type_hint for key in keys}


def _use_defaults(provider: Provider, provided: set[object]) -> None:
    """Leave out the parameters that have a default and whose type nothing provides."""
    for factory in provider.factories:
        is_class = isinstance(factory.source, type)
        parameters = list(signature(factory.source.__init__ if is_class else factory.source).parameters.values())
        by_position = [each.name for each in parameters[is_class:] if each.kind in _BY_POSITION]
        needed = {**dict(zip(by_position, factory.dependencies, strict=False)), **factory.kw_dependencies}
        others = provided - {factory.provides.type_hint}
        for name in [each.name for each in parameters if each.default is not Parameter.empty and each.name in needed]:
            key = needed.pop(name)
            if (kind := next((each for each in _alternatives(key.type_hint) if each in others), None)) is not None:
                needed[name] = key._replace(type_hint=kind)
            # By name, since one before it may be missing.
            factory.dependencies, factory.kw_dependencies = (), needed


_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def _alternatives(kind: object) -> tuple[object, ...]:
    """The types of ``Client | None``; the type itself otherwise."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _file_of(module: ToolModule) -> str:
    return shown_path(source_file(module.folder))


def classes(*sources: Callable[..., Any], file: str) -> Provider:
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


def _fault(error: DishkaError, file: str) -> str:
    """One line that names what cannot be created; dishka's own text has several."""
    match error:
        case NoFactoryError(path=[*_, asking], requested=missing):
            return f"{file}: {_full_name(asking.source)}: nothing provides {_full_name(missing.type_hint)}"
        case CycleDependenciesError(path=path):
            return f"{file}: {' needs '.join(_full_name(each.source) for each in (*path, path[0]))}"
        case ImplicitOverrideDetectedError(new=one, existing=other):
            kind = _full_name(one.provides.type_hint)
            if one.provides.type_hint in _SHARED:
                return f"{file}: provides {kind}, which is the service's; replaces takes {_REPLACEABLE_NAMES}"
            return f"{file}: {_full_name(other.source)} and {_full_name(one.source)} both provide {kind}"
    return f"{file}: {' '.join(str(error).split())}"
