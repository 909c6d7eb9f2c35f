"""The commands ``tools list`` and ``tools run``, which runs one tool without a model."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json, to_json

from toolchat.chat.manual_execution import manual_request, run_tool_call
from toolchat.errors import ConfigurationError, NotConfigured, NotFound, ToolchatError, ValidationFailed
from toolchat.service.api.direct_calls import DirectCall
from toolchat.service.cli import Program
from toolchat.service.cli.opened_service import ANSWERED, FAILED, WAITS, OpenedService, opened_service
from toolchat.service.cli.terminal import print_error, print_note, print_result
from toolchat.service.settings.typos import suggest
from toolchat.tool_calling.argument_repair import repair_arguments
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.events import ToolCallEvent, ToolCallFinished, ToolCallProgress


def list_tools(program: Program) -> int:
    """Print every tool module with its tools, or the reason why it is not registered."""
    with opened_service(program) as service:
        for entry in service.state.tools.entries.values():
            print_result(f"{entry.module.title} ({entry.module.path}): {entry.fault or 'registered'}")
            for kind, tools in (("function", entry.functions), ("method", entry.methods)):
                for tool in tools:
                    print_result(f"  {tool.definition.name} ({kind}): {tool.definition.description}")
    return ANSWERED


def run_tool(program: Program, *, name: str, arguments: Sequence[str], tenant: str, json: bool) -> int:
    """Run one tool and print its result; its progress goes to standard error."""
    with opened_service(program, tenant=tenant) as service:
        tool = _find_tool(service, name)
        # A typed value is a text: the repair turns it into the number, list or object that the schema asks for.
        repaired = repair_arguments(_parse_arguments(arguments), tool.definition.input_schema)

        async def run() -> ToolCallFinished | str:
            context = {CONVERSATION_ID: secrets.token_hex(16)}
            chat = service.state.chat
            if role := (await DirectCall.of(manual_request(chat, tool, repaired, context))).role:
                return role
            return await run_tool_call(chat, tool, repaired, context, _show_progress)

        try:
            call = service.run(run)
        except ValidationFailed as error:
            raise ConfigurationError(f"{name}: {error.detail}") from None
        except ToolchatError as error:
            print_error(error.for_operators)
            return FAILED
    if isinstance(call, str):
        print_error(f"{name}: a person with the role {call} must decide about this call; the one who asked cannot")
        return WAITS
    document = {key: value for key, value in call.to_dict().items() if key != "round"}  # rounds belong to an answer
    print_result(to_json(document, indent=2).decode() if json else call.result)
    return ANSWERED if call.outcome == "ok" else FAILED


async def _show_progress(event: ToolCallEvent) -> None:
    if isinstance(event, ToolCallProgress):
        print_note(str(event))
    elif isinstance(event, ToolCallFinished):
        outcome = f"{event.outcome}{' from the cache' if event.cached else ''}"
        print_note(f"- {event.call.name}({event.call.arguments}) -> {outcome} in {event.duration_ms:g} ms")


def _find_tool(service: OpenedService, name: str) -> ToolCallback:
    try:
        return service.state.tools.tool(name)
    except (NotConfigured, NotFound) as error:
        similar = suggest(name, service.state.tools.names()) if isinstance(error, NotFound) else None
        raise ConfigurationError(error.detail + (f"; did you mean {similar}?" if similar else "")) from None


def _parse_arguments(typed: Sequence[str]) -> Mapping[str, Any]:
    if len(typed) == 1 and typed[0].lstrip().startswith("{"):
        return dict(_parse_json(typed[0], "the arguments"))
    arguments: dict[str, Any] = {}
    for each in typed:
        key, equals, value = each.partition("=")
        name = key.removesuffix(":")
        if not equals or not name:
            raise ConfigurationError(f"{each}: arguments are key=value, key:=JSON, or one JSON object with all of them")
        arguments[name] = _parse_json(value, name) if key.endswith(":") else value
    return arguments


def _parse_json(text: str, name: str) -> Any:
    try:
        return from_json(text)
    except ValueError as error:
        raise ConfigurationError(f"{name}: is not valid JSON: {error}") from None
