"""A tool as people and their programs are shown it."""

from typing import Any

from pydantic_core import to_json

from app.tool_calling.callback import ToolCallback
from app.tool_calling.errors import ToolArgumentsError
from app.tool_calling.schema_example import example_arguments

__all__ = ["described_tool"]


def described_tool(tool: ToolCallback, kind: str) -> dict[str, Any]:
    """A tool's definition, how the service treats it, and arguments that fit it, where some can be made of its schema.

    Args:
        tool: the tool.
        kind: ``function`` or ``method``.
    """
    definition = tool.definition
    described = {
        "name": definition.name,
        "kind": kind,
        "description": definition.description,
        "input_schema": definition.input_schema,
        "sandbox": tool.metadata.sandbox,
        "requires_approval": tool.metadata.requires_approval,
        "read_only": tool.metadata.only_reads,
    }
    example = example_arguments(definition.input_schema)
    try:
        tool.check(to_json(example).decode())
    except (ToolArgumentsError, ValueError):
        return described
    return described | {"example": example}
