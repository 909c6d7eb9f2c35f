"""Tools of an MCP server as tools of this service: names, schemas, approval and results, none of them trusted."""

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pydantic_core import SchemaError, SchemaValidator, core_schema, from_json, to_json

from app.mcp_client.file import ServerEntry
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata
from toolchat.tool_calling.errors import ToolDefinitionError, ToolExecutionError
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.json_schema import resolve
from toolchat.tool_calling.results import DONE, ToolAnswer

if TYPE_CHECKING:
    from mcp_types import CallToolResult, Tool

__all__ = [
    "MCP_RESULT",
    "RemoteCall",
    "RemoteResult",
    "RemoteToolCallback",
    "read_result",
    "remote_tools",
    "sanitize_text",
    "with_prefix",
]

_log = logging.getLogger(__name__)

MAX_NAME_CHARS = 64
"""The limit of OpenAI's function calling, which other providers share."""
MAX_DESCRIPTION_CHARS = 4000
MAX_NOTE_CHARS = 1000
MAX_ERROR_CHARS = 2000
MAX_LABEL_CHARS = 200
MAX_NAMES_LOGGED = 20
MAX_SCHEMA_BYTES = 65_536
MAX_SCHEMA_DEPTH = 32
MAX_EXPANDED_SCHEMAS = 5000
MAX_EXPANSION_DEPTH = 64

MCP_RESULT = "mcp_result"
"""The key of a tool's data under which a result of MCP is: its ``content``, and its ``structuredContent`` if any."""
RemoteResult = str | ToolAnswer[Any]
"""A text for the model; as a :class:`ToolAnswer` if the server has sent more than a text."""
RemoteCall = Callable[[str, Mapping[str, Any], ToolContext], Awaitable[RemoteResult]]
"""Calls a tool by the name that its server uses."""


class RemoteToolCallback(FunctionToolCallback):
    """A tool of an MCP server; its output schema and its results go on to MCP hosts as they came."""


class UnusableSchemaError(Exception):
    """A tool's input schema cannot be offered; the message says why."""


def remote_tools(server: str, entry: ServerEntry, listed: Iterable["Tool"], call: RemoteCall) -> list[ToolCallback]:
    """Turn a server's listing into tool callbacks; tools that cannot be used are logged and left out.

    The entry decides which tools are offered and which require approval. Annotations from the server can only make a
    tool stricter.

    Args:
        server: the server's name, for the log.
        entry: the server's entry in the file.
        listed: the listing.
        call: executes a call.
    """
    listed = tuple(listed)
    _warn_of_unmatched_patterns(server, entry, [tool.name for tool in listed])
    return list(_usable_tools(server, entry, listed, call))


def _usable_tools(
    server: str, entry: ServerEntry, listed: Iterable["Tool"], call: RemoteCall
) -> Iterator[ToolCallback]:
    seen: set[str] = set()
    for tool in listed:
        if not entry.includes(tool.name):
            continue
        name = tool_name(tool.name, entry.prefix)
        try:
            if name in seen or not tool.name:
                raise UnusableSchemaError("the server has another tool of this name")
            seen.add(name)
            yield _callback(name, server, entry, tool, call)
        except (UnusableSchemaError, ToolDefinitionError, RecursionError, ValueError) as error:
            reason = sanitize_text(str(error), 300)
            _log.warning("the tool %s of the MCP server %s cannot be used: %s", name, server, reason)


def _warn_of_unmatched_patterns(server: str, entry: ServerEntry, names: Sequence[str]) -> None:
    for pattern in entry.include:
        if names and not any(fnmatchcase(name, pattern) for name in names):
            has = ", ".join(sanitize_text(name, MAX_NAME_CHARS) for name in names[:MAX_NAMES_LOGGED])
            _log.warning("include: %s matches no tool of the MCP server %s, which has: %s", pattern, server, has)


def _callback(name: str, server: str, entry: ServerEntry, tool: "Tool", call: RemoteCall) -> ToolCallback:
    own_name = tool.name
    description = sanitize_text(tool.description or tool.title or "", MAX_DESCRIPTION_CHARS)

    async def run(context_of_the_call: ToolContext, **arguments: Any) -> RemoteResult:
        return await call(own_name, arguments, context_of_the_call)

    schema = sanitize_schema(tool.input_schema)
    output_schema = visible_schema(tool.output_schema)
    definition = ToolDefinition(name, description or f"The tool {name} of the server {server}", schema, output_schema)
    # Arguments are validated by the expanded schema; models are shown the shorter one with its references.
    validated = replace(definition, input_schema=expand_references(schema))
    callback = RemoteToolCallback.from_function(run, definition=validated, metadata=_metadata(entry, tool))
    return replace(callback, definition=definition)


def _metadata(entry: ServerEntry, tool: "Tool") -> ToolMetadata:
    hints = tool.annotations
    is_read_only = hints is not None and hints.read_only_hint is True
    is_destructive = hints is not None and hints.destructive_hint is True and not is_read_only
    is_idempotent = is_read_only or (hints is not None and hints.idempotent_hint is True)
    if entry.needs_approval(tool.name, is_destructive=is_destructive):
        return ToolMetadata(requires_approval=True, timeout=entry.timeout)
    return ToolMetadata(read_only=is_read_only, retries=int(is_idempotent), timeout=entry.timeout)


def with_prefix(tool: ToolCallback, prefix: str) -> ToolCallback:
    """Rename a tool whose own name is taken by another server."""
    if not isinstance(tool, FunctionToolCallback):
        return tool
    return replace(tool, definition=replace(tool.definition, name=tool_name(tool.definition.name, prefix)))


def tool_name(name: str, prefix: str = "") -> str:
    """Make a name of the characters and the length that every provider accepts; a hash keeps cut names distinct."""
    full = f"{prefix}_{name}" if prefix else name
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", full)
    if len(plain) <= MAX_NAME_CHARS:
        return plain
    return f"{plain[: MAX_NAME_CHARS - 9]}_{sha256(full.encode('utf-8', 'replace')).hexdigest()[:8]}"


# Control characters, and characters that hide or reorder their neighbours, can smuggle instructions past a reader.
# Joiners stay: they are part of words and of emoji.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)


def sanitize_text(text: str, limit: int) -> str:
    """Remove invisible characters from a server's text, and cut it to ``limit`` characters."""
    visible = _INVISIBLE.sub("", text[: 2 * limit]).strip()
    return visible if len(visible) <= limit else f"{visible[: limit - 3]}..."


_NOTES = ("description", "title", "$comment")
_BOOLEAN_SCHEMAS: dict[bool, dict[str, Any]] = {True: {}, False: {"not": {}}}
_DROPPED = ("$schema", "$id", "$anchor", "$dynamicAnchor", "$comment", "examples")


def sanitize_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Bound a tool's input schema and remove what is not needed to call the tool.

    Descriptions in it are treated like those of tools. Regular expressions that need backtracking are dropped, so only
    the server checks them: a hostile one would block the event loop for ever.

    Raises:
        UnusableSchemaError: it is too long or too deep, or does not describe an object.
    """
    if len(to_json(schema)) > MAX_SCHEMA_BYTES:
        raise UnusableSchemaError(f"its schema is longer than {MAX_SCHEMA_BYTES} bytes")
    if schema.get("type", "object") != "object":
        raise UnusableSchemaError("its schema does not describe an object")
    sanitized: dict[str, Any] = _sanitized(schema, 0)
    return {"type": "object", **sanitized}


def visible_schema(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """A tool's output schema as it came, but for invisible characters; empty if there is none, or it is too large.

    Models do not see it, and nothing here is validated by it.
    """
    try:
        sanitize_schema({**(schema or {}), "type": "object"})  # for its limits
    except UnusableSchemaError:
        return {}
    visible: Mapping[str, Any] = _visible(schema or {})
    return visible


def _visible(part: Any) -> Any:
    if isinstance(part, str):
        return _INVISIBLE.sub("", part)
    if isinstance(part, dict):
        return {_INVISIBLE.sub("", name): _visible(each) for name, each in part.items()}
    return [_visible(each) for each in part] if isinstance(part, list) else part


def _sanitized(part: Any, depth: int) -> Any:
    if depth > MAX_SCHEMA_DEPTH:
        raise UnusableSchemaError(f"its schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")
    if isinstance(part, list):
        return [_sanitized(each, depth + 1) for each in part]
    if not isinstance(part, dict):
        return part
    return {key: _sanitized_value(key, value, depth + 1) for key, value in part.items() if _is_needed(key, value)}


def _sanitized_value(key: str, value: Any, depth: int) -> Any:
    if key in _NOTES and isinstance(value, str):
        return sanitize_text(value, MAX_NOTE_CHARS)
    if key == "properties" and isinstance(value, dict):  # not every provider accepts the schemas true and false
        value = {name: _BOOLEAN_SCHEMAS[each] if isinstance(each, bool) else each for name, each in value.items()}
    return _sanitized(value, depth)


def _is_needed(key: str, value: Any) -> bool:
    if isinstance(value, dict):  # the key may be the name of a property, such as "pattern" or "examples"
        return True
    if key == "pattern":
        return isinstance(value, str) and _is_linear(value)
    return key not in _DROPPED and (key not in _NOTES or isinstance(value, str))


def _is_linear(pattern: str) -> bool:
    """Whether pydantic's engine, which matches in linear time, supports a regular expression."""
    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return False
    return True


_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_REFERENCING = ("$ref", "$defs", "definitions")
_ROOT = "#"


def expand_references(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Replace every ``$ref`` by the schema that it names; where a schema contains itself, anything is accepted.

    ``{"properties": {"p": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}`` becomes
    ``{"properties": {"p": {"allOf": [{"type": "integer"}]}}}``.

    ``{"properties": {"kids": {"items": {"$ref": "#"}}}}``, a tree, is expanded once: the items of ``kids`` are objects
    with ``kids``, whose items are not checked any more.

    Raises:
        UnusableSchemaError: a reference has no target, or leads back to itself without a property or item between:
            ``{"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/x"}}}``.
    """
    expanded: dict[str, Any] = _Expansion(schema).expand(schema, frozenset(), (_ROOT,), 0)
    return {"type": "object", **expanded}


class _Expansion:
    """Expands one schema; beyond its limits anything is accepted, as references can multiply without end."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MAX_EXPANDED_SCHEMAS

    def expand(
        self, schema: Any, seen_references: frozenset[str], references_to_this_value: tuple[str, ...], depth: int
    ) -> Any:
        """Expand one schema within the root.

        Args:
            schema: the schema.
            seen_references: the references that have been followed on the way from the root. One that is met again
                marks a recursive schema, which is legal and is cut there.
            references_to_this_value: those of them that describe the same value as ``schema``, since no property or
                item lies between. One that is met again is a circle, which would be followed for ever.
            depth: the number of schemas around it.
        """
        self._left -= 1
        if not isinstance(schema, Mapping) or self._left < 0 or depth > MAX_EXPANSION_DEPTH:
            return {}
        expanded = {
            key: self._expand_value(key, value, seen_references, references_to_this_value, depth + 1)
            for key, value in schema.items()
            if key not in _REFERENCING
        }
        if "$ref" not in schema:
            return expanded
        target = self._expand_target(str(schema["$ref"]), seen_references, references_to_this_value, depth + 1)
        return {**expanded, "allOf": [target, *expanded.get("allOf", ())]}

    def _expand_value(
        self,
        key: str,
        value: Any,
        seen_references: frozenset[str],
        references_to_this_value: tuple[str, ...],
        depth: int,
    ) -> Any:
        if key in _ALTERNATIVES and isinstance(value, list):
            return [self.expand(each, seen_references, references_to_this_value, depth) for each in value]
        if key == "prefixItems" and isinstance(value, list):
            return [self.expand(each, seen_references, (), depth) for each in value]
        if key in ("properties", "patternProperties") and isinstance(value, Mapping):
            return {name: self.expand(each, seen_references, (), depth) for name, each in value.items()}
        if key in ("items", "additionalProperties") and isinstance(value, Mapping):
            return self.expand(value, seen_references, (), depth)
        return value

    def _expand_target(
        self, reference: str, seen_references: frozenset[str], references_to_this_value: tuple[str, ...], depth: int
    ) -> Any:
        if reference in references_to_this_value:
            raise UnusableSchemaError("its references lead in a circle")
        target = self._resolve(reference)
        if reference in seen_references:
            return {}
        same_value = (*references_to_this_value, reference)
        return self.expand(target, seen_references | {reference}, same_value, depth)

    def _resolve(self, reference: str) -> Any:
        if not reference.startswith(_ROOT):
            raise UnusableSchemaError("it refers to another schema")
        try:
            return resolve(reference, self._root)
        except LookupError as error:
            raise UnusableSchemaError("a reference in its schema has no target") from error


def read_result(result: "CallToolResult") -> RemoteResult:
    """Turn a result into text: its texts, its structured content unless the texts say the same, and notes on the rest.

    What is more than text goes on to the client as it came. The length is not limited here: the tool calling manager
    shortens every tool's result for the model.

    Raises:
        ToolExecutionError: the tool reports a failure; the message is the tool's own.
    """
    texts = [text for block in result.content for text in _block_texts(block)]
    if result.is_error:
        message = sanitize_text("\n".join(texts), MAX_ERROR_CHARS)
        raise ToolExecutionError(message or "the tool failed without a message", kind="failed")
    structured = result.structured_content
    content = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
    if structured is not None and not _says_the_same(texts, content, structured):
        texts.append(to_json(structured, inf_nan_mode="strings").decode())
    text = "\n".join(texts) or DONE
    if structured is None and all(block.type == "text" for block in result.content):
        return text
    as_it_came = {"content": content} | ({} if structured is None else {"structuredContent": structured})
    return ToolAnswer(text, {MCP_RESULT: as_it_came})


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
    """Whether a text, all texts together, or the blocks are the structured content.

    Structured content had to be an object at first, so servers wrap other results: ``{"result": 5}``,
    ``{"content": "the file's text"}``, ``{"entities": [...]}``. The one value is then what the texts say, a list often
    as one text for each item.
    """
    texts = [each.strip() for each in texts]
    whole = "\n".join(texts)
    said = [content, whole, texts, *texts]
    said += [_parsed(whole), [_parsed(each) for each in texts], *map(_parsed, texts)]
    forms = [structured, *(structured.values() if isinstance(structured, dict) and len(structured) == 1 else ())]
    return bool(texts) and any((each.strip() if isinstance(each, str) else each) in said for each in forms)


def _parsed(text: str) -> Any:
    """A text's JSON value, or else the text."""
    try:
        return from_json(text)
    except ValueError:
        return text
