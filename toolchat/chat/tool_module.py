"""Tool modules: what a folder of tools declares about itself, for a service to read, wire and serve."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeGuard, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from toolchat.chat.advisors.base import Advisor
from toolchat.tool_calling.callback import ToolCallback, ToolCallbackProvider
from toolchat.tool_calling.definition import tool_name
from toolchat.tool_calling.function_callback import FunctionToolCallback, marked_methods
from toolchat.tool_calling.setting_types import BaseUrl

_T = TypeVar("_T")


class Components(Protocol):
    """The objects that the service has created, by their type: a tool module's own and the service's."""

    def get(self, kind: type[_T], /) -> Coroutine[Any, Any, _T]:
        """Return the object of a type; it is created the first time."""
        ...


class ToolSettings(BaseModel):
    """Base of a tool module's settings: its switch, and the fields without which it cannot work.

    The service reads each field from an environment variable, ``<MODULE>_<FIELD>``. A field ``cache_seconds`` sets how
    long results are cached, for the tools that declare ``cache_seconds`` themselves; 0 switches their caches off.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    env_prefix: ClassVar[str] = ""
    """Beginning of the variables; default: the module's name in capitals and an underscore."""
    required: ClassVar[tuple[str, ...]] = ()
    """Fields without which the tools are not registered."""
    alternative: ClassVar[str] = ""
    """What the operator can do instead of setting them, such as ``or X_PROVIDER=y, which needs no key``."""
    has_sandbox: ClassVar[bool] = False
    """Whether the sandbox plays this module's upstream; no key is needed there, and results are marked as invented."""

    enabled: bool = Field(True, description="false turns the tool off")
    sandbox_url: BaseUrl | None = Field(
        None,
        validation_alias="SANDBOX_URL",
        description="Sandbox that replaces the tools' upstreams: no key needed, invented and marked answers",
    )

    @property
    def in_sandbox(self) -> bool:
        """Whether the tools call the sandbox instead of their upstream."""
        return self.sandbox_url is not None and self.has_sandbox

    def missing_fields(self) -> list[str]:
        """Return the required fields that are not set."""
        return [] if self.in_sandbox else [name for name in self.required_fields() if getattr(self, name) is None]

    def required_fields(self) -> tuple[str, ...]:
        """Return the fields without which the tools are not registered; override it if they depend on another one."""
        return self.required

    def applied_to(self, tool: ToolCallback) -> ToolCallback:
        """Return a tool with these settings applied: marked in the sandbox, cached as long as they say."""
        if not isinstance(tool, FunctionToolCallback):
            return tool
        tool = tool.in_sandbox() if self.in_sandbox else tool
        seconds: float | None = getattr(self, "cache_seconds", None)
        return tool if seconds is None or tool.metadata.cache_seconds is None else tool.with_cache_ttl(seconds)


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """A function, a class of callable objects or a marked method that a tool module declares."""

    function: Callable[..., Any]
    kind: Literal["function", "method"]
    folder: Path

    @property
    def name(self) -> str:
        """The name that the model sees."""
        return tool_name(self.function)


@dataclass(frozen=True, kw_only=True)
class ToolModule:
    """A package of tools: declares its tools, settings and routes, and knows nothing of the service that loads it.

    Routes of its own are a ``router`` in a ``routes.py`` beside the package's ``__init__.py``.
    """

    default_query: str = ""
    """Question of the three chat routes when ``query`` is missing or empty; without it there are no chat routes."""
    functions: tuple[Callable[..., Any] | ToolCallback | ToolCallbackProvider, ...] = ()
    """Function tools: typed functions, classes of callable objects, callbacks and providers of callbacks.

    Classes are created by the service; their constructors' annotations say what they need.
    """
    methods: tuple[type, ...] = ()
    """Classes with ``@tool`` methods, created by the service."""
    interchangeable: bool = False
    """Whether the methods are the functions once more, as another variant of the same tools.

    Then only the functions are offered where all tools are: two tools that do the same would only confuse the model.
    """
    in_conversations: bool = True
    """Whether every conversation offers the tools; otherwise the module's routes do, and questions that name them."""
    tool_source: Callable[[Components], AbstractAsyncContextManager[Sequence[object]]] | None = None
    """Opens a source of further tools, such as another server.

    An ``asynccontextmanager``, entered at start and left at shutdown, that yields functions, callbacks, or
    ``DynamicTools``.
    """
    provides: tuple[Callable[..., Any], ...] = ()
    """What this module's tools and routes need: classes, or functions annotated with the type that they return.

    Each is created once, with what its annotations ask for. A generator function closes its object after the yield.
    Other modules get none of it. A parameter whose type nothing provides keeps its default.
    """
    replaces: tuple[Callable[..., Any], ...] = ()
    """As ``provides``, but for the whole service: functions whose return type is the part that they replace.

    The parts are ``ToolCallingManager``, ``ToolExecutionExceptionProcessor``, ``ToolCallResultConverter`` and
    ``ToolCallingAdvisor``; two modules cannot replace the same one.
    """
    advisors: tuple[type[Advisor], ...] = ()
    """Advisors of the conversations in which the module's tools are offered, created by the service."""
    settings: type[ToolSettings] = ToolSettings
    check: Callable[[Components], Coroutine[Any, Any, str]] | None = None
    """Asks the upstream one cheap question for ``toolchat check`` and describes the answer; an exception fails it."""
    path: str = ""
    """Prefix of the chat routes; default: ``/`` and the module's name."""
    title: str = ""
    examples: Mapping[str, str] = field(default_factory=dict)
    """Further questions for the documentation, and to begin a conversation with, by label."""
    router: Any = None
    """The module's own routes, if they are not in its ``routes.py``."""
    provider: type | None = None
    """A dishka ``Provider``, for what ``provides`` cannot express."""
    name: str = ""
    """Name of the package; set when it is loaded."""
    folder: Path = Path()
    """Folder of the package; set when it is loaded."""

    def in_folder(self, name: str, folder: Path = Path()) -> "ToolModule":
        """Return a copy with the name and folder of the package, and defaults made from the name."""
        title = self.title or name.replace("_", " ").capitalize()
        return replace(self, name=name, folder=folder, path=self.path or f"/{name}", title=title)

    @property
    def env_prefix(self) -> str:
        """Beginning of the module's environment variables."""
        configured: Any = self.settings.model_config.get("env_prefix")  # as pydantic-settings has it
        return self.settings.env_prefix or configured or f"{self.name.upper()}_"

    @property
    def questions(self) -> tuple[str, ...]:
        """The default question and the examples, each once."""
        return tuple(dict.fromkeys(filter(None, (self.default_query, *self.examples.values()))))

    @cached_property
    def function_tools(self) -> tuple[Callable[..., Any], ...]:
        """The function tools written as functions or as classes of callable objects."""
        return tuple(each for each in self.functions if not _provides_callbacks(each))  # type: ignore[misc]

    @cached_property
    def callback_sources(self) -> tuple[object, ...]:
        """The callbacks and providers among the function tools, or their classes."""
        return tuple(each for each in self.functions if _provides_callbacks(each))

    def function_names(self) -> tuple[str, ...]:
        """Return the names of the function tools."""
        return tuple(tool_name(function) for function in self.function_tools)

    def declared(self) -> list[DeclaredTool]:
        """Return every function and method tool as it is written, before anything is created."""
        functions = [DeclaredTool(each, "function", self.folder) for each in self.function_tools]
        # A value that is no class is reported when the module is checked.
        classes = [each for each in self.methods if isinstance(each, type)]
        methods = [method for each in classes for method in marked_methods(each).values()]
        return functions + [DeclaredTool(each, "method", self.folder) for each in methods]


def _provides_callbacks(part: object) -> TypeGuard[ToolCallback | ToolCallbackProvider | type]:
    kinds = (ToolCallback, ToolCallbackProvider)
    return isinstance(part, kinds) or (isinstance(part, type) and issubclass(part, kinds))
