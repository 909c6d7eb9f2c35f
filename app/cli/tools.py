"""``toolchat tools run``: one tool, by hand."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json, to_json

from app.cli.dialogue import ANSWERED, FAILED
from app.cli.serve import OpenedService, opened_service
from app.cli.terminal import complain, say, status, tell
from app.settings.typos import suggest
from toolchat.chat.manual_execution import run_tool_call
from toolchat.errors import ConfigurationError, NotConfigured, NotFound, ToolchatError, ValidationFailed
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.events import ToolCallEvent, ToolCallFinished, ToolCallProgress

__all__ = ["list_tools", "run_tool"]


_TYPES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


def run_tool(name: str, given: Sequence[str], *, as_json: bool, demo: bool) -> int:
    """Run one tool and print its result; its progress goes to standard error.

    Args:
        name: the tool's name.
        given: ``key=value``, ``key:=json``, or one JSON object.
        as_json: print the call with all that is known of it instead.
        demo: let a sandbox play the tools' upstreams.

    Returns:
        0, or 1 where the tool failed.

    Raises:
        ConfigurationError: the service cannot start as it is set up, there is no such tool, or its arguments do not
            fit.
    """
    with opened_service(demo=demo) as service:
        tool = _tool(service, name)
        arguments = _arguments(given, tool.definition.input_schema)
        context = {CONVERSATION_ID: secrets.token_hex(16)}
        try:
            call = service.run(lambda: run_tool_call(service.state.chat, tool, arguments, context, _show))
        except ValidationFailed as error:
            raise ConfigurationError(f"{name}: {error.detail}") from None
        except ToolchatError as error:
            complain(f"{error.code}: {error.detail}")
            return FAILED
    say(to_json(_record(call), indent=2).decode() if as_json else call.result)
    return ANSWERED if call.outcome == "ok" else FAILED


async def _show(event: ToolCallEvent) -> None:
    if isinstance(event, ToolCallProgress):
        status(str(event))
    elif isinstance(event, ToolCallFinished):
        status("")
        cached = " from the cache" if event.cached else ""
        tell(f"- {event.call.name}({event.call.arguments}) -> {event.outcome}{cached} in {event.duration_ms:g} ms")


def _record(call: ToolCallFinished) -> dict[str, Any]:
    record = call.to_dict()
    del record["round"]  # there is none
    return record


def _tool(service: OpenedService, name: str) -> ToolCallback:
    try:
        return service.registry.tool(name)
    except (NotConfigured, NotFound) as error:
        near = suggest(name, service.registry.resolver.names()) if isinstance(error, NotFound) else None
        raise ConfigurationError(error.detail + (f"; did you mean {near}?" if near else "")) from None


def _arguments(given: Sequence[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    if len(given) == 1 and given[0].lstrip().startswith("{"):
        whole = _json(given[0], "the arguments")
        return dict(whole) if isinstance(whole, dict) else {}
    arguments: dict[str, Any] = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key.rstrip(":"):
            raise ConfigurationError(
                f"{each}: an argument is key=value, key:=JSON, or one JSON object with all of them"
            )
        name = key.removesuffix(":")
        if name in arguments:
            raise ConfigurationError(f"{name}: is given twice")
        wanted = schema.get("properties", {}).get(name, {})
        arguments[name] = _json(value, name) if key.endswith(":") else _read(value, wanted, schema)
    return arguments


def _json(text: str, name: str) -> Any:
    try:
        return from_json(text)
    except ValueError as error:
        raise ConfigurationError(f"{name}: is no JSON: {error}") from None


def _read(text: str, wanted: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    """A value as its schema asks for it; what does not fit stays a text, and is refused with the tool's own words."""
    types = _types(wanted, schema)
    if "string" in types:
        return text
    try:
        value = from_json(text)
    except ValueError:
        return text
    is_meant = not types or _TYPES[type(value)] in types or (isinstance(value, int) and "number" in types)
    return value if is_meant else text


def _types(wanted: Mapping[str, Any], schema: Mapping[str, Any]) -> set[str]:
    """The types that a part of a schema allows; none where it does not say."""
    if "$ref" in wanted:
        return _types(schema.get("$defs", {}).get(wanted["$ref"].rsplit("/", 1)[-1], {}), schema)
    named = wanted.get("type", [])
    types = {named} if isinstance(named, str) else set(named)
    return types.union(*(_types(each, schema) for each in (*wanted.get("anyOf", ()), *wanted.get("oneOf", ()))))


def list_tools(*, demo: bool) -> int:
    """Print every tool that is registered, and why others are not."""
    with opened_service(demo=demo) as service:
        for module in service.registry.describe():
            state = "registered" if module["registered"] else module["reason"]
            say(f"{module['title']} ({module['path']}): {state}")
            for tool in module["tools"]:
                say(f"  {tool['name']} ({tool['kind']}): {tool['description']}")
    return ANSWERED
