"""What ``@tool`` says about a function, and where it says it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict, TypeVar, Unpack, overload

from app.tool_calling.definition import ToolMetadata
from app.tool_calling.result_converter import ToolCallResultConverter, convert_result

__all__ = ["ToolMarker", "ToolOptions", "name_of", "tool"]

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
    def on(cls, marked: object) -> "ToolMarker | None":
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


def name_of(function: Callable[..., Any]) -> str:
    """The tool name of a function, a callable object or its class: what ``@tool`` says, else its own name."""
    marker = ToolMarker.on(function)
    return (marker and marker.name) or getattr(function, "__name__", None) or type(function).__name__
