"""Tool definitions: what the model sees of a tool, how the engine treats it, and the ``@tool`` marker."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from inspect import iscoroutinefunction
from typing import Any, TypedDict, TypeVar, Unpack, overload

from toolchat.messages import updated
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.recognizers import Recognizer
from toolchat.tool_calling.results import ToolCallResultConverter, convert_result


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as the model sees it: it chooses by name and description and fills the schema."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    """JSON Schema 2020-12 of an object."""
    output_schema: Mapping[str, Any] = field(default_factory=dict)
    """JSON Schema of the result, with explicit titles only; empty if the return type has no fields."""

    def __post_init__(self) -> None:
        for part in ("name", "description"):
            text: object = getattr(self, part)
            if not isinstance(text, str):
                raise ToolDefinitionError(f"a tool's {part} must be text, not {text!r:.40}")
            if not text.strip():
                raise ValueError(f"a tool's {part} must not be blank")


ApprovalRule = Callable[[Mapping[str, Any], ToolContext], bool | str | Awaitable[bool | str]]
"""Decides from a call's arguments and context whether it waits for approval; a role that it returns decides by whom."""


@dataclass(frozen=True, slots=True)
class ToolMetadata:
    """How the engine treats a tool. The model does not see it."""

    return_direct: bool = False
    """The result is the answer; the model is not called again."""
    sandbox: bool = False
    """The tool returns invented data; every answer that used it says so."""
    requires_approval: bool | ApprovalRule = False
    """A call waits for approval before it runs: always, or if a rule says so."""
    approver: str = ""
    """The role of who approves a call, and never who asked; empty: who asked confirms it."""
    approver_may_edit: bool = False
    """The person who approves somebody else's call may change its arguments."""
    read_only: bool = False
    """The tool changes nothing; shown to users and clients that decide about calls."""
    timeout: float | None = None
    """Seconds for a call with its retries; ``None`` means the manager's limit."""
    cache_seconds: float | None = None
    """Seconds for which equal calls share a result; ``None`` or 0: every call runs."""
    max_calls: int | None = None
    """Calls of the tool in one chat request; ``None`` means the limit in ``ToolCallLimits``."""
    max_identical_calls: int | None = None
    """Calls with the same arguments in one chat request; ``None`` means the limit in ``ToolCallLimits``."""
    exclusive: bool = False
    """Calls of one message run one after another, in their order."""
    retries: int = 0
    """Further attempts after an error that is marked retryable, and after a crash in the background.

    For tools that may run twice: they change nothing, or hand ``ToolContext.idempotency_key`` to their upstream.
    """
    examples: tuple[str, ...] = ()
    """Questions that the tool answers, in any language; the offline model proposes them."""
    recognizers: tuple[tuple[str, Recognizer], ...] = ()
    """How values are found in a question, each with the name of its parameter; read from the annotations."""
    run_by_caller: bool = False
    """The client runs the tool: a message that calls it ends the chat request; see ``ClientToolCallback``."""

    @property
    def is_read_only(self) -> bool:
        """Whether a call is known to change nothing: the tool says so, or its results are cached."""
        return self.read_only or self.cache_seconds is not None

    @property
    def may_run_twice(self) -> bool:
        """Whether a call may be repeated if its outcome is unknown: it only reads, or retries are allowed."""
        return self.is_read_only or self.retries > 0

    def updated(self, other: "ToolMetadata") -> "ToolMetadata":
        """Copy with every value of another one that differs from the default."""
        return updated(self, other)


def validate_metadata(tool: str, metadata: ToolMetadata, context_parameter: str | None) -> None:
    """Reject metadata that is invalid, or repeats or caches what has effects or depends on the caller."""
    for fault in _faults(metadata, context_parameter):
        raise ToolDefinitionError(f"tool {tool}: {fault}")


_NUMBERS = (("timeout", float, 0.001), ("cache_seconds", float, 0.0), ("retries", int, 0), ("max_calls", int, 1),
            ("max_identical_calls", int, 1))  # fmt: skip
_SWITCHES = ("return_direct", "sandbox", "read_only", "exclusive", "run_by_caller", "approver_may_edit")


def number_faults(settings: object, numbers: Iterable[tuple[str, type, float]]) -> Iterator[str]:
    """Describe the attributes that are no numbers, for ``int`` no whole ones, or below the least that is allowed."""
    for name, kind, least in numbers:
        value = getattr(settings, name)
        if not isinstance(value, int | kind) or isinstance(value, bool) or not value >= least:  # type: ignore[operator]
            yield f"{name} must be a {'whole ' if kind is int else ''}number of at least {least:g}"


def _value_faults(metadata: ToolMetadata) -> Iterator[str]:
    yield from number_faults(metadata, [each for each in _NUMBERS if getattr(metadata, each[0]) is not None])
    for name in _SWITCHES:
        if not isinstance(getattr(metadata, name), bool):
            yield f"{name} must be True or False"
    if not isinstance(metadata.examples, tuple) or not all(isinstance(each, str) for each in metadata.examples):
        yield "examples must be a tuple of texts"
    if not isinstance(metadata.requires_approval, bool) and not callable(metadata.requires_approval):
        yield "requires_approval must be True, False or a function of the arguments and the context"
    if not isinstance(metadata.approver, str):
        yield "approver must be a role"


def _faults(metadata: ToolMetadata, context_parameter: str | None) -> Iterator[str]:
    yield from _value_faults(metadata)
    if (metadata.approver or metadata.approver_may_edit) and not metadata.requires_approval:
        yield "approver and approver_may_edit are for a tool that requires approval"
    if metadata.read_only and metadata.requires_approval:
        yield "read_only is not for a tool that requires approval"
    if metadata.retries and metadata.requires_approval:
        yield "retries is not for a tool that requires approval"
    if metadata.cache_seconds is None:
        return
    if metadata.requires_approval:
        yield "cache_seconds is not for a tool that requires approval"
    if context_parameter is not None:
        yield (
            f"cache_seconds is not for a tool with a ToolContext (parameter {context_parameter}): "
            "its result may depend on the caller"
        )


_F = TypeVar("_F", bound=Callable[..., Any])
_MARKER = "__tool__"


class ToolOptions(TypedDict, total=False):
    """The options of a tool; an option that is left out does not change anything."""

    name: str | None
    """The name that the model sees; default: the function's name."""
    description: str | None
    """The model uses it to decide when to call the tool; default: the first paragraph of the docstring."""
    return_direct: bool
    """The result is the answer; the model is not called again."""
    requires_approval: bool | ApprovalRule
    """A call waits for approval; for tools with effects. A function decides for each call: it receives the validated
    arguments by name, and the :class:`ToolContext`; if it raises, the call waits. A role that it returns takes the
    place of ``approver``. A plain function may block: it runs in a thread, as a plain tool does."""
    approver: str
    """The role of who approves a call, and never who asked; without it, who asked confirms the call."""
    approver_may_edit: bool
    """The person who approves somebody else's call may change its arguments."""
    read_only: bool
    """The tool changes nothing, so MCP hosts need not ask their users before a call."""
    timeout: float | None
    """Seconds for a call with its retries."""
    cache_seconds: float | None
    """Seconds for which equal calls share a result; for tools without effects."""
    max_calls: int | None
    """Calls of the tool in one chat request, in place of the general limit."""
    max_identical_calls: int | None
    """Calls with the same arguments in one chat request; raise it for tools that are polled."""
    exclusive: bool
    """Calls of one message run one after another, in their order; for tools whose calls depend on each other."""
    retries: int
    """Further attempts after an error that is marked retryable, and after a crash in the background; for tools that may
    run twice, as they hand :attr:`ToolContext.idempotency_key` to their upstream."""
    examples: tuple[str, ...]
    """Questions that the tool answers, in any language; the offline model proposes them."""
    result_converter: ToolCallResultConverter | None
    """Converts the return value to text for the model; default: :func:`convert_result`."""


_NO_METADATA = ("name", "description", "result_converter")


@dataclass(frozen=True, slots=True)
class ToolMarker:
    """What ``@tool`` attaches to a function, a method or a class of callable objects."""

    name: str | None = None
    description: str | None = None
    metadata: ToolMetadata = field(default_factory=ToolMetadata)
    result_converter: ToolCallResultConverter = convert_result

    @classmethod
    def find(cls, marked: object) -> "ToolMarker | None":
        """Find the marker of a function, a method, an object of a marked class, or a ``functools.partial`` of one."""
        found = getattr(marked, _MARKER, None)
        if isinstance(found, cls):
            return found
        return cls.find(marked.func) if isinstance(marked, partial) else None

    def updated(self, options: ToolOptions) -> "ToolMarker":
        """Copy with options applied."""
        for name in ("name", "description"):
            if not isinstance(options.get(name), str | None):
                raise ToolDefinitionError(f"{name} of a tool must be text, not {options.get(name)!r:.40}")
        if not callable(options.get("result_converter") or convert_result):
            raise ToolDefinitionError("result_converter of a tool must be a function that returns text")
        if unknown := options.keys() - ToolOptions.__annotations__.keys():
            raise TypeError(f"a tool has no option {min(unknown)}")
        own = {name: value for name, value in options.items() if name in _NO_METADATA and value is not None}
        metadata = {name: value for name, value in options.items() if name not in _NO_METADATA}
        return replace(self, **own, metadata=replace(self.metadata, **metadata))  # type: ignore[arg-type]


@overload
def tool(function: _F, /) -> _F: ...


@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[_F], _F]: ...


def tool(function: _F | None = None, /, **options: Unpack[ToolOptions]) -> _F | Callable[[_F], _F]:
    """Mark a function, a method or a class of callable objects as a tool: ``@tool``, or ``@tool(...)`` with arguments.

    It can be placed above or below ``@staticmethod`` and ``@classmethod``.

    Args:
        function: the marked function, if ``@tool`` is used without arguments.
        options: see :class:`ToolOptions`.
    """
    marker = ToolMarker().updated(options)

    def mark(marked: _F) -> _F:
        if not (callable(marked) or isinstance(marked, classmethod)):
            raise ToolDefinitionError(f"@tool marks functions, no {type(marked).__name__}; a name is written name=...")
        target = marked.__func__ if isinstance(marked, staticmethod | classmethod) else marked
        setattr(target, _MARKER, marker)
        return marked

    return mark if function is None else mark(function)


def tool_name(function: Callable[..., Any]) -> str:
    """The tool name of a function, a callable object or its class, as every provider accepts it."""
    return provider_name(declared_name(function))


def declared_name(function: Callable[..., Any]) -> str:
    """The name of a tool as its author writes it: the name in ``@tool``, else the function's own."""
    marker, called = ToolMarker.find(function), called_function(function)
    return (marker and marker.name) or getattr(called, "__name__", None) or type(called).__name__


MAX_NAME_CHARS = 64
"""The longest name of a tool that OpenAI accepts, as other providers do."""
_HASH_CHARS = 8


def provider_name(name: str, prefix: str = "") -> str:
    """Convert a name to the characters and the length that every provider accepts: ``[A-Za-z0-9_-]{1,64}``.

    A name that has to be changed ends in a hash of the original, so that different names stay different:
    ``orders.find`` becomes ``orders_find_`` and eight hexadecimal digits.

    Args:
        name: any name.
        prefix: is put before the name, followed by ``_``.
    """
    full = f"{prefix}_{name}" if prefix else name
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", full)
    if plain == full and len(full) <= MAX_NAME_CHARS:
        return full
    digest = sha256(full.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{plain[: MAX_NAME_CHARS - _HASH_CHARS - 1]}_{digest}"


def converted(definition: ToolDefinition) -> ToolDefinition:
    """The definition under a name that every provider accepts; if that is another one, the description has the former.

    So the model knows the name that users and instructions know.
    """
    name = provider_name(definition.name)
    if name == definition.name:
        return definition
    return replace(definition, name=name, description=f"{definition.name}: {definition.description}")


def written_name(definition: ToolDefinition) -> str:
    """The name of a tool before it was converted."""
    former = definition.description.partition(": ")[0]
    return former if provider_name(former) == definition.name else definition.name


def called_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function or callable object within a ``functools.partial``; any other is returned unchanged."""
    return called_function(function.func) if isinstance(function, partial) else function


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a function, or a callable object's ``__call__``, is a coroutine function; any other may block."""
    function = called_function(function)
    return iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)
