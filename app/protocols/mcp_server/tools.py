"""Tools and their results as MCP hosts see them: ``tools/list``, and the result of ``tools/call``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from pydantic_core import SchemaError, SchemaValidator, ValidationError, from_json, to_json

from app.api.approvals import PendingTurn
from app.api.responses.active_request import ActiveRequest
from app.api.responses.formats import BufferedFormat
from app.api.service import ServiceState
from toolchat.chat.advisors.base import SandboxNoticeAdvisor
from toolchat.chat.client import PromptSpec
from toolchat.chat.request import Emit
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.caller import current_caller
from toolchat.tool_calling.definition import ToolMetadata
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.events import ToolCallFinished, discard_event
from toolchat.tool_calling.schema_validator import schema_validator

__all__ = ["ANSWER", "TOOL_RESULT", "Call", "ResultFormat", "error_result", "execute_call", "list_tools"]


def list_tools(service: ServiceState, ask: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tools that the caller may use, then the tool ``ask``, unless a tool module has one of that name.

    Args:
        service: the running service.
        ask: the listing of the tool ``ask``; its annotations depend on the other tools.
    """
    offered, _ = service.tools.for_conversation(None)
    may_use = current_caller.get().may_use
    tools = [each for each in offered if isinstance(each, ToolCallback) and may_use(each.definition.name)]
    listed: list[Mapping[str, Any]] = [_listing(each) for each in tools]
    if any(each["name"] == ask["name"] for each in listed):
        return listed
    is_read_only = all(each["annotations"]["readOnlyHint"] for each in listed)
    return [*listed, {**ask, "annotations": {"readOnlyHint": is_read_only, "destructiveHint": False}}]


def _listing(tool: ToolCallback) -> Mapping[str, Any]:
    definition = tool.definition
    listing = {
        "name": definition.name,
        "description": definition.description,
        "inputSchema": {"type": "object", **definition.input_schema},
        "annotations": _annotations(tool.metadata),
    }
    return listing if _result_validator(tool) is None else listing | {"outputSchema": definition.output_schema}


def _annotations(metadata: ToolMetadata) -> dict[str, bool]:
    """The hints by which hosts decide whether to ask their user and whether to retry."""
    if metadata.is_read_only:
        return {"readOnlyHint": True}
    hints = {"readOnlyHint": False, "destructiveHint": metadata.requires_approval}
    return hints | ({"idempotentHint": True} if metadata.retries else {})


def _result_validator(tool: ToolCallback) -> SchemaValidator | None:
    """The validator of structured results; ``None`` if the tool's results are not objects."""
    schema = tool.definition.output_schema
    # Cached by the schema's text: callbacks are not hashable, and compiling a validator takes a hundred times longer.
    return _compiled(to_json(schema)) if schema.get("type") == "object" else None


@lru_cache(maxsize=256)
def _compiled(schema: bytes) -> SchemaValidator | None:
    try:
        return schema_validator(from_json(schema))
    except (SchemaError, LookupError):
        return None


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is ready to run."""

    prompt: PromptSpec
    form: BufferedFormat
    """Writes the result."""
    reports_progress: bool
    """Whether it can report progress before it ends."""
    taken: PendingTurn | None = None
    """The paused turn that it resumes, if any."""


class ResultFormat(BufferedFormat):
    """A result of ``tools/call`` as JSON, without the JSON-RPC response around it."""

    media_type = "application/json"
    documentation: ClassVar = {"schema": {"type": "object"}}


class _ToolResult(ResultFormat):
    """The result of a tool that the host called."""

    def render(self, active: ActiveRequest, response: ChatResponse) -> bytes:
        """See :meth:`BufferedFormat.render`."""
        execution = response.executions[0]
        tool = next((each for each in active.prompt.request.tools if each.definition.name == execution.call.name), None)
        return _json(_tool_result(execution, tool))


class _Answer(ResultFormat):
    """The answer of the tool ``ask``, with its tool calls."""

    def render(self, active: ActiveRequest, response: ChatResponse) -> bytes:
        """See :meth:`BufferedFormat.render`."""
        return _json({"content": [_text(response.message.text)], "structuredContent": active.document(response)})


TOOL_RESULT = _ToolResult()
ANSWER = _Answer()


async def execute_call(active: ActiveRequest, form: BufferedFormat, emit: Emit = discard_event) -> bytes:
    """Run a call within the limit of concurrent requests and return its result; events go to ``emit``.

    Raises:
        ToolchatError: the limit is reached, or the call could not run.
    """
    async with active.service.admission.slot() as active.reservation:
        return form.render(active, await (active.complete() if emit is discard_event else active.stream(emit)))


def error_result(error: ToolExecutionError) -> bytes:
    """The result for a call that cannot run; the host's model can correct the call."""
    return _json({"content": [_text(error.as_result())], "isError": True})


def _tool_result(execution: ToolCallFinished, tool: ToolCallback | None) -> Mapping[str, Any]:
    content = [_text(execution.result)]
    if execution.sandbox:
        content.append(_text(SandboxNoticeAdvisor.notice.strip()))
    if execution.outcome == "error":
        return {"content": content, "isError": True}
    validator = _result_validator(tool) if tool is not None else None
    if validator is None:
        return {"content": content}
    try:
        return {"content": content, "structuredContent": validator.validate_json(execution.result, strict=True)}
    except ValidationError:
        # Hosts reject a result that lacks the structure of its output schema, unless it is marked as an error.
        note = _text("The result does not match the tool's output schema; the text below is unchanged.")
        return {"content": [note, *content], "isError": True}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _json(result: Mapping[str, Any]) -> bytes:
    return to_json(result, inf_nan_mode="strings")
