"""The commands that answer on the terminal: ``ask`` and ``tools``."""

import asyncio
import secrets
import sys
from collections.abc import Sequence

from pydantic_core import to_json

from app.api.answering.documents import answer_document
from app.api.questions import MAX_QUERY_CHARS
from app.chat.client import PromptSpec
from app.chat.request import ChatEvent
from app.chat.tool_calling_advisor import APPROVAL_REQUIRED
from app.chat_models.base import ChatResponse, TextDelta
from app.errors import ConfigurationError, ToolchatError, ValidationFailed
from app.main import open_service, read_configuration
from app.tool_calling.context import CONVERSATION_ID
from app.tool_calling.events import ToolCallFinished, ToolCallStarted

__all__ = ["ask", "list_tools"]


def ask(query: str, *, tools: Sequence[str] | None, as_json: bool) -> int:
    """Ask one question; print the answer as it comes, then the tool calls.

    Args:
        query: the question.
        tools: names of the function tools to offer; ``None`` offers all.
        as_json: print the answer's JSON document instead.

    Returns:
        0, or 1 when the question could not be answered, or its answer waits for an approval that cannot be given here.

    Raises:
        ConfigurationError: the service cannot start as it is set up, or there is no such tool.
    """
    if not query.strip() or len(query) > MAX_QUERY_CHARS:
        _complain(f"the question must have 1 to {MAX_QUERY_CHARS} characters")
        return 1
    return asyncio.run(_ask(query, tools, as_json))


def list_tools() -> int:
    """Print every tool that is registered, and why others are not."""
    return asyncio.run(_list_tools())


async def _ask(query: str, names: Sequence[str] | None, as_json: bool) -> int:
    async with open_service(read_configuration()) as (state, registry):
        try:
            offered, advisors = registry.for_conversation(names)
            prompt = state.chat.prompt(query).tools(*offered).advisors(*advisors)
        except ValidationFailed as error:
            raise ConfigurationError(f"--tool: {error.detail.removeprefix('tools: ')}") from None
        prompt = prompt.tool_context({CONVERSATION_ID: secrets.token_hex(16)})
        try:
            if as_json:
                response = await prompt.call().response()
                _print(to_json(answer_document(response, state.chat.model.provider), indent=2).decode())
            else:
                response = await _print_stream(prompt)
        except ToolchatError as error:
            _complain(f"{error.code}: {error.detail}")
            return 1
    return _waiting(response)


async def _print_stream(prompt: PromptSpec) -> ChatResponse:
    in_line = False

    async def printed(event: ChatEvent) -> None:
        nonlocal in_line
        if isinstance(event, TextDelta):
            in_line = True
            print(event.text, end="", flush=True)  # noqa: T201
        elif isinstance(event, ToolCallStarted) and in_line:
            in_line = False
            _print("")

    response = await prompt.stream().response(printed)
    cut_off = " [cut off by the model's length limit]" if response.finish_reason == "length" else ""
    if in_line or cut_off:
        _print(cut_off)
    for execution in response.executions:
        _print(_described(execution))
    return response


def _waiting(response: ChatResponse) -> int:
    if response.finish_reason != APPROVAL_REQUIRED:
        return 0
    for call in response.message.tool_calls:
        _complain(f"{call.name}({call.arguments}) waits for approval, which cannot be given on the terminal")
    return 1


async def _list_tools() -> int:
    async with open_service(read_configuration()) as (_, registry):
        for module in registry.describe():
            state = "registered" if module["registered"] else module["reason"]
            _print(f"{module['title']} ({module['path']}): {state}")
            for tool in module["tools"]:
                _print(f"  {tool['name']} ({tool['kind']}): {tool['description']}")
    return 0


def _described(execution: ToolCallFinished) -> str:
    call = execution.call
    return f"- {call.name}({call.arguments}) -> {execution.outcome} in {execution.duration_ms:g} ms: {execution.result}"


def _complain(line: str) -> None:
    print(f"toolchat: {line}", file=sys.stderr)  # noqa: T201


def _print(line: str) -> None:
    print(line)  # noqa: T201
