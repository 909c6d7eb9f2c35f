"""Tools of an MCP server as tools of this service: names, schemas, approval and results, none of them trusted."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from mcp_types import CallToolResult, Tool, ToolAnnotations
from pydantic_core import SchemaError, SchemaValidator as PydanticValidator, core_schema, from_json, to_json

from toolchat.messages import MAX_IMAGES, is_image
from toolchat.service.hidden_characters import HIDDEN
from toolchat.service.mcp_client.file import ServerEntry
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import MAX_NAME_CHARS, ToolDefinition, ToolMetadata, provider_name
from toolchat.tool_calling.errors import ToolDefinitionError, ToolExecutionError
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.input_validation import Binding, ToolInput
from toolchat.tool_calling.json_schema import Schema, map_subschemas, normalized
from toolchat.tool_calling.results import DONE, ToolAnswer, convert_result, json_or_text

_log = logging.getLogger(__name__)

MAX_DESCRIPTION_CHARS, MAX_NOTE_CHARS = 4000, 1000
MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH = 65_536, 32
MAX_NAMES_LOGGED = 20
MAX_RESULT_ERROR_CHARS = 2000
MAX_LABEL_CHARS = 200

MCP_RESULT = "mcp_result"
"""The key of a tool's data under which a result of MCP is: its ``content``, and its ``structuredContent`` if any."""
RemoteResult = str | ToolAnswer[Any]
"""A text for the model; as a :class:`ToolAnswer` if the server has sent more than a text."""
RemoteCall = Callable[[str, Mapping[str, Any], ToolContext], Awaitable[RemoteResult]]
"""Calls a tool by the name that its server uses."""


class RemoteToolCallback(FunctionToolCallback):
    """A tool of an MCP server; its output schema and its results go on to MCP hosts as they came."""


def remote_tools(server: str, entry: ServerEntry, listed: Sequence[Tool], call: RemoteCall) -> list[ToolCallback]:
    """Turn a server's listing into tool callbacks; tools that cannot be used are logged and left out."""
    _warn_of_unmatched_patterns(server, entry, [tool.name for tool in listed])
    usable: dict[str, ToolCallback] = {}
    for tool in [each for each in listed if entry.includes(each.name)]:
        name = provider_name(tool.name, entry.prefix)
        try:
            if name in usable or not tool.name:
                raise ToolDefinitionError("the server has another tool of this name")
            usable[name] = _callback(name, server, entry, tool, call)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one tool, the others stay
            reason = sanitize_text(str(error), 300)
            _log.warning("the tool %s of the MCP server %s cannot be used: %s", name, server, reason)
    return list(usable.values())


def _warn_of_unmatched_patterns(server: str, entry: ServerEntry, names: Sequence[str]) -> None:
    for pattern in entry.include:
        if names and not any(fnmatchcase(name, pattern) for name in names):
            has = ", ".join(sanitize_text(name, MAX_NAME_CHARS) for name in names[:MAX_NAMES_LOGGED])
            _log.warning("include: %s matches no tool of the MCP server %s, which has: %s", pattern, server, has)


def _callback(name: str, server: str, entry: ServerEntry, tool: Tool, call: RemoteCall) -> ToolCallback:
    if tool.execution and tool.execution.task_support == "required":
        raise ToolDefinitionError("it runs as a task only, which this service does not support")
    own_name = tool.name
    description = sanitize_text(tool.description or tool.title or "", MAX_DESCRIPTION_CHARS)

    async def run(context_of_the_call: ToolContext, **arguments: Any) -> RemoteResult:
        return await call(own_name, arguments, context_of_the_call)

    from toolchat.tool_calling.given_schemas import SchemaValidator, upgraded  # imported late: takes 0.1 s

    schema = upgraded(map_subschemas(_within_limits(tool.input_schema), _sanitize_part))
    validate = SchemaValidator(map_subschemas(schema, _without_patterns)).validate_json
    definition = ToolDefinition(
        name,
        description or f"The tool {name} of the server {server}",
        normalized(schema),
        _output_schema(tool.output_schema),
    )
    tool_input = ToolInput(schema, "context_of_the_call", validate, Binding((), frozenset()), schema)
    return RemoteToolCallback(definition, _metadata(entry, tool), run, tool_input, convert_result)


def _within_limits(schema: Schema) -> Schema:
    if len(to_json(schema)) > MAX_SCHEMA_BYTES or _depth(schema) > MAX_SCHEMA_DEPTH:
        limits = f"longer than {MAX_SCHEMA_BYTES} bytes or nested deeper than {MAX_SCHEMA_DEPTH} levels"
        raise ToolDefinitionError(f"its schema is {limits}")
    if schema.get("type", "object") != "object":
        raise ToolDefinitionError("its schema does not describe an object")
    return schema


def _depth(part: Any) -> int:
    """The number of objects and lists around the innermost value."""
    parts = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return max((1 + _depth(each) for each in parts), default=0)


def _sanitize_part(part: dict[str, Any]) -> dict[str, Any]:
    part.pop("examples", None)
    for note in ("description", "title"):
        if isinstance(part.get(note), str):
            part[note] = sanitize_text(part[note], MAX_NOTE_CHARS)
    several = part.get("patternProperties")
    patterns = [part.get("pattern", ""), *(several if isinstance(several, dict) else ())]
    return part if all(map(_is_linear, patterns)) else _without_patterns(part)


def _is_linear(pattern: Any) -> bool:
    """Whether an engine that matches in linear time supports a regular expression; providers refuse others too."""
    try:
        PydanticValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return False
    return True


def _without_patterns(part: dict[str, Any]) -> dict[str, Any]:
    """Leave patterns to the server: a hostile one would block the event loop for ever."""
    # Without the patterns nobody knows which names are additional.
    unknown = ("patternProperties", "additionalProperties") if "patternProperties" in part else ()
    return {keyword: value for keyword, value in part.items() if keyword not in ("pattern", *unknown)}


def _output_schema(schema: Schema | None) -> Schema:
    """A tool's output schema for MCP hosts; models do not see it, and nothing here is validated by it."""
    if not schema or len(to_json(schema)) > MAX_SCHEMA_BYTES:
        return {}
    visible: Schema = from_json(HIDDEN.sub("", to_json(schema).decode()))
    return visible


def _metadata(entry: ServerEntry, tool: Tool) -> ToolMetadata:
    """The entry decides; annotations from the server can only make a tool stricter."""
    hints = tool.annotations or ToolAnnotations()
    is_read_only = bool(hints.read_only_hint)
    if entry.needs_approval(tool.name, is_destructive=bool(hints.destructive_hint) and not is_read_only):
        return ToolMetadata(requires_approval=True, approver=entry.approver, timeout=entry.timeout)
    is_repeatable = is_read_only or bool(hints.idempotent_hint)
    return ToolMetadata(read_only=is_read_only, retries=int(is_repeatable), timeout=entry.timeout)


def with_prefix(tool: ToolCallback, prefix: str) -> ToolCallback:
    """Rename a tool whose own name is taken by another server."""
    if not isinstance(tool, FunctionToolCallback):
        return tool
    return replace(tool, definition=replace(tool.definition, name=provider_name(tool.definition.name, prefix)))


def sanitize_text(text: str, limit: int) -> str:
    """Remove invisible characters from a server's text, and cut it to ``limit`` characters."""
    visible = HIDDEN.sub("", text[: 2 * limit]).strip()
    return visible if len(visible) <= limit else f"{visible[: limit - 3]}..."


def read_result(result: CallToolResult) -> RemoteResult:
    """Turn a result into text for the model; what is more than text goes on to the client as it came."""
    texts = [text for block in result.content for text in _block_texts(block)]
    if result.is_error:
        message = sanitize_text("\n".join(texts), MAX_RESULT_ERROR_CHARS)
        raise ToolExecutionError(message or "the tool failed without a message", kind="failed")
    structured = result.structured_content
    content = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
    if structured is not None and not _says_the_same(texts, content, structured):
        texts.append(to_json(structured, inf_nan_mode="strings").decode())
    text = "\n".join(texts) or DONE
    if structured is None and all(block.type == "text" for block in result.content):
        return text
    as_it_came = {"content": content} | ({} if structured is None else {"structuredContent": structured})
    urls = (f"data:{block.mime_type};base64,{block.data}" for block in result.content if block.type == "image")
    return ToolAnswer(text, {MCP_RESULT: as_it_came}, tuple(filter(is_image, urls))[:MAX_IMAGES])


def _block_texts(block: Any) -> Iterator[str]:
    if block.type == "text":
        yield block.text
    elif block.type in ("image", "audio"):
        yield _bytes_note(block.type, block.mime_type, block.data)
    elif block.type == "resource_link":
        yield f"[resource {_label(block.name)}: {_label(str(block.uri))}]"
    elif block.type == "resource":
        resource = block.resource
        text = getattr(resource, "text", None)
        yield text if text is not None else _bytes_note("resource", resource.mime_type, resource.blob)


def _bytes_note(kind: str, media_type: str | None, data: str) -> str:
    """A note in place of binary content, for models that read text only."""
    return f"[{kind}: {_label(media_type or 'unknown type')}, {len(data) * 3 // 4} bytes, not shown]"


def _label(text: str) -> str:
    return sanitize_text(text, MAX_LABEL_CHARS)


def _says_the_same(texts: Sequence[str], content: Sequence[Any], structured: Any) -> bool:
    """Whether a text, all texts together, or the blocks are the structured content, or the one value in it."""
    texts = [each.strip() for each in texts]
    whole = "\n".join(texts)
    said = [content, whole, texts, *texts]
    said += [json_or_text(whole), [json_or_text(each) for each in texts], *map(json_or_text, texts)]
    # Structured content had to be an object at first, so servers wrap a text, a number or a list: {"result": 5}.
    forms = [structured, *(structured.values() if isinstance(structured, dict) and len(structured) == 1 else ())]
    return bool(texts) and any((each.strip() if isinstance(each, str) else each) in said for each in forms)
