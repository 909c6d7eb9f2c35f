"""The service as a server of the official SDK: it validates messages and results, and knows the protocol's versions."""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, TypeVar

from mcp.server import CacheHint, Server
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, SERVER_INFO_META_KEY, CallToolRequestParams, PaginatedRequestParams, methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic_core import ValidationError, from_json, to_json

from toolchat import __version__
from toolchat.chat.manual_execution import manual_request
from toolchat.errors import NotConfigured, NotFound, ValidationFailed
from toolchat.models.base import ChatResponse
from toolchat.service.api.advisors import SandboxNoticeAdvisor, SessionLockAdvisor
from toolchat.service.api.approval_records import words_about
from toolchat.service.api.dependencies import scoped_key
from toolchat.service.api.direct_calls import DirectCall
from toolchat.service.api.idempotency import IdempotencyAdvisor, IdempotentRequest
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.service import ServiceState
from toolchat.service.mcp_client.foreign_tools import MCP_RESULT, RemoteToolCallback
from toolchat.service.protocols.mcp_server.ask_tool import ASK, ASK_TOOL, prepare_question
from toolchat.service.protocols.mcp_server.calls import (
    Call,
    Context,
    Origin,
    Result,
    error_result,
    is_modern,
    run_call,
    text_block,
)
from toolchat.service.protocols.mcp_server.consent import call_digest, check_can_ask, require_consent, with_decisions
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.caller import current_caller
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.definition import ToolMetadata
from toolchat.tool_calling.errors import ToolArgumentsError, ToolExecutionError
from toolchat.tool_calling.events import ToolCallFinished
from toolchat.tool_calling.input_validation import Validate
from toolchat.tool_calling.results import json_or_text

_T = TypeVar("_T")
_MAX_KEPT_BYTES = 2048
_Scalars = Mapping[str, tuple[type, ...]]


async def _list_tools(ctx: Context, params: PaginatedRequestParams) -> Result:
    """The tools that the caller may use, then the tool ``ask``, unless a tool module has one of that name."""
    if params.cursor:
        raise MCPError(INVALID_PARAMS, "Unknown cursor: the first page has all tools")
    offered = (tool for entry in ctx.lifespan_context.tools.entries.values() for tool in entry.in_conversation())
    may_use = current_caller.get().may_use
    listed = [_listing(each, takes_any=is_modern(ctx)) for each in offered if may_use(each.definition.name)]
    if not any(each["name"] == ASK for each in listed):
        is_read_only = all(each["annotations"]["readOnlyHint"] for each in listed)
        listed.append({**ASK_TOOL, "annotations": {"readOnlyHint": is_read_only, "destructiveHint": False}})
    return {"resultType": "complete", "tools": listed}


def _listing(tool: ToolCallback, *, takes_any: bool) -> Result:
    definition = tool.definition
    listing = {
        "name": definition.name,
        "description": definition.description,
        "inputSchema": {"type": "object", **definition.input_schema},
        "annotations": _annotations(tool.metadata),
    }
    is_passed_on = isinstance(tool, RemoteToolCallback) and (takes_any or _is_object(definition.output_schema))
    if not definition.output_schema or not (is_passed_on or _has_own_structure(tool)):
        return listing
    return listing | {"outputSchema": definition.output_schema}


def _annotations(metadata: ToolMetadata) -> dict[str, bool]:
    """The hints by which hosts decide whether to ask their user and whether to retry."""
    if metadata.is_read_only:
        return {"readOnlyHint": True}
    hints = {"readOnlyHint": False, "destructiveHint": bool(metadata.requires_approval)}
    return hints | ({"idempotentHint": True} if metadata.retries else {})


def _has_own_structure(tool: ToolCallback) -> bool:
    """Whether results fit the tool's output schema, which is that of an object."""
    return not isinstance(tool, RemoteToolCallback) and _is_object(tool.definition.output_schema)


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object"


async def prepare_tool_call(
    ctx: Context, tool: ToolCallback, params: CallToolRequestParams, context: Mapping[str, Any]
) -> Call | Result:
    """Prepare a call, or the result that asks the host's user for consent."""
    service, arguments = ctx.lifespan_context, params.arguments or {}
    prompt = manual_request(service.manual_client, tool, arguments, context)
    if CONVERSATION_ID in context:
        prompt = prompt.advisors(SessionLockAdvisor(service.memory))
    call = await DirectCall.of(prompt)
    if call.role:
        once = call_digest(_owner_in(context), params)
        return _waiting(await call.wait(service.approvals, once, service.approvals.ttl))
    if call.role is not None:
        check_can_ask(ctx, params.name)
        consent = await require_consent(params, service.store, _owner_in(context))
        if not isinstance(consent, IdempotentRequest):
            return consent
        found = await service.idempotency.find(consent)
        prompt = prompt.advisors(IdempotencyAdvisor(service.idempotency, consent, found))
    return Call(prompt, partial(_result, tool, ctx.protocol_version))


def _owner_in(context: Mapping[str, Any]) -> str:
    return scoped_key(str(context.get("tenantId", "")))


def _waiting(approval: Mapping[str, Any]) -> Result:
    """The result of a call that somebody else has to approve; the host's model cannot, and only the host gets the id.

    The same call gets the outcome once there is one, and says so: it did not run again.
    """
    if approval["status"] == "waiting":
        error = ToolExecutionError(words_about(approval["calls"]), kind="approval-required")
        return error_result(error) | {"_meta": {APPROVAL_META: approval["id"]}}
    words = f"{approval['decision']} at {approval['at']}, and not repeated"
    outcome = approval.get("answer") or approval.get("failure") or approval["reason"]
    return {"content": [text_block(f"{words}: {outcome}")], "isError": "answer" not in approval}


def _result(tool: ToolCallback, version: str, _active: ActiveRequest, response: ChatResponse) -> Result:
    execution = response.executions[0]
    if isinstance(execution.data, dict) and isinstance(theirs := execution.data.get(MCP_RESULT), dict):
        if version not in MODERN_PROTOCOL_VERSIONS and not isinstance(theirs.get("structuredContent"), dict):
            theirs = {"content": theirs.get("content", [])}
        return theirs
    content = [text_block(execution.result)]
    if execution.sandbox:
        content.append(text_block(SandboxNoticeAdvisor.notice.strip()))
    if execution.outcome == "error":
        return {"content": content, "isError": True}
    if not _has_own_structure(tool):
        # Without an output schema the protocol allows any object.
        return {"content": content} | ({"structuredContent": data} if isinstance(data := execution.data, dict) else {})
    schema = tool.definition.output_schema
    try:
        structure = _structured(execution, schema)
    except ValidationError:
        # Hosts reject a result that lacks the structure of its output schema, unless it is marked as an error.
        note = text_block("The result does not match the tool's output schema; the text below is unchanged.")
        return {"content": [note, *content], "isError": True}
    if execution.sandbox and schema.get("additionalProperties") is not False:
        # Some hosts, such as Claude Code, show their model the structure and not the content.
        structure = {"notice": SandboxNoticeAdvisor.notice.strip(), **structure}
    return {"content": content, "structuredContent": structure}


def _structured(execution: ToolCallFinished, schema: Mapping[str, Any]) -> Any:
    validate, scalars = _validation(to_json(schema))
    data = json_or_text(execution.result) if execution.data is None else execution.data
    if scalars and _consists_of(scalars, data):
        return data
    text = execution.result if execution.data is None else to_json(data).decode()
    # Hosts validate results too. The validation of a longer one would hold up all other requests.
    return validate(text, True) if len(text) <= MAX_VALIDATED_CHARS else _validation(b"{}")[0](text, True)


@lru_cache(maxsize=256)
def _validation(schema: bytes) -> tuple[Validate, _Scalars]:
    """The validator of a schema, and the members of an object of scalars: to compare them takes a tenth of the time."""
    from toolchat.tool_calling.given_schemas import SchemaValidator, upgraded  # imported late: takes 0.1 s

    checked = upgraded(from_json(schema))
    members = checked.get("properties", {})
    is_plain = checked.keys() - _NOTES == {"properties", "required"} and members.keys() == set(checked["required"])
    if not (is_plain and all(isinstance(each, dict) and each.keys() <= _NOTES for each in members.values())):
        members = {}
    return SchemaValidator(checked).validate_json, {
        n: _SCALARS.get(each.get("type"), ()) for n, each in members.items()
    }


def _consists_of(scalars: _Scalars, data: Any) -> bool:
    has_names = isinstance(data, dict) and data.keys() == scalars.keys()
    return has_names and all(type(value) in scalars[name] for name, value in data.items())


_NOTES = frozenset(("type", "title", "description"))
_SCALARS: _Scalars = {"string": (str,), "boolean": (bool,), "integer": (int,), "number": (int, float)}
_INSTRUCTIONS = (
    "Live tools: call one directly if you know its arguments. "
    "The tool ask takes a question in natural language and answers it with the other tools."
)
MAX_VALIDATED_CHARS = 32_768
APPROVAL_META = "toolchat/approval"
"""The name of the id of an approval in a result's ``_meta``, which hosts do not show to their models."""
LIST_TTL_MS = 300_000
"""How long a host may cache the list of tools, which hardly ever changes while the service runs."""


async def _call_tool(ctx: Context, params: CallToolRequestParams) -> Result:
    """Run a call, after its user was asked if need be; newer hosts ask by themselves and repeat the call."""
    result = await _call_or_ask(ctx, params)
    while result.get("resultType") == "input_required" and not is_modern(ctx):
        result = await _call_or_ask(ctx, await with_decisions(ctx, params, result))
    return {"resultType": "complete", **result}


async def call_tool(ctx: Context, given: Mapping[str, Any]) -> HandlerResult:
    """Call a tool as the SDK's runner does, which validates each request and each result twice."""

    async def run(ctx: Context) -> Result:
        _check_meta(ctx.protocol_version, to_json({"_meta": given["_meta"]} if "_meta" in given else {}))
        params = CallToolRequestParams.model_validate(given, by_name=False)
        ctx.meta = params.meta
        result = await _call_tool(ctx, params)
        if is_modern(ctx):
            return result | {"_meta": {**result.get("_meta", {}), **_STAMP}}
        return {name: value for name, value in result.items() if name != "resultType"}

    return await _validated(ctx, run)


def kept_if_short(function: Callable[[str, bytes], _T]) -> Callable[[str, bytes], _T]:
    """Cache what is made of a protocol version and a client's JSON, unless that is long: it may have megabytes."""
    kept = lru_cache(maxsize=64)(function)
    return lambda version, text: (kept if len(text) <= _MAX_KEPT_BYTES else function)(version, text)


@kept_if_short
def _check_meta(version: str, meta: bytes) -> None:
    """Validate a call's metadata as its version requires; most calls of a client have the same."""
    methods.validate_client_request("tools/call", version, {"name": "", **from_json(meta)})


async def _call_or_ask(ctx: Context, params: CallToolRequestParams) -> Result:
    """Run a call; invalid arguments become a result, so that the host's model can correct them."""
    if ctx.request is None:
        raise TypeError("a transport must say where a request comes from")
    try:
        prepared = await _prepare(ctx, ctx.request, params)
    except ToolExecutionError as error:
        prepared = error_result(error)
    except ValidationFailed as error:
        prepared = error_result(ToolArgumentsError(error.detail))
    return await run_call(ctx, ctx.request, prepared) if isinstance(prepared, Call) else prepared


async def _prepare(ctx: Context, origin: Origin, params: CallToolRequestParams) -> Call | Result:
    fault = f"Unknown tool: {params.name[:64]}"
    try:
        tool = ctx.lifespan_context.tools.tool(params.name)
    except NotConfigured as error:
        raise MCPError(INVALID_PARAMS, f"{fault}: {error.detail}") from None
    except NotFound:
        if params.name == ASK:
            return await prepare_question(ctx, params, origin.context)
        raise MCPError(INVALID_PARAMS, fault) from None
    return await prepare_tool_call(ctx, tool, params, origin.context)


async def _validated(ctx: Context, call_next: CallNext) -> HandlerResult:
    try:
        return await call_next(ctx)
    except ValidationError:
        raise MCPError(INVALID_PARAMS, "Invalid request parameters") from None


# The list is private: it depends on the key, so a shared cache must not serve it to another caller.
SERVER = Server[ServiceState](
    "toolchat",
    title="toolchat",
    version=__version__,
    instructions=_INSTRUCTIONS,
    cache_hints={"tools/list": CacheHint(LIST_TTL_MS), "server/discover": CacheHint(LIST_TTL_MS, "public")},
)
"""Serves every running service: the one that answers a request is the request's ``lifespan_context``."""
SERVER.add_request_handler("tools/list", PaginatedRequestParams, _list_tools)
SERVER.add_request_handler("tools/call", CallToolRequestParams, _call_tool)
_STAMP = {SERVER_INFO_META_KEY: SERVER.server_info_stamp}
SERVER.middleware[:] = [_validated]  # instead of the SDK's, whose spans contain the messages of errors
