"""The container that creates objects by the types of their parameters: one per process, put together at start."""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, TypeVar

from dishka import AsyncContainer, FromComponent, Provider, Scope, make_async_container
from dishka.exception_base import DishkaError
from dishka.exceptions import CycleDependenciesError, NoFactoryError
from dishka.text_rendering import get_name

from toolchat.chat.tool_module import ToolSettings
from toolchat.errors import ConfigurationError
from toolchat.http.client import OutboundHttp
from toolchat.service.composition.models import exception_processor, manager, tool_loop
from toolchat.service.settings.service_settings import Settings
from toolchat.service.tool_modules.discovery import ConfiguredModule
from toolchat.state.base import StateStore
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.definition import tool_name
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.results import ToolCallResultConverter, convert_result


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


_T = TypeVar("_T")


def make_container(providers: Iterable[Provider]) -> AsyncContainer:
    """Put the container together and check its graph.

    Raises:
        ConfigurationError: a dependency is not provided.
    """
    try:
        return make_async_container(*providers)
    except DishkaError as error:
        raise ConfigurationError(_fault(error)) from error


def classes(*sources: Callable[..., Any]) -> Provider:
    """Provide the objects of classes and of annotated functions, created with what their annotations ask for.

    Raises:
        ConfigurationError: a constructor's parameter has no type, or one that cannot be read.
    """
    provider = Provider(scope=Scope.APP)
    for each in sources:
        try:
            provider.provide(each)
        except DishkaError as error:
            raise ConfigurationError(_fault(error)) from error
    return provider


def instances(*objects: object) -> Provider:
    """Provide objects that exist already, each under its own type."""
    provider = Provider(scope=Scope.APP)
    for each in objects:
        provider.provide(_constant(each), provides=type(each))
    return provider


def instance(value: _T, provides: type[_T]) -> Provider:
    """Provide an object that exists already under a more general type."""
    provider = Provider(scope=Scope.APP)
    provider.provide(_constant(value), provides=provides)
    return provider


def named(name: str, provides: type[_T], make: Callable[[Any], _T], needs: type | None) -> Provider:
    """Provide a component under a name, as Spring does with a named bean.

    It is looked up by ``container.get(provides, component=name)``.

    Args:
        name: the component's name.
        provides: the type that it is looked up by.
        make: creates it from the dependency, or from ``None`` if it needs none.
        needs: the type of the dependency, which is an unnamed component.
    """

    def from_dependency(dependency: Any) -> Any:
        return make(dependency)

    # dishka reads the annotation, which depends on the argument, so it is set here.
    from_dependency.__annotations__["dependency"] = Annotated[needs, FromComponent("")]
    provider = Provider(scope=Scope.APP, component=name)
    provider.provide((lambda: make(None)) if needs is None else from_dependency, provides=provides)
    return provider


def _fault(error: DishkaError) -> str:
    """One line that names what cannot be created; dishka's own text has several."""
    if isinstance(error, NoFactoryError) and error.path:
        asking, missing = error.path[-1].source, error.requested.type_hint
        return f"{_full_name(asking)}: cannot be made: nothing provides {_full_name(missing)}"
    if isinstance(error, CycleDependenciesError):
        way = " needs ".join(_full_name(each.source) for each in (*error.path, error.path[0]))
        return f"the container cannot be wired: {way}"
    return f"the container cannot be wired: {' '.join(str(error).split())}"


def _full_name(kind: object) -> str:
    return get_name(kind, include_module=True)


def _constant(value: object) -> Callable[[], object]:
    return lambda: value
