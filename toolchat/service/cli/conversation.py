"""The commands ``ask`` (one question) and ``chat`` (a conversation)."""

import sys
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from toolchat.errors import ConfigurationError, ToolchatError
from toolchat.models.base import ChatResponse
from toolchat.service.api.responses.active_request import answer_document
from toolchat.service.cli.dialogue import ANSWERED, FAILED, AnswerPrinter, Dialogue, exit_code
from toolchat.service.cli.opened_service import OpenedService, opened_service
from toolchat.service.cli.program import Program
from toolchat.service.cli.terminal import is_interactive, print_error, print_note, print_result, read_line
from toolchat.service.settings.typos import suggest

_MAX_QUERY_BYTES = 5 * 1024 * 1024
"""More than the longest question that ``QUESTION_MAX_CHARS`` allows."""
_HELP = "/tools lists the tools, /new starts a new conversation, /save FILE saves it as JSON, /quit or Ctrl-D quits"
_LONGEST_RESULT = 200


def ask(
    program: Program,
    *,
    query: str | None,
    tool: Sequence[str] | None,
    approve: Collection[str],
    tenant: str,
    json: bool,
    background: bool = False,
    follow: str = "",
) -> int:
    """Send one question and print the answer as it arrives; tool calls are printed to standard error.

    Args:
        program: the application, with its tools.
        query: the question; ``-``, or ``None`` with a pipe attached, reads it from standard input.
        tool: names of the function tools to offer; ``None`` offers all.
        approve: names of tools that run without asking for approval.
        tenant: the tenant for which tools run.
        json: print the answer's JSON document instead.
        background: leave the question to the running service.
        follow: the id of a question that was left to it, to print its answer instead of asking.

    Returns:
        0; 1 if the question could not be answered or a tool failed; 3 if a tool call needs approval.

    Raises:
        ConfigurationError: the configuration is invalid, a tool does not exist, or the question is missing.
    """
    if follow:
        from toolchat.service.cli.background import follow_question

        with opened_service(program) as service:
            return follow_question(service, follow)
    if query == "-" or (query is None and not sys.stdin.isatty()):
        query = _read_standard_input()
    if query is None:
        raise ConfigurationError('the question is missing: toolchat ask "…", or - to read it from standard input')
    with opened_service(program, tenant=tenant) as service:
        if not _has_valid_length(query, service):
            return FAILED
        if background:
            from toolchat.service.cli.background import leave_question

            return leave_question(service, query, tool)
        dialogue, printer = Dialogue(service, tool, approve), AnswerPrinter()
        try:
            response = dialogue.ask(query, None if json else printer)
        except ToolchatError as error:
            print_error(error.for_operators)
            return FAILED
        if json:
            print_result(to_json(answer_document(response, service.state.chat.model.provider), indent=2).decode())
        else:
            printer.finish(response)
    return exit_code(response)


def _read_standard_input() -> str:
    """Read UTF-8 text, but not much more than the longest question: a longer one is refused anyway."""
    return sys.stdin.buffer.read(_MAX_QUERY_BYTES).decode("utf-8-sig", "replace").rstrip("\r\n")


def _has_valid_length(query: str, service: OpenedService) -> bool:
    longest = service.configuration.settings.question_max_chars
    if query.strip() and len(query) <= longest:
        return True
    print_error(f"the question must have 1 to {longest} characters")
    return False


def chat(program: Program, *, tool: Sequence[str] | None, approve: Collection[str], tenant: str) -> int:
    """Hold a conversation until ``/quit`` or the end of the input; each line of a pipe is a question.

    Args:
        program: the application, with its tools.
        tool: names of the function tools to offer; ``None`` offers all.
        approve: names of tools that run without asking for approval.
        tenant: the tenant for which tools run.

    Returns:
        0 at a terminal; with a pipe, the highest exit code that :func:`ask` would have for one of the questions.

    Raises:
        ConfigurationError: the configuration is invalid, or a tool does not exist.
    """
    with opened_service(program, tenant=tenant) as service:
        conversation = _Conversation(service, tool, approve)
        if is_interactive():
            print_note(f"toolchat, chat model {service.state.model_label}. {_HELP}")
        return conversation.run()


class _Conversation:
    """Reads questions and commands that start with ``/``, line by line."""

    def __init__(self, service: OpenedService, tools: Sequence[str] | None, approved: Collection[str]) -> None:
        self._service = service
        self._new_dialogue = partial(Dialogue, service, tools, approved, remembers=True)
        self._code = ANSWERED
        self._commands: dict[str, Callable[[str], None]] = {
            "/tools": self._list_tools,
            "/new": self._begin,
            "/save": self._save,
            "/help": lambda _: print_note(_HELP),
        }
        self._begin()

    def _begin(self, _: str = "") -> None:
        self._dialogue = self._new_dialogue()
        self._messages: list[dict[str, Any]] = []

    def run(self) -> int:
        """Process lines until the input ends; return the exit code."""
        prompt = "> " if is_interactive() else ""
        while True:
            try:
                line = read_line(prompt, recalled=True).strip()
                if line == "/quit":
                    break
                self._process(line)
            except EOFError:
                if prompt:
                    print_note("")
                break
            except KeyboardInterrupt:
                if not prompt:
                    raise
                print_note("")
                print_note("stopped; /quit or Ctrl-D quits")
        return ANSWERED if prompt else self._code

    def _process(self, line: str) -> None:
        command, _, rest = line.partition(" ")
        if command in self._commands:
            self._commands[command](rest.strip())
        elif line.startswith("/"):
            similar = suggest(command, [*self._commands, "/quit"])
            print_error(f"there is no {command}" + (f"; did you mean {similar}?" if similar else f". {_HELP}"))
        elif line:
            self._code = max(self._code, self._ask(line) if _has_valid_length(line, self._service) else FAILED)

    def _ask(self, question: str) -> int:
        printer, began = AnswerPrinter(_LONGEST_RESULT), time.perf_counter()
        try:
            response = self._dialogue.ask(question, printer)
        except ToolchatError as error:
            printer.end_line()
            print_error(error.for_operators)
            return FAILED
        printer.finish(response)
        if not response.has_tool_calls:  # the memory does not store a turn that waits for approval either
            answer = self._answer_document(response, time.perf_counter() - began)
            self._messages += [{"role": "user", "text": question}, answer]
        return exit_code(response)

    def _answer_document(self, response: ChatResponse, seconds: float) -> dict[str, Any]:
        return {
            "role": "assistant",
            "text": response.message.text,
            "tool_calls": [each.to_dict() for each in response.executions],
            "usage": response.usage.to_dict(),
            "duration_ms": round(seconds * 1000, 3),
            "model": {"provider": self._service.state.chat.model.provider, "name": response.model},
        }

    def _list_tools(self, _: str) -> None:
        for entry in self._service.registry.entries.values():
            for tool in entry.tools:
                print_result(f"{tool.definition.name}: {tool.definition.description.splitlines()[0]}")

    def _save(self, file: str) -> None:
        if not file:
            print_error("/save needs a file name")
            return
        turns = len(self._messages) // 2
        document = {"session_id": self._dialogue.identifier, "turns": turns, "messages": self._messages}
        try:
            with Path(file).expanduser().open("xb") as stream:  # x: never overwrites a file
                stream.write(to_json(document, indent=2) + b"\n")
        except FileExistsError:
            print_error(f"{file} already exists; choose another name")
        except OSError as error:
            print_error(f"{file} cannot be written: {error.strerror}")
        else:
            print_note(f"saved {turns} questions and answers to {file}")
