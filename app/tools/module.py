"""What a tool's folder tells the service about itself, and how the folders are found."""

import importlib
import pkgutil
import traceback
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypeGuard

from dishka import AsyncContainer, Provider, Scope
from fastapi import APIRouter, Depends
from pydantic import Field
from pydantic_settings import SettingsConfigDict
from starlette.requests import HTTPConnection

from app.api.fast_router import add_variants
from app.api.problems import problems
from app.api.service import service_state
from app.composition.container import classes, instance, named
from app.settings.base import BaseUrl, EnvironmentSettings, environment_name
from toolchat.chat.advisors.base import Advisor
from toolchat.errors import ConfigurationError, NotConfigured
from toolchat.tool_calling.callback import ToolCallback, ToolCallbackProvider
from toolchat.tool_calling.definition_checks import DeclaredTool, duplicate_names, marked_methods, shown_path
from toolchat.tool_calling.function_callback import FunctionToolCallback, marked_tool_names, tool_name

__all__ = ["ToolModule", "ToolSettings", "discover"]


class ToolSettings(EnvironmentSettings):
    """Base of a tool's settings: its switch, and what it cannot work without.

    The variables begin with the folder's name in capitals, unless the class has an ``env_prefix`` of its own.

    A folder's own field ``cache_seconds`` says how long the results of its tools are kept; it reaches the tools that
    declare ``cache_seconds`` themselves and no others, and 0 switches their caches off.
    """

    required: ClassVar[tuple[str, ...]] = ()
    """Fields without which the tool does not register."""
    has_sandbox: ClassVar[bool] = False
    """Whether the stand-in plays this tool's upstream; then it needs no key there, and its results are marked."""

    enabled: bool = Field(True, description="false turns the tool off")
    sandbox_url: BaseUrl | None = Field(
        None,
        validation_alias="SANDBOX_URL",
        description="Sandbox that replaces the tools' upstreams: no key needed, invented and marked answers",
    )

    @property
    def in_sandbox(self) -> bool:
        """Whether the tool talks to the stand-in instead of its upstream."""
        return self.sandbox_url is not None and self.has_sandbox

    def fault(self) -> str | None:
        """Why the tool cannot register, naming the variable to set; ``None`` when it can."""
        if not self.enabled:
            return f"switched off: set {environment_name(type(self), 'enabled')}=true"
        missing = [] if self.in_sandbox else [name for name in self.required if getattr(self, name) is None]
        if missing:
            return "not configured: set " + " and ".join(environment_name(type(self), name) for name in missing)
        return None

    def applied_to(self, tool: ToolCallback) -> ToolCallback:
        """A tool of the folder as these settings want it: marked in the sandbox, cached for as long as they say."""
        if not isinstance(tool, FunctionToolCallback):
            return tool
        tool = tool.in_sandbox() if self.in_sandbox else tool
        seconds: float | None = getattr(self, "cache_seconds", None)
        return tool if seconds is None or tool.metadata.cache_seconds is None else tool.with_cache_ttl(seconds)


@dataclass(frozen=True, kw_only=True)
class ToolModule:
    """One folder below ``app/tools``: its tools, what they need, and where they are asked."""

    default_query: str = ""
    """What the three variants ask when ``query`` is missing or empty; without it there are no variants."""
    functions: tuple[Callable[..., Any] | ToolCallback | ToolCallbackProvider, ...] = ()
    """Function tools, found by name: typed functions, or classes of callable objects made by the container.

    Also ready callbacks and providers of callbacks, or classes of both, made by the container.
    """
    offered: Callable[[AsyncContainer], AbstractAsyncContextManager[Sequence[object]]] | None = None
    """Opens what has more tools to offer, such as another server: an ``asynccontextmanager`` that is entered at start,
    gives callbacks, whatever else ``PromptSpec.tools`` takes or ``DynamicTools``, and is left at shutdown."""
    methods: tuple[type, ...] = ()
    """Classes with ``@tool`` methods, given as objects made by the container."""
    settings: type[ToolSettings] = ToolSettings
    provider: type[Provider] | None = None
    """What else the container must know, such as a client."""
    path: str = ""
    """Where the routes are; ``/`` and the folder's name unless given."""
    title: str = ""
    examples: Mapping[str, str] = field(default_factory=dict)
    """Questions shown in the API's documentation, by label."""
    router: APIRouter | None = None
    """Routes beyond the three variants."""
    advisors: tuple[type[Advisor], ...] = ()
    """Advisors that accompany a conversation which is offered the folder's tools, made by the container."""
    kept: tuple[str, ...] = ()
    """What the tools keep of a conversation in the state store: ``todo`` stands for ``todo:<conversation>``."""
    check: Callable[[AsyncContainer], Coroutine[Any, Any, str]] | None = None
    """Asks the folder's upstream one cheap question, for ``toolchat check``, and tells in a few words what it answered;
    whatever it raises is told as the failure. Without one there is nothing to ask."""
    name: str = ""
    """The folder's name; set when it is found."""
    folder: Path = Path()
    """Where the folder is; set when it is found."""

    def in_folder(self, name: str, folder: Path = Path()) -> "ToolModule":
        """Copy that knows its folder and has settings of its own."""
        settings = self.settings if self.settings.model_config.get("env_prefix") else _prefixed(self.settings, name)
        title = self.title or name.replace("_", " ").capitalize()
        path = self.path or f"/{name}"
        return replace(self, name=name, folder=folder, settings=settings, path=path, title=title)

    def function_names(self) -> tuple[str, ...]:
        """The names under which the container knows the function tools."""
        return tuple(tool_name(function) for function in self.written)

    @property
    def written(self) -> tuple[Callable[..., Any], ...]:
        """The function tools that are written as functions or as classes of callable objects."""
        return tuple(each for each in self.functions if not _offers_callbacks(each))  # type: ignore[misc]

    @property
    def ready(self) -> tuple[object, ...]:
        """The callbacks and providers among the function tools, or their classes."""
        return tuple(each for each in self.functions if _offers_callbacks(each))

    def declared(self) -> list[DeclaredTool]:
        """Every tool of the folder as it is written, before anything is made."""
        functions = [DeclaredTool(each, "function", self.folder) for each in self.written]
        methods = [method for each in self.methods for method in marked_methods(each)]
        return functions + [DeclaredTool(each, "method", self.folder) for each in methods]

    def add_routes(self, router: APIRouter) -> None:
        """Add the three variants, then the folder's own routes, which answer 503 while it is not registered."""
        if self.default_query:
            made_at_start = ("those that are made at start",) if self.ready or self.offered else ()
            add_variants(
                router,
                module=self.name,
                path=self.path,
                title=self.title,
                default_query=self.default_query,
                examples=self.examples,
                function_names=(*self.function_names(), *made_at_start),
                method_names=tuple(name for each in self.methods for name in marked_tool_names(each)),
            )
        if self.router is not None:
            open_folder = Depends(self._open_folder)
            router.include_router(self.router, dependencies=[open_folder], responses=problems(NotConfigured))

    async def _open_folder(self, connection: HTTPConnection) -> AsyncGenerator[None, None]:
        """Refuse what a folder that is not registered cannot answer; open the scope that ``FromDishka`` takes from."""
        service = service_state(connection)
        service.tools.offered(self.name, "function")
        async with service.container(scope=Scope.REQUEST) as container:
            connection.state.dishka_container = container
            yield

    def providers(self, settings: ToolSettings) -> list[Provider]:
        """What the folder puts into the container when its settings allow it.

        Raises:
            ConfigurationError: the constructor of a class cannot be read.
        """
        made = (each for each in (*self.methods, *self.functions, *self.advisors) if isinstance(each, type))
        kinds = (each for each in type(settings).__mro__ if issubclass(each, ToolSettings) and each is not ToolSettings)
        return [
            *(instance(settings, each) for each in kinds),
            classes(*made),
            *([self.provider()] if self.provider else []),
            *(self._named(function, settings) for function in self.written),
        ]

    def _named(self, function: Callable[..., Any], settings: ToolSettings) -> Provider:
        def make(service: Callable[..., Any] | None) -> ToolCallback:
            return settings.applied_to(FunctionToolCallback.from_function(service or function))

        needs = function if isinstance(function, type) else None
        return named(tool_name(function), ToolCallback, make, needs)  # type: ignore[type-abstract]


def _offers_callbacks(part: object) -> TypeGuard[ToolCallback | ToolCallbackProvider | type]:
    kinds = (ToolCallback, ToolCallbackProvider)
    return isinstance(part, kinds) or (isinstance(part, type) and issubclass(part, kinds))


def discover(package: str = "app.tools") -> tuple[ToolModule, ...]:
    """Find every tool folder of a package, in the order of their paths.

    Raises:
        ConfigurationError: a folder cannot be imported or has no ``module``, or two tools have one name; one line
            for each, with the file.
    """
    root = importlib.import_module(package)
    faults: list[str] = []
    found: list[ToolModule] = []
    for info in pkgutil.iter_modules(root.__path__):
        if info.ispkg:
            try:
                found.append(_module_of(package, info.name, Path(root.__path__[0], info.name)))
            except ConfigurationError as error:
                faults.append(str(error))
    found.sort(key=lambda module: module.path)
    faults += duplicate_names(tool for module in found for tool in module.declared())
    if faults:
        raise ConfigurationError("\n".join(faults))
    return tuple(found)


def _module_of(package: str, name: str, folder: Path) -> ToolModule:
    try:
        imported = importlib.import_module(f"{package}.{name}")
    except (Exception, SystemExit) as error:
        raise ConfigurationError(_not_imported(error, folder)) from error
    module, file = getattr(imported, "module", None), shown_path(folder / "__init__.py")
    if not isinstance(module, ToolModule):
        raise ConfigurationError(f"{file}: there is no 'module = ToolModule(...)'")
    for field_name in ("functions", "methods", "advisors"):
        if not isinstance(getattr(module, field_name), tuple | list):
            raise ConfigurationError(f"{file}: {field_name} must be a tuple: write (one,) for a single one")
    return module.in_folder(name, folder)


def _prefixed(settings: type[ToolSettings], folder: str) -> type[ToolSettings]:
    """The same settings, read from variables that begin with the folder's name."""
    config = SettingsConfigDict(env_prefix=f"{folder.upper()}_")
    described = {"__module__": settings.__module__, "__doc__": settings.__doc__}
    return type(settings.__name__, (settings,), {"model_config": config, **described})


def _not_imported(error: BaseException, folder: Path) -> str:
    """One line that says where in the folder an import failed; the error's own text is cut to its first line."""
    places = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    message = str(error)
    if isinstance(error, SyntaxError) and error.filename:
        places.append((Path(error.filename), error.lineno))
        message = error.msg
    inside = [(file, line) for file, line in places if file.is_relative_to(folder)]
    file, line = inside[-1] if inside else (folder / "__init__.py", None)
    told = f"{type(error).__name__}: {(message.splitlines() or [''])[0][:200]}".rstrip(": ")
    return f"{shown_path(file)}: cannot be imported: {told}" + (f" (line {line})" if line else "")
