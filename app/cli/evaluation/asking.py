"""Asking the questions, of the model and with the tools that the service is set up with."""

import asyncio
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.cli.evaluation.questions import Entry
from app.cli.evaluation.scores import Answer, Call, Question, Run, judged
from app.cli.evaluation.tool_resolution import Naming, NotRegistered
from app.cli.opened_service import OpenedService
from toolchat.chat.client import PromptSpec
from toolchat.errors import ConfigurationError, ToolchatError
from toolchat.messages import AssistantMessage, UserMessage
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import CONVERSATION_ID, ToolContext
from toolchat.tool_calling.events import parse_arguments

__all__ = ["Asking"]


class Asking:
    """The entries of a file that can be asked here.

    Args:
        service: with its model and its tools.
        entries: what the file has.
        file: where they are from, for faults.

    Raises:
        ConfigurationError: a call is written with too many or too few values.
    """

    def __init__(self, service: OpenedService, entries: Sequence[Entry], file: Path) -> None:
        self._service = service
        self._naming = Naming(service.registry)
        self.questions: list[Question] = []
        self.skipped: list[str] = []
        for number, entry in enumerate(entries, 1):
            try:
                self.questions.append(self._question(entry))
            except NotRegistered:
                self.skipped.append(entry.ask)
            except ValueError as error:
                raise ConfigurationError(f"{file}: entry {number}: {error}") from None

    def _question(self, entry: Entry) -> Question:
        expected = [self._naming.call(name, given) for each in entry.calls for name, given in each.items()]
        results = {self._naming.tool(name).definition.name: result for name, result in entry.results.items()}
        return Question(entry, self._naming.offered(entry.tools), expected, results)

    async def ask(self, question: Question) -> Run:
        """Ask once, in a conversation of its own."""
        began, limit = time.perf_counter(), self._service.configuration.settings.request_timeout
        calls: list[Call] = []
        text, tokens, error = "", 0, ""
        try:
            async with asyncio.timeout(limit):
                response = await self._prompt(question).call().response()
            calls, text, tokens = _calls(response), response.message.text, response.usage.total_tokens
        except ToolchatError as failure:
            error = f"{failure.code}: {failure.detail}"
        except TimeoutError:
            error = f"no answer within {limit:g} s"
        return judged(question, Answer(calls, text, tokens, round(time.perf_counter() - began, 3), error))

    def _prompt(self, question: Question) -> PromptSpec:
        offered, advisors = self._service.registry.for_conversation(question.offered)
        tools = [_played(tool, question.results) for tool in offered]
        turns = [
            UserMessage(text) if n % 2 == 0 else AssistantMessage(text) for n, text in enumerate(question.entry.before)
        ]
        prompt = self._service.state.chat.prompt(question.entry.ask)
        *system, asked = prompt.request.messages
        prompt = prompt.messages([*system, *turns, asked]).tools(*tools).advisors(*advisors)
        return prompt.tool_context({CONVERSATION_ID: secrets.token_hex(16)})


def _calls(response: ChatResponse) -> list[Call]:
    """What the model asked for, including what waits for approval, which nobody gives here."""
    called = [each.call for each in response.executions] + list(response.message.tool_calls)
    return [(call.name, parse_arguments(call)) for call in called]


class StubTool(ToolCallback):
    """Looks to the model like a tool, and answers what the file says."""

    def __init__(self, tool: ToolCallback, result: Any) -> None:
        self.definition = tool.definition
        self.metadata = replace(tool.metadata, requires_approval=False)
        self._result = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)

    async def call(self, tool_input: str, context: ToolContext) -> str:  # noqa: ARG002
        return self._result


def _played(tool: object, results: Mapping[str, Any]) -> object:
    if isinstance(tool, ToolCallback) and tool.definition.name in results:
        return StubTool(tool, results[tool.definition.name])
    return tool
