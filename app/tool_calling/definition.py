"""What a chat model is told about a tool, and how the service treats it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from app.tool_calling.errors import ToolDefinitionError

__all__ = ["ToolDefinition", "ToolMetadata", "check_metadata"]


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
    def only_reads(self) -> bool:
        """Whether it is known that a call changes nothing: it says so, or its results may be told again."""
        return self.read_only or self.cache_seconds is not None

    def updated(self, other: "ToolMetadata") -> Self:
        """Copy with what another one says; where that says nothing but the default, this one's word stays."""
        said = {each.name: word for each in fields(other) if (word := getattr(other, each.name)) != each.default}
        return replace(self, **said)


def check_metadata(tool: str, metadata: ToolMetadata, context_parameter: str | None) -> None:
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
