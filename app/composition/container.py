"""Wiring: one dependency injection container per process, put together at start."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

from dishka import AsyncContainer, FromComponent, Provider, Scope, make_async_container
from dishka.exception_base import DishkaError
from dishka.exceptions import CycleDependenciesError, NoFactoryError
from dishka.text_rendering import get_name

from toolchat.errors import ConfigurationError

__all__ = ["classes", "instance", "instances", "make_container", "named"]

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
