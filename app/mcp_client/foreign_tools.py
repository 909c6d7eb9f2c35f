"""The tools of another server as tools of this service."""

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

if TYPE_CHECKING:
    from mcp_types import CallToolResult, Tool

__all__ = [
    "RemoteCall",
    "UnusableSchemaError",
    "checked_schema",
    "remote_tools",
    "result_text",
    "sanitize_text",
    "tool_name",
    "usable_schema",
    "with_prefix",
]


_MAX_SCHEMA_BYTES = 65_536
_DEEPEST = 32
_LONGEST_NOTE = 1000
_LONGEST_NAME = 64
"""What OpenAI's function calling takes, and others after it."""

# Control characters, and those that hide or turn round what stands beside them; joiners are part of words and emoji.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_NOTES = ("description", "title", "$comment")
_IN_WORDS: dict[bool, dict[str, Any]] = {True: {}, False: {"not": {}}}
_LEFT_OUT = ("$schema", "$id", "$anchor", "$dynamicAnchor", "$comment", "examples")


class UnusableSchemaError(Exception):
    """A tool's schema is too large, too deep or none of an object."""


def sanitize_text(text: str, limit: int) -> str:
    """A foreign text without what cannot be seen, cut to a number of characters."""
    seen = _UNSEEN.sub("", text[: 2 * limit]).strip()
    return seen if len(seen) <= limit else f"{seen[: limit - 3]}..."


def tool_name(name: str, prefix: str = "") -> str:
    """A tool's name in the characters and the length that every provider takes; another one for every other name."""
    whole = f"{prefix}_{name}" if prefix else name
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", whole)
    if len(plain) <= _LONGEST_NAME:
        return plain
    return f"{plain[: _LONGEST_NAME - 9]}_{sha256(whole.encode('utf-8', 'replace')).hexdigest()[:8]}"


def usable_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's input schema as it is shown and checked by.

    Notes in it are bounded like descriptions. Patterns that need backtracking are left to the server: one that it has
    written to that end would keep the event loop busy for ever.

    Raises:
        UnusableSchemaError: it cannot be used; the message says why.
    """
    if len(to_json(schema)) > _MAX_SCHEMA_BYTES:
        raise UnusableSchemaError(f"its schema is longer than {_MAX_SCHEMA_BYTES} bytes")
    if schema.get("type", "object") != "object":
        raise UnusableSchemaError("its schema is not one of an object")
    usable: dict[str, Any] = _usable(schema, 0)
    return {"type": "object", **usable}


def _usable(part: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise UnusableSchemaError(f"its schema is nested deeper than {_DEEPEST}")
    if isinstance(part, list):
        return [_usable(each, depth + 1) for each in part]
    if not isinstance(part, dict):
        return part
    return {key: _usable_part(key, value, depth + 1) for key, value in part.items() if _is_kept(key, value)}


def _usable_part(key: str, value: Any, depth: int) -> Any:
    if key in _NOTES and isinstance(value, str):
        return sanitize_text(value, _LONGEST_NOTE)
    if key == "properties" and isinstance(value, dict):  # true and false are schemas that few people expect
        value = {name: _IN_WORDS[each] if isinstance(each, bool) else each for name, each in value.items()}
    return _usable(value, depth)


def _is_kept(key: str, value: Any) -> bool:
    if isinstance(value, dict):  # a property may have any name; then a schema stands there
        return True
    if key == "pattern":
        return isinstance(value, str) and _is_linear(value)
    return key not in _LEFT_OUT and (key not in _NOTES or isinstance(value, str))


def _is_linear(pattern: str) -> bool:
    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return False
    return True


_MOST_PARTS = 5000
_DEEPEST_of_checked_schema = 64
_LISTS = ("anyOf", "oneOf", "allOf")
_ELSEWHERE = ("$ref", "$defs", "definitions")
_ROOT = "#"


def checked_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema without references.

    Raises:
        UnusableSchemaError: a reference leads nowhere, or in a circle on which nothing is looked at.
    """
    checked: dict[str, Any] = _Expansion(schema).of(schema, frozenset(), (_ROOT,), 0)
    return {"type": "object", **checked}


class _Expansion:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _MOST_PARTS

    def of(self, part: Any, above: frozenset[str], here: tuple[str, ...], depth: int) -> Any:
        """One part of the schema.

        Args:
            part: a schema.
            above: the references that have led to it.
            here: those of them that lead to the very same value.
            depth: how far down it is.
        """
        self._left -= 1
        if not isinstance(part, Mapping) or self._left < 0 or depth > _DEEPEST_of_checked_schema:
            return {}
        kept = {key: self._kept(key, value, above, here, depth + 1) for key, value in part.items() if _stays(key)}
        if "$ref" not in part:
            return kept
        target = self._target(str(part["$ref"]), above, here, depth + 1)
        return {**kept, "allOf": [target, *kept.get("allOf", ())]}

    def _kept(self, key: str, value: Any, above: frozenset[str], here: tuple[str, ...], depth: int) -> Any:
        if key in _LISTS and isinstance(value, list):
            return [self.of(each, above, here, depth) for each in value]
        if key == "prefixItems" and isinstance(value, list):
            return [self.of(each, above, (), depth) for each in value]
        if key == "properties" and isinstance(value, Mapping):
            return {name: self.of(each, above, (), depth) for name, each in value.items()}
        if key in ("items", "additionalProperties") and isinstance(value, Mapping):
            return self.of(value, above, (), depth)
        return value

    def _target(self, reference: str, above: frozenset[str], here: tuple[str, ...], depth: int) -> Any:
        if reference in here:
            raise UnusableSchemaError("its references lead in a circle")
        target = self._resolved(reference)
        return {} if reference in above else self.of(target, above | {reference}, (*here, reference), depth)

    def _resolved(self, reference: str) -> Any:
        target: Any = self._root
        if not reference.startswith(_ROOT):
            raise UnusableSchemaError("a reference leads out of its schema")
        for step in reference.removeprefix(_ROOT).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or name not in target:
                raise UnusableSchemaError("a reference in its schema leads nowhere")
            target = target[name]
        return target


def _stays(key: str) -> bool:
    return key not in _ELSEWHERE


_log = logging.getLogger(__name__)

_LONGEST_DESCRIPTION = 4000
_MOST_NAMED = 20

RemoteCall = Callable[[str, Mapping[str, Any], ToolContext], Awaitable[str]]
"""Calls a tool by the name that its server gives it."""


def remote_tools(server: str, entry: ServerEntry, listed: Iterable["Tool"], call: RemoteCall) -> list[ToolCallback]:
    """Make tools of what a server lists; what cannot be used is left out, and the log says why.

    The file decides which of them are taken and which wait for consent. What the server says of a tool itself may make
    it stricter, never laxer.
    """
    return list(_usable_tools(server, entry, listed, call))


def _usable_tools(
    server: str, entry: ServerEntry, listed: Iterable["Tool"], call: RemoteCall
) -> Iterator[ToolCallback]:
    listed, seen = tuple(listed), set[str]()
    _warn_of_idle_patterns(server, entry, [tool.name for tool in listed])
    for tool in listed:
        name = tool_name(tool.name, entry.prefix)
        if not entry.takes(tool.name):
            continue
        try:
            if name in seen or not tool.name:
                raise UnusableSchemaError("its server has another one of this name")
            seen.add(name)
            yield _callback(name, server, entry, tool, call)
        except (UnusableSchemaError, ToolDefinitionError, RecursionError, ValueError) as error:
            reason = sanitize_text(str(error), 300)
            _log.warning("the tool %s of the MCP server %s cannot be used: %s", name, server, reason)


def _warn_of_idle_patterns(server: str, entry: ServerEntry, names: Sequence[str]) -> None:
    for pattern in entry.include:
        if names and not any(fnmatchcase(name, pattern) for name in names):
            has = ", ".join(sanitize_text(name, 64) for name in names[:_MOST_NAMED])
            _log.warning("include: %s matches no tool of the MCP server %s, which has: %s", pattern, server, has)


def _callback(name: str, server: str, entry: ServerEntry, tool: "Tool", call: RemoteCall) -> ToolCallback:
    own_name = tool.name
    told = sanitize_text(tool.description or tool.title or "", _LONGEST_DESCRIPTION)
    described = told or f"The tool {name} of the server {server}"

    async def run(context_of_the_call: ToolContext, **arguments: Any) -> str:
        return await call(own_name, arguments, context_of_the_call)

    definition = ToolDefinition(name, described, usable_schema(tool.input_schema))
    checked = replace(definition, input_schema=checked_schema(definition.input_schema))
    callback = FunctionToolCallback.from_function(run, definition=checked, metadata=_metadata(entry, tool))
    return replace(callback, definition=definition)  # what a model is shown


def _metadata(entry: ServerEntry, tool: "Tool") -> ToolMetadata:
    hints = tool.annotations
    reads = hints is not None and hints.read_only_hint is True
    destroys = hints is not None and hints.destructive_hint is True and not reads
    repeatable = reads or (hints is not None and hints.idempotent_hint is True)
    if entry.needs_approval(tool.name, destructive=destroys):
        return ToolMetadata(requires_approval=True, timeout=entry.timeout)
    return ToolMetadata(read_only=reads, retries=int(repeatable), timeout=entry.timeout)


def with_prefix(tool: ToolCallback, prefix: str) -> ToolCallback:
    """The same tool under the name that it has where its own is taken."""
    if not isinstance(tool, FunctionToolCallback):
        return tool
    return replace(tool, definition=replace(tool.definition, name=tool_name(tool.definition.name, prefix)))


_LONGEST_ERROR = 2000
_LONGEST_LABEL = 200


def result_text(result: "CallToolResult") -> str:
    """The texts of a result, its structured content unless a text says the same, and a word for what is no text.

    Whatever is too long is shortened by the manager, as every tool's result is.

    Raises:
        ToolExecutionError: the tool says that it failed; the message is its own.
    """
    texts = [told for block in result.content for told in _told(block)]
    if result.is_error:
        told = sanitize_text("\n".join(texts), _LONGEST_ERROR)
        raise ToolExecutionError(told or "the tool failed and did not say why", kind="failed")
    structured = result.structured_content
    if structured is not None and not any(_says(text, structured) for text in texts):
        texts.append(to_json(structured, inf_nan_mode="strings").decode())
    return "\n".join(texts) or "Done"


def _told(block: Any) -> Iterator[str]:
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
    """What a model that reads text can make of bytes."""
    return f"[{kind}: {_label(media_type or 'unknown type')}, {len(data) * 3 // 4} bytes, not shown]"


def _label(text: str) -> str:
    return sanitize_text(text, _LONGEST_LABEL)


def _says(text: str, structured: Any) -> bool:
    """Whether a text is the structured content; servers whose tools return no object put it under ``result``."""
    same = [structured]
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        same.append(structured["result"])
    if text in same:
        return True
    try:
        return from_json(text) in same
    except ValueError:
        return False
