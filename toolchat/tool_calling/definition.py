"""What a chat model is told about a tool, and how the service treats it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypedDict, TypeVar, Unpack, overload

from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.results import ToolCallResultConverter, convert_result

__all__ = ["ToolDefinition", "ToolMarker", "ToolMetadata", "ToolOptions", "tool", "tool_name", "validate_metadata"]


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as the model sees it: the model picks by name and description and fills the schema."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    """JSON Schema 2020-12 of an object."""
    output_schema: Mapping[str, Any] = field(default_factory=dict)
    """JSON Schema of the result, with the titles that its fields were given; empty where nothing gives any."""

    def __post_init__(self) -> None:
        for part in ("name", "description"):
            if not getattr(self, part).strip():
                raise ValueError(f"a tool's {part} must not be blank")


@dataclass(frozen=True, slots=True)
class ToolMetadata:
    """How the service treats a tool; the model never sees it."""

    return_direct: bool = False
    """The result is the answer; the model is not asked again."""
    sandbox: bool = False
    """The tool answers from invented data; every answer that used it says so."""
    requires_approval: bool = False
    """A call waits for the user's consent before it runs."""
    read_only: bool = False
    """The tool looks something up and changes nothing; told to whoever decides about calls."""
    timeout: float | None = None
    """Seconds a call may take, with its retries; ``None`` means the manager's own limit."""
    cache_seconds: float | None = None
    """Seconds for which a result also answers equal calls; ``None`` or 0 means that every call runs."""
    max_calls: int | None = None
    """Calls that one question may make; ``None`` means the service's own limit."""
    max_identical_calls: int | None = None
    """Calls with the same arguments that one question may make; ``None`` means the service's own limit."""
    exclusive: bool = False
    """Calls of one message run one after another, in the order of the message."""
    retries: int = 0
    """How often a call is tried again after an error that is marked retryable."""
    run_by_caller: bool = False
    """Whoever asks runs it: a message that calls it ends the question, and the caller is given the call."""

    @property
    def is_read_only(self) -> bool:
        """Whether it is known that a call changes nothing: it says so, or its results may be told again."""
        return self.read_only or self.cache_seconds is not None

    only_reads = is_read_only  # deprecated alias, removed in 0.3

    def updated(self, other: "ToolMetadata") -> Self:
        """Copy with what another one says; where that says nothing but the default, this one's word stays."""
        said = {each.name: word for each in fields(other) if (word := getattr(other, each.name)) != each.default}
        return replace(self, **said)


def validate_metadata(tool: str, metadata: ToolMetadata, context_parameter: str | None) -> None:
    """Make sure that a tool can be treated as it asks to be.

    Raises:
        ToolDefinitionError: a number makes no sense; or it would be run again, or not run, where that may do harm: it
            changes something, or its answer may depend on who asks.
    """
    for fault in _faults(metadata, context_parameter):
        raise ToolDefinitionError(f"tool {tool}: {fault}")


def _faults(metadata: ToolMetadata, context_parameter: str | None) -> Iterator[str]:
    for name, least in (("max_calls", 1), ("max_identical_calls", 1), ("retries", 0)):
        number = getattr(metadata, name)
        if number is not None and number < least:
            yield f"{name} must be at least {least}"
    if metadata.read_only and metadata.requires_approval:
        yield "read_only is not for a tool that requires approval"
    if metadata.retries and metadata.requires_approval:
        yield "retries is not for a tool that requires approval"
    if metadata.cache_seconds is None:
        return
    if not metadata.cache_seconds >= 0:
        yield "cache_seconds must not be negative"
    if metadata.requires_approval:
        yield "cache_seconds is not for a tool that requires approval"
    if context_parameter is not None:
        yield (
            f"cache_seconds is not for a tool with a ToolContext (parameter {context_parameter}): "
            "its answer may depend on who asks"
        )


_F = TypeVar("_F", bound=Callable[..., Any])
_MARKER = "__tool__"


class ToolOptions(TypedDict, total=False):
    """Everything that can be said about a tool; what is left out stays as it is."""

    name: str | None
    """The name that the model sees; else the function's own."""
    description: str | None
    """What the model decides by; else the first paragraph of the docstring, else the name in words."""
    return_direct: bool
    """The result is the answer, the model is not asked again."""
    requires_approval: bool
    """A call waits for the user's consent; for tools that change something."""
    read_only: bool
    """The tool looks something up and changes nothing; MCP hosts need not ask their users before a call."""
    timeout: float | None
    """Seconds that a call may take, with its retries."""
    cache_seconds: float | None
    """Seconds for which a result also answers equal calls; for tools that only look something up."""
    max_calls: int | None
    """Calls that one question may make, in place of the service's own limit."""
    max_identical_calls: int | None
    """Calls with the same arguments that one question may make; for tools that are asked again and again."""
    exclusive: bool
    """Calls of one message run one after another, in the order of the message; for tools that build on each other."""
    retries: int
    """How often a call is tried again after an error that is marked retryable; for tools that may run twice."""
    result_converter: ToolCallResultConverter | None
    """Turns the return value into text for the model; else :func:`convert_result`."""


_OWN_WORDS = ("name", "description", "result_converter")


@dataclass(frozen=True, slots=True)
class ToolMarker:
    """What ``@tool`` says about a function, a method or a class of callable objects."""

    name: str | None = None
    description: str | None = None
    metadata: ToolMetadata = field(default_factory=ToolMetadata)
    result_converter: ToolCallResultConverter = convert_result

    @classmethod
    def find(cls, marked: object) -> "ToolMarker | None":
        """Find the marker of a function, a method, or an object of a marked class."""
        found = getattr(marked, _MARKER, None)
        return found if isinstance(found, cls) else None

    def updated(self, options: ToolOptions) -> "ToolMarker":
        """Copy with what the options say.

        Raises:
            TypeError: there is no such option.
        """
        if unknown := options.keys() - ToolOptions.__annotations__.keys():
            raise TypeError(f"a tool has no option {min(unknown)}")
        own = {name: word for name, word in options.items() if name in _OWN_WORDS and word is not None}
        rest = {name: word for name, word in options.items() if name not in _OWN_WORDS}
        return replace(self, **own, metadata=replace(self.metadata, **rest))  # type: ignore[arg-type]


@overload
def tool(function: _F, /) -> _F: ...


@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[_F], _F]: ...


def tool(function: _F | None = None, /, **options: Unpack[ToolOptions]) -> _F | Callable[[_F], _F]:
    """Mark a function, a method or a class of callable objects as a tool: ``@tool``, or ``@tool(...)`` with arguments.

    It may stand above or below ``@staticmethod`` and ``@classmethod``.

    Args:
        function: what is marked, where nothing more is to be said.
        options: what is said about it; see :class:`ToolOptions`.
    """
    marker = ToolMarker().updated(options)

    def mark(marked: _F) -> _F:
        target = marked.__func__ if isinstance(marked, staticmethod | classmethod) else marked
        setattr(target, _MARKER, marker)
        return marked

    return mark if function is None else mark(function)


def tool_name(function: Callable[..., Any]) -> str:
    """The tool name of a function, a callable object or its class: what ``@tool`` says, else its own name."""
    marker = ToolMarker.find(function)
    return (marker and marker.name) or getattr(function, "__name__", None) or type(function).__name__
