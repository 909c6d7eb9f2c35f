"""The commands ``ask`` (one question) and ``chat`` (a conversation), with approvals of tool calls."""

import secrets
import sys
from collections.abc import Collection, Sequence

from pydantic_core import to_json

from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED
from toolchat.chat.client import PromptSpec
from toolchat.chat.request import Approval, ChatEvent, Emit
from toolchat.errors import ConfigurationError, ToolchatError, ValidationFailed
from toolchat.messages import ToolCall
from toolchat.models.base import ChatResponse, TextDelta
from toolchat.models.tool_call_merging import is_json_object
from toolchat.service.api.responses.active_request import answer_document
from toolchat.service.cli import Program
from toolchat.service.cli.opened_service import ANSWERED, FAILED, WAITS, OpenedService, opened_service
from toolchat.service.cli.terminal import (
    escape_controls,
    is_interactive,
    print_error,
    print_note,
    print_result,
    read_line,
)
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.events import ToolCallFinished, ToolCallProgress, ToolCallStarted

_HELP = "/tools lists the tools, /new starts a new conversation, /quit or Ctrl-D quits"
_APPROVAL_HELP = "y runs it, n rejects it (n REASON also tells the model why), edit JSON changes the arguments"


def ask(
    program: Program, *, words: Sequence[str], tool: Sequence[str], approve: Collection[str], tenant: str, json: bool
) -> int:
    """Send one question and print the answer as it arrives, or its JSON document."""
    question = _question(words)
    with opened_service(program, tenant=tenant) as service:
        return Dialogue(service, tool, approve).answer(question, as_json=json)


def _question(words: Sequence[str]) -> str:
    if words and tuple(words) != ("-",):
        return " ".join(words)
    if not words and sys.stdin.isatty():
        raise ConfigurationError('the question is missing: toolchat ask "…", or - to read it from standard input')
    return sys.stdin.buffer.read().decode("utf-8-sig", "replace").rstrip("\r\n")


def chat(program: Program, *, tool: Sequence[str], approve: Collection[str], tenant: str) -> int:
    """Hold a conversation until ``/quit`` or the end of the input; return the highest exit code of a piped question."""
    with opened_service(program, tenant=tenant) as service:
        if not is_interactive():
            dialogue = Dialogue(service, tool, approve, remembers=True)
            return max((dialogue.answer(line) for each in sys.stdin if (line := each.strip())), default=ANSWERED)
        print_note(f"toolchat, chat model {service.state.model_label}. {_HELP}")
        while _converse(service, Dialogue(service, tool, approve, remembers=True)):
            pass
        return ANSWERED


def _converse(service: OpenedService, dialogue: "Dialogue") -> bool:
    """Process typed lines; return whether a new conversation follows."""
    while True:
        try:
            line = read_line("> ").strip()
            if line in ("/new", "/quit"):
                return line == "/new"
            if line == "/tools":
                for tool in [tool for entry in service.state.tools.entries.values() for tool in entry.tools]:
                    print_result(f"{tool.definition.name}: {tool.definition.description.splitlines()[0]}")
            elif line.startswith("/"):
                print_note(_HELP if line == "/help" else f"there is no {line.split()[0]}; {_HELP}")
            elif line:
                dialogue.answer(line)
        except EOFError:
            print_note("")
            return False
        except KeyboardInterrupt:
            print_note("\nstopped; /quit or Ctrl-D quits")


class Dialogue:
    """One conversation with the service; tools that are ``approved`` run without asking."""

    def __init__(
        self, service: OpenedService, names: Sequence[str], approved: Collection[str], *, remembers: bool = False
    ) -> None:
        try:
            self._tools, advisors = service.state.tools.for_conversation(names or None)
        except ValidationFailed as error:
            raise ConfigurationError(f"--tool: {error.detail.removeprefix('tools: ')}") from None
        self._context = {CONVERSATION_ID: secrets.token_hex(16)}
        self._service, self._approved = service, approved
        self._advisors = (*([service.state.memory_advisor] if remembers else []), *advisors)

    def answer(self, question: str, *, as_json: bool = False) -> int:
        """Print the answer to a question; return the exit code."""
        longest = self._service.configuration.settings.question_max_chars
        if not question.strip() or len(question) > longest:
            print_error(f"the question must have 1 to {longest} characters")
            return FAILED
        printer = _AnswerPrinter()
        try:
            response = self._respond(question, None if as_json else printer)
        except ToolchatError as error:
            printer.end_line()
            print_error(error.for_operators)
            return FAILED
        if as_json:
            provider = self._service.state.chat.model.provider
            print_result(to_json(answer_document(response, provider), indent=2).decode())
        elif response.finish_reason == "length":
            print_result(" [cut off by the model's length limit]")
        else:
            printer.end_line()
        return _exit_code(response)

    def _respond(self, question: str, emit: Emit | None) -> ChatResponse:
        """Return the response of a whole turn, which is still paused if its calls could not be decided."""
        chat = self._service.state.chat
        response = self._send(chat.prompt(question).tool_context(self._context), emit)
        while response.finish_reason == APPROVAL_REQUIRED and (decisions := self._decide(response)):
            response = self._send(chat.resume(response, decisions), emit)
        return response.whole_turn()

    def _send(self, prompt: PromptSpec, emit: Emit | None) -> ChatResponse:
        prompt = prompt.tools(*self._tools).advisors(*self._advisors)
        return self._service.run(lambda: prompt.stream().response(emit) if emit else prompt.call().response())

    def _decide(self, response: ChatResponse) -> dict[str, Approval] | None:
        """Return a decision for every call; ``None`` if there is no user to decide, or it is not the user who does."""
        decisions = {}
        for call in response.waiting_calls:
            if role := response.approvers.get(call.id):
                print_error(f"a person with the role {role} must decide about {call.name}; the one who asked cannot")
                return None
            decision = Approval(approved=True) if call.name in self._approved else _typed_decision(call)
            if decision is None:
                print_error(f"{call.name}({call.arguments}) needs approval, but no terminal is attached")
                print_error(f"ask again in a terminal and decide there, or add --approve {call.name}")
                return None
            decisions[call.id] = decision
        return decisions


def _typed_decision(call: ToolCall) -> Approval | None:
    arguments = call.arguments
    while is_interactive():
        try:
            typed = read_line(f"Run {escape_controls(f'{call.name}({arguments})')}? [y/n/edit] ")
        except EOFError:
            break
        answer, _, rest = typed.strip().partition(" ")
        match answer.lower():
            case "y" | "yes":
                return Approval(approved=True, arguments=None if arguments == call.arguments else arguments)
            case "n" | "no":
                return Approval(approved=False, reason=rest.strip())
            case "e" | "edit" if is_json_object(rest):
                arguments = rest
            case _:
                print_error(_APPROVAL_HELP)
    return None


def _exit_code(response: ChatResponse) -> int:
    """Return 3 if the response waits for approval; 1 if a tool failed, was not rejected, and no later call worked."""
    if response.finish_reason == APPROVAL_REQUIRED:
        return WAITS
    last = {each.call.name: each for each in response.executions}  # a model repeats a call with better arguments
    failed = any(each.outcome == "error" and each.error_kind != "rejected" for each in last.values())
    return FAILED if failed else ANSWERED


class _AnswerPrinter:
    """Prints an answer to standard output as it arrives, and its tool calls to standard error."""

    _in_line = False

    async def __call__(self, event: ChatEvent) -> None:
        match event:
            case TextDelta(text):
                self._in_line = True
                print_result(text, end="")
            case ToolCallStarted():
                self.end_line()
            case ToolCallProgress():
                print_note(str(event))
            case ToolCallFinished(call=call):
                outcome = f"{event.outcome} in {event.duration_ms:g} ms"
                print_note(f"- {call.name}({call.arguments}) -> {outcome}: {event.result}")

    def end_line(self) -> None:
        """Start a new line, unless the cursor is at the start of one."""
        if self._in_line:
            self._in_line = False
            print_result()
