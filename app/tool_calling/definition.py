"""What a chat model is told about a tool."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["ToolDefinition", "ToolMetadata"]


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as the model sees it: the model picks by name and description and fills the schema."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    """JSON Schema 2020-12 of an object."""

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
    timeout: float | None = None
    """Seconds a call may take; ``None`` means the manager's own limit."""
    cache_seconds: float | None = None
    """Seconds for which a result also answers equal calls; ``None`` or 0 means that every call runs."""
