"""Tools as MCP hosts see them: their listing, and the result of a call."""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

from mcp_types import CallToolRequestParams
from pydantic_core import SchemaError, SchemaValidator, ValidationError, from_json, to_json

from toolchat.chat.manual_execution import manual_request
from toolchat.models.base import ChatResponse
from toolchat.service.api.advisors import SandboxNoticeAdvisor, SessionLockAdvisor
from toolchat.service.api.dependencies import scoped_key
from toolchat.service.api.idempotency import IdempotencyAdvisor, IdempotentRequest
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.service import ServiceState
from toolchat.service.mcp_client.foreign_tools import RemoteToolCallback
from toolchat.service.mcp_client.results import MCP_RESULT
from toolchat.service.protocols.mcp_server.calls import Call, Context, Result, takes_any_structure, text_block
from toolchat.service.protocols.mcp_server.consent import check_can_ask, require_consent
from toolchat.tool_calling.callback import ToolCallback, needs_approval
from toolchat.tool_calling.caller import current_caller
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.definition import ToolMetadata
from toolchat.tool_calling.json_schema import schema_validator


def list_tools(service: ServiceState, ask: Result, *, takes_any: bool) -> list[Result]:
    """The tools that the caller may use, then the tool ``ask``, unless a tool module has one of that name.

    Args:
        service: the running service.
        ask: the listing of the tool ``ask``; its annotations depend on the other tools.
        takes_any: whether the host takes structured results that are no objects.
    """
    offered, _ = service.tools.for_conversation(None)
    may_use = current_caller.get().may_use
    listed = [
        _listing(each, takes_any=takes_any)
        for each in offered
        if isinstance(each, ToolCallback) and may_use(each.definition.name)
    ]
    if any(each["name"] == ask["name"] for each in listed):
        return listed
    is_read_only = all(each["annotations"]["readOnlyHint"] for each in listed)
    return [*listed, {**ask, "annotations": {"readOnlyHint": is_read_only, "destructiveHint": False}}]


def _listing(tool: ToolCallback, *, takes_any: bool) -> Result:
    definition = tool.definition
    listing = {
        "name": definition.name,
        "description": definition.description,
        "inputSchema": {"type": "object", **definition.input_schema},
        "annotations": _annotations(tool.metadata),
    }
    is_passed_on = isinstance(tool, RemoteToolCallback) and (takes_any or _is_object(definition.output_schema))
    if not definition.output_schema or not (is_passed_on or _result_validator(tool)):
        return listing
    return listing | {"outputSchema": definition.output_schema}


def _annotations(metadata: ToolMetadata) -> dict[str, bool]:
    """The hints by which hosts decide whether to ask their user and whether to retry."""
    if metadata.is_read_only:
        return {"readOnlyHint": True}
    hints = {"readOnlyHint": False, "destructiveHint": bool(metadata.requires_approval)}
    return hints | ({"idempotentHint": True} if metadata.retries else {})


def _result_validator(tool: ToolCallback) -> SchemaValidator | None:
    """The validator of structured results; ``None`` if they are no objects, or are passed on as they came."""
    schema = tool.definition.output_schema
    if isinstance(tool, RemoteToolCallback) or not _is_object(schema):
        return None
    # Cached by the schema's text: callbacks are not hashable, and compiling a validator takes a hundred times longer.
    return _compiled(to_json(schema))


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object"


@lru_cache(maxsize=256)
def _compiled(schema: bytes) -> SchemaValidator | None:
    try:
        return schema_validator(from_json(schema))
    except (SchemaError, LookupError):
        return None


async def prepare_tool_call(
    ctx: Context, tool: ToolCallback, params: CallToolRequestParams, context: Mapping[str, Any]
) -> Call | Result:
    """Prepare a call, or the result that asks the host's user for consent."""
    service, arguments = ctx.lifespan_context, params.arguments or {}
    prompt = manual_request(service.manual_client, tool, arguments, context)
    if CONVERSATION_ID in context:
        prompt = prompt.advisors(SessionLockAdvisor(service.memory))
    if await needs_approval(tool, to_json(arguments, inf_nan_mode="constants").decode(), prompt.request.context):
        check_can_ask(ctx, params.name)
        consent = await require_consent(params, service.store, scoped_key(str(context.get("tenantId", ""))))
        if not isinstance(consent, IdempotentRequest):
            return consent
        found = await service.idempotency.find(consent)
        prompt = prompt.advisors(IdempotencyAdvisor(service.idempotency, consent, found))
    return Call(prompt, partial(_result, tool, takes_any_structure(ctx)))


def _result(tool: ToolCallback, takes_any: bool, _active: ActiveRequest, response: ChatResponse) -> Result:
    execution = response.executions[0]
    if isinstance(execution.data, dict) and isinstance(theirs := execution.data.get(MCP_RESULT), dict):
        is_taken = takes_any or isinstance(theirs.get("structuredContent"), dict)
        return theirs if is_taken else {"content": theirs.get("content", [])}
    content = [text_block(execution.result)]
    if execution.sandbox:
        content.append(text_block(SandboxNoticeAdvisor.notice.strip()))
    if execution.outcome == "error":
        return {"content": content, "isError": True}
    validator = _result_validator(tool)
    if validator is None:
        # Without an output schema the protocol allows any object.
        return {"content": content} | ({"structuredContent": data} if isinstance(data := execution.data, dict) else {})
    text = execution.result if execution.data is None else to_json(execution.data)
    try:
        return {"content": content, "structuredContent": validator.validate_json(text, strict=True)}
    except ValidationError:
        # Hosts reject a result that lacks the structure of its output schema, unless it is marked as an error.
        note = text_block("The result does not match the tool's output schema; the text below is unchanged.")
        return {"content": [note, *content], "isError": True}
