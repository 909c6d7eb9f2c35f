"""``toolchat chat``: a conversation."""

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from app.cli.ask import is_question
from app.cli.dialogue import ANSWERED, FAILED, AnswerPrinter, Dialogue, exit_code
from app.cli.serve import OpenedService, opened_service
from app.cli.terminal import complain, is_interactive, read_line, say, tell
from app.settings.typos import suggest
from toolchat.errors import ToolchatError
from toolchat.models.base import ChatResponse

__all__ = ["chat"]

_HELP = "/tools lists the tools, /new begins anew, /save FILE keeps the conversation as JSON, /quit or Ctrl-D leaves"
_LONGEST_RESULT = 200


def chat(*, tools: Sequence[str] | None, approved: Collection[str], demo: bool) -> int:
    """Hold a conversation, until ``/quit`` or the end of the input; a line that is piped in is a question as well.

    Args:
        tools: names of the function tools to offer; ``None`` offers all.
        approved: names of tools that may run without being approved each time.
        demo: let a sandbox play the tools' upstreams.

    Returns:
        0 where somebody sits at the terminal. Else as for ``ask`` of the question that went worst.

    Raises:
        ConfigurationError: the service cannot start as it is set up, or there is no such tool.
    """
    with opened_service(demo=demo) as service:
        conversation = _Conversation(service, tools, approved)
        if is_interactive():
            tell(f"toolchat, chat model {service.state.model_label}. {_HELP}")
        return conversation.hold()


class _Conversation:
    def __init__(self, service: OpenedService, tools: Sequence[str] | None, approved: Collection[str]) -> None:
        self._service = service
        self._new_dialogue = partial(Dialogue, service, tools, approved, remembers=True)
        self._code = ANSWERED
        self._commands: dict[str, Callable[[str], None]] = {
            "/tools": self._list_tools,
            "/new": self._begin,
            "/save": self._save,
            "/help": lambda _: tell(_HELP),
        }
        self._begin()

    def _begin(self, _: str = "") -> None:
        self._dialogue = self._new_dialogue()
        self._said: list[dict[str, Any]] = []

    def hold(self) -> int:
        """Take line after line."""
        prompt = "> " if is_interactive() else ""
        while True:
            try:
                line = read_line(prompt, recalled=True).strip()
                if line == "/quit":
                    break
                self._take(line)
            except EOFError:
                if prompt:
                    tell("")
                break
            except KeyboardInterrupt:
                if not prompt:
                    raise
                tell("")
                tell("stopped; /quit or Ctrl-D leaves")
        return ANSWERED if prompt else self._code

    def _take(self, line: str) -> None:
        command, _, rest = line.partition(" ")
        if command in self._commands:
            self._commands[command](rest.strip())
        elif line.startswith("/"):
            near = suggest(command, [*self._commands, "/quit"])
            complain(f"there is no {command}" + (f"; did you mean {near}?" if near else f". {_HELP}"))
        elif line:
            self._code = max(self._code, self._ask(line) if is_question(line) else FAILED)

    def _ask(self, question: str) -> int:
        printer, began = AnswerPrinter(_LONGEST_RESULT), time.perf_counter()
        try:
            response = self._dialogue.ask(question, printer)
        except ToolchatError as error:
            printer.end_line()
            complain(f"{error.code}: {error.detail}")
            return FAILED
        printer.finish(response)
        if not response.has_tool_calls:  # an answer that waits is not remembered either
            self._said += [{"role": "user", "text": question}, self._record(response, time.perf_counter() - began)]
        return exit_code(response)

    def _record(self, response: ChatResponse, seconds: float) -> dict[str, Any]:
        return {
            "role": "assistant",
            "text": response.message.text,
            "tool_calls": [each.to_dict() for each in response.executions],
            "usage": response.usage.to_dict(),
            "duration_ms": round(seconds * 1000, 3),
            "model": {"provider": self._service.state.chat.model.provider, "name": response.model},
        }

    def _list_tools(self, _: str) -> None:
        for module in self._service.registry.describe():
            for tool in module["tools"]:
                say(f"{tool['name']}: {tool['description'].splitlines()[0]}")

    def _save(self, file: str) -> None:
        if not file:
            complain("/save needs the name of a file")
            return
        document = {"session_id": self._dialogue.identifier, "turns": len(self._said) // 2, "messages": self._said}
        try:
            with Path(file).expanduser().open("xb") as stream:
                stream.write(to_json(document, indent=2) + b"\n")
        except FileExistsError:
            complain(f"{file} is there already; give another name")
        except OSError as error:
            complain(f"{file} cannot be written: {error.strerror}")
        else:
            tell(f"{document['turns']} questions with their answers are in {file}")
