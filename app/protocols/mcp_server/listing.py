"""The tools of the service as MCP hosts are shown them."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, from_json, to_json

from app.api.service import ServiceState
from toolchat.callers import current_caller
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.definition import ToolMetadata
from toolchat.tool_calling.schema_validator import schema_validator

__all__ = ["listed_tools", "result_check"]


def listed_tools(service: ServiceState, ask: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """One form of each tool, in the order of the folders, then the tool ``ask``, unless a folder has one of that name.

    A tool that the caller may not use is not there.

    Args:
        service: the running service.
        ask: the tool ``ask`` as it is shown; what it may do depends on the others.
    """
    offered, _ = service.tools.for_conversation(None)
    may_use = current_caller.get().principal.may_use
    tools = [each for each in offered if isinstance(each, ToolCallback) and may_use(each.definition.name)]
    shown: list[Mapping[str, Any]] = [_shown(each) for each in tools]
    if any(each["name"] == ask["name"] for each in shown):
        return shown
    is_read_only = all(each["annotations"]["readOnlyHint"] for each in shown)
    return [*shown, {**ask, "annotations": {"readOnlyHint": is_read_only, "destructiveHint": False}}]


def result_check(tool: ToolCallback) -> SchemaValidator | None:
    """What makes sure that a tool's result is what its listing promises; ``None`` where that promises nothing."""
    schema = tool.definition.output_schema
    # Tools cannot be hashed; writing a schema costs a hundredth of making the check.
    return _check(to_json(schema)) if schema.get("type") == "object" else None


@lru_cache(maxsize=256)
def _check(schema: bytes) -> SchemaValidator | None:
    try:
        return schema_validator(from_json(schema))
    except (SchemaError, LookupError):
        return None


def _shown(tool: ToolCallback) -> Mapping[str, Any]:
    definition = tool.definition
    shown = {
        "name": definition.name,
        "description": definition.description,
        "inputSchema": {"type": "object", **definition.input_schema},
        "annotations": _annotations(tool.metadata),
    }
    return shown if result_check(tool) is None else shown | {"outputSchema": definition.output_schema}


def _annotations(metadata: ToolMetadata) -> dict[str, bool]:
    """What hosts decide by, as far as it is known: whether they ask their user, and whether they may try again."""
    if metadata.is_read_only:
        return {"readOnlyHint": True}
    hints = {"readOnlyHint": False, "destructiveHint": metadata.requires_approval}
    return hints | ({"idempotentHint": True} if metadata.retries else {})
